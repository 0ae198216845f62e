"""Contacts: import address books, and list the people the user knows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.contacts import Contact, ContactSource, ReadContacts
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import MAIL
from postroom.operations.operation import command, dialogue
from postroom.operations.people.audit import next_entry
from postroom.store.accounts.accounts import accounts_with_address
from postroom.store.engine.database import Database
from postroom.store.mail import contacts
from postroom.store.mail.contacts import EVERY_MAILBOX, MOST_AT_ONCE, ContactsKept, ContactView

PAGE = 5000
COLUMNS = ("address", "name", "source", "mailbox", "first_seen_at", "last_seen_at")


@MAIL.operation(OPERATE, dialogue("contacts import"))
async def import_contacts(by: Caller, /, book: ReadContacts, account: str | None) -> ContactsKept:
    """Import the contacts of an address book: their mail gets the highest tier. Safe to repeat."""
    await prepare(by.database)
    mailbox = EVERY_MAILBOX if account is None else await _mailbox(by.database, account)
    return await keep_contacts(by, book.contacts, book.form, mailbox)


async def keep_contacts(
    by: Caller, given: Sequence[Contact], source: ContactSource, endpoint_identity: str
) -> ContactsKept:
    """Add new contacts and update the others, some thousands per transaction."""
    kept = ContactsKept(0, 0, 0)
    for at in range(0, len(given), MOST_AT_ONCE):
        part = given[at : at + MOST_AT_ONCE]
        keeping = contacts.keep_contacts(part, source, endpoint_identity, next_entry(by.signature), by.clock())
        kept = ContactsKept(*map(sum, zip(kept, await by.run(keeping), strict=True)))
    return kept


def _row(contact: ContactView) -> Mapping[str, object]:
    row = asdict(contact)
    mailbox = row.pop("endpoint_identity")
    return {**row, "mailbox": mailbox}


@MAIL.operation(READ, command("contacts list", *COLUMNS, row=_row))
async def list_contacts(database: Database, /) -> list[ContactView]:
    """List the contacts by address. `mailbox` is empty for those that count in all mailboxes."""
    found: list[ContactView] = []
    after = ("", "")
    while page := await database.run(contacts.list_contacts(PAGE, after)):
        found += page
        after = page[-1].address, page[-1].endpoint_identity
    return found


async def _mailbox(database: Database, address: str) -> str:
    found = await database.run(accounts_with_address(normalised_address(address)))
    if not found:
        raise BadInput("--account", f"there is no account {address}", "`postroom account list` lists them")
    return found[0].endpoint_identity
