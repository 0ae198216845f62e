"""Names of an account: its normalised address, its endpoint identity, and the key under which its jobs are parked."""

import re
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical

LONGEST_ADDRESS = 320
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")


def normalised_address(address: str) -> str:
    """The address as it is stored and compared: Gmail ignores case."""
    plain = address.strip().lower()
    if len(plain) > LONGEST_ADDRESS or not plain.isprintable() or not _ADDRESS.fullmatch(plain):
        raise BadInput("email", "is not a mail address", "write it as ada@example.com")
    return plain


def same_mailbox(one: str, other: str) -> bool:
    """Whether two addresses name the same mailbox: gmail.com ignores dots, and googlemail.com is an alias of it."""
    return mailbox_name(one) == mailbox_name(other)


def mailbox_name(address: str) -> str:
    """The same name for all spellings of a mailbox's address."""
    local, _, domain = (canonical(address) or address.strip().lower()).rpartition("@")
    if domain in ("gmail.com", "googlemail.com"):
        return f"{local.replace('.', '')}@gmail.com"
    return f"{local}@{domain}"


def endpoint_of(provider: str, address: str) -> str:
    """The endpoint identity of a mailbox."""
    return f"{provider}:user:{address}"


def address_at(endpoint_identity: str) -> str:
    """The address in the endpoint identity of a mailbox."""
    return endpoint_identity.removeprefix(endpoint_of(provider_of(endpoint_identity), ""))


def provider_of(endpoint_identity: str) -> str:
    """The provider of a mailbox, which its endpoint identity begins with."""
    return endpoint_identity.partition(":")[0]


def parking_key(account_id: UUID) -> str:
    """The key under which jobs are parked until a person has acted on the account."""
    return f"account:{account_id}"
