"""What an account is called: its address in one spelling, and the key under which its jobs wait."""

import re
from typing import Literal
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical

Provider = Literal["gmail", "imap"]
LONGEST_ADDRESS = 320
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")


def normalised_address(address: str) -> str:
    """The address as it is kept and compared: Gmail does not tell upper from lower case."""
    plain = address.strip().lower()
    if len(plain) > LONGEST_ADDRESS or not plain.isprintable() or not _ADDRESS.fullmatch(plain):
        raise BadInput("email", "is no mail address", "write it as ada@example.com")
    return plain


def same_mailbox(one: str, other: str) -> bool:
    """Whether two addresses name one mailbox: at gmail.com dots mean nothing, and googlemail.com is another name."""
    return mailbox_name(one) == mailbox_name(other)


def mailbox_name(address: str) -> str:
    """The one name of a mailbox among all the spellings of its address."""
    local, _, domain = (canonical(address) or address.strip().lower()).rpartition("@")
    if domain in ("gmail.com", "googlemail.com"):
        return f"{local.replace('.', '')}@gmail.com"
    return f"{local}@{domain}"


def gmail_endpoint(address: str) -> str:
    """The endpoint identity of a Gmail mailbox."""
    return f"gmail:user:{address}"


def parking_key(account_id: UUID) -> str:
    """Jobs that cannot go on before a person has acted on the account wait under this key."""
    return f"account:{account_id}"
