"""The state of an outgoing mail, as it follows from those of its recipients."""

from collections.abc import Collection

from postroom.core.lifecycle import DeliveryState, RecipientState

# Open states come before ended ones; among ends without success, the most informative one.
_OPEN: tuple[RecipientState, ...] = ("sending", "deferred", "queued", "unknown")
_FAILED: tuple[RecipientState, ...] = ("bounced", "rejected", "expired", "canceled")


def mail_state(recipients: Collection[RecipientState]) -> DeliveryState:
    """The state of a mail with recipients in these states."""
    for state in _OPEN:
        if state in recipients:
            return state
    failed: list[DeliveryState] = [state for state in _FAILED if state in recipients]
    if "sent" in recipients:
        return "partially_sent" if failed else "sent"
    return failed[0] if failed else "queued"
