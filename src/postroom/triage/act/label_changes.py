"""Make a change of labels in a mailbox: in one call, and in a second one for the trash, which has calls of its own."""

from postroom.core.actions.label_changes import LabelChange, places_in
from postroom.core.mail.mailbox import Mailbox, Placed


async def make_change(mailbox: Mailbox, placed: Placed, change: LabelChange) -> Placed:
    """Make the change on a message that is here, and return where it is then. Safe to repeat."""
    if "TRASH" in change.remove:
        placed = await mailbox.untrash(placed.provider_message_id)
        change = LabelChange(change.add - placed.labels, change.remove & placed.labels)
    into_trash = "TRASH" in change.add
    rest = (
        LabelChange(change.add - places_in(change.add), change.remove - places_in(change.remove))
        if into_trash
        else change
    )
    if rest:
        placed = await mailbox.modify(placed.provider_message_id, rest.add, rest.remove)
    return await mailbox.trash(placed.provider_message_id) if into_trash else placed
