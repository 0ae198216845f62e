"""Whether a message is the user's own mail, about which nothing is decided: one rule for the mailbox, the preview and
the simulation.

It is the user's own if it is among the sent mail and not in the inbox, and also if it came back, as through a mailing
list: it is from one of the user's addresses, which is not in doubt, and to none of them. Mail to oneself is received.
"""

from collections.abc import Collection

from postroom.core.mail.addresses import addresses
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.sender_doubt import undoubted_sender
from postroom.core.mail.tiers import Known, sender_address

RECIPIENTS = ("to", "cc", "bcc")


def is_own_mail(headers: Headers, labels: Collection[str], known: Known) -> bool:
    """Whether the user sent it, and not to themselves."""
    if "SENT" in labels and "INBOX" not in labels:
        return True
    if sender_address(headers) not in known.user_addresses:
        return False
    return undoubted_sender(headers, known.own_hosts) is not None and not _names_user(headers, known)


def _names_user(headers: Headers, known: Known) -> bool:
    named = (each for name in RECIPIENTS for value in values(headers, name) for each in addresses(value))
    return any(each in known.user_addresses for each in named)
