"""Contact verbs: the people the user knows, from address books, programs, and the mail the user sent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.contacts import Contact, ContactSource, contact_address
from postroom.store.engine.codecs import rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature, auditing

EVERY_MAILBOX = ""
MOST_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class ContactView:
    """A stored contact. `endpoint_identity` is the mailbox it is for; empty means all."""

    address: str
    name: str
    source: ContactSource
    endpoint_identity: str
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class SourceCount:
    """How many contacts are known from a source, and when the newest of them was last seen."""

    source: ContactSource
    count: int
    newest_at: datetime


class ContactsKept(NamedTuple):
    added: int
    updated: int
    """How many got another name or source."""
    unchanged: int


@transaction
def keep_contacts(
    contacts: Sequence[Contact], source: ContactSource, endpoint_identity: str, signed: Signature, now: datetime
) -> Script[ContactsKept]:
    """Add new contacts and update the others; a name is never replaced by an empty one."""
    kept = yield from _keep(contacts, source, endpoint_identity, now)
    after = {"source": source, **kept._asdict()}
    yield from auditing(signed.under("contacts.add", "contacts", endpoint_identity or "all", after=after), now)
    return kept


@transaction
def note_correspondents(
    addresses: Iterable[str], now: datetime, endpoint_identity: str = EVERY_MAILBOX
) -> Script[ContactsKept]:
    """Add the addresses the user has written to, in any form. What an address book says about them is kept."""
    known = {address for each in addresses if (address := contact_address(each))}
    return (yield from _keep([Contact(address, "") for address in known], "sent", endpoint_identity, now))


@query
def export_contacts(endpoint_identity: str, after: str, most: int) -> Script[list[str]]:
    """The addresses for one mailbox, in order, after `after`."""
    rows = yield sql("select_exported", endpoint_identity, after, most)
    return [row[0] for row in rows]


@query
def list_contacts(most: int, after: tuple[str, str] = ("", "")) -> Script[list[ContactView]]:
    """Contacts after `after` (an address with its mailbox), ordered by address."""
    rows = yield sql("select_contacts", *after, most)
    return read_rows(ContactView, rows)


@query
def count_contacts(most: int) -> Script[list[SourceCount]]:
    """How many contacts there are by source, up to `most` altogether."""
    return read_rows(SourceCount, (yield sql("count_contacts_by_source", most)))


def _keep(
    contacts: Sequence[Contact], source: ContactSource, endpoint_identity: str, now: datetime
) -> Script[ContactsKept]:
    if len(contacts) > MOST_AT_ONCE:
        raise BadInput("contacts", f"has {len(contacts):,} entries", f"give at most {MOST_AT_ONCE:,} at once")
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
    """The row to store for a contact. Having been written to adds nothing to a contact that is already known."""
    name, known = before or ("", source)
    if source == "sent" and before is not None:
        return contact.address, name, known
    return contact.address, contact.name or name, source
