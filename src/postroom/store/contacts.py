"""The verbs of contacts: whom the user knows, from address books, from programs, and from the mail they sent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.contacts import Contact, ContactSource, contact_address
from postroom.store.audit import Signature, auditing
from postroom.store.engine.codecs import rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows

EVERY_MAILBOX = ""
MOST_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class ContactView:
    """A contact as it is kept. `endpoint_identity` names the mailbox it is for; it is empty when it is for all."""

    address: str
    name: str
    source: ContactSource
    endpoint_identity: str
    first_seen_at: datetime
    last_seen_at: datetime


class ContactsKept(NamedTuple):
    """How many were new, how many got another name or source, and how many were here like that."""

    added: int
    updated: int
    unchanged: int


@transaction
def keep_contacts(
    contacts: Sequence[Contact], source: ContactSource, endpoint_identity: str, signed: Signature, now: datetime
) -> Script[ContactsKept]:
    """Adds those that are new, and brings the others up to date; a name is never replaced by none."""
    kept = yield from _keep(contacts, source, endpoint_identity, now)
    after = {"source": source, **kept._asdict()}
    yield from auditing(signed.under("contacts.add", "contacts", endpoint_identity or "all", after=after), now)
    return kept


@transaction
def note_correspondents(
    addresses: Iterable[str], now: datetime, endpoint_identity: str = EVERY_MAILBOX
) -> Script[ContactsKept]:
    """The user has written to these addresses, given in any form. What an address book says of them stays as it is."""
    known = {address for each in addresses if (address := contact_address(each))}
    return (yield from _keep([Contact(address, "") for address in known], "sent", endpoint_identity, now))


@query
def export_contacts(endpoint_identity: str, after: str, most: int) -> Script[list[str]]:
    """The addresses for one mailbox, in their order, from behind `after` on."""
    rows = yield sql("select_exported", endpoint_identity, after, most)
    return [row[0] for row in rows]


@query
def list_contacts(most: int, after: tuple[str, str] = ("", "")) -> Script[list[ContactView]]:
    """Those behind `after`, an address with its mailbox, in the order of the addresses."""
    rows = yield sql("select_contacts", *after, most)
    return read_rows(ContactView, rows)


def _keep(
    contacts: Sequence[Contact], source: ContactSource, endpoint_identity: str, now: datetime
) -> Script[ContactsKept]:
    if len(contacts) > MOST_AT_ONCE:
        raise BadInput("contacts", f"are {len(contacts):,}", f"give at most {MOST_AT_ONCE:,} at once")
    given = {contact.address: contact for contact in contacts}
    if not given:
        return ContactsKept(0, 0, 0)
    found = yield sql("select_contacts_among", sorted(given), endpoint_identity)
    before = {address: (name, known) for address, name, known in found}
    rows = [_row(contact, source, before.get(contact.address)) for contact in given.values()]
    yield sql("upsert_contacts", rows_text(rows), endpoint_identity, now)
    changed = sum(address in before and before[address] != (name, known) for address, name, known in rows)
    return ContactsKept(len(given) - len(before), changed, len(before) - changed)


def _row(
    contact: Contact, source: ContactSource, before: tuple[str, ContactSource] | None
) -> tuple[str, str, ContactSource]:
    """A contact as it is now to be. That the user wrote to someone says nothing new about one who is known."""
    name, known = before or ("", source)
    if source == "sent" and before is not None:
        return contact.address, name, known
    return contact.address, contact.name or name, source
