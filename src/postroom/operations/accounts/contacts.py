"""Contacts: import address books, list the people the user knows, and let connectors sort mail by them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, NamedTuple

from postroom.core.access import CONNECTORS, OPERATE, READ, STEER
from postroom.core.bounds import own_identity
from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.contacts import LONGEST_NAME, Contact, ContactSource, ReadContacts, contact_address
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import MAIL
from postroom.operations.operation import ADDS_ONCE, READS, Argument, command, dialogue, tool
from postroom.operations.people.audit import next_entry
from postroom.store.accounts.accounts import accounts_with_address
from postroom.store.engine.database import Database
from postroom.store.mail import contacts
from postroom.store.mail.contacts import EVERY_MAILBOX, MOST_AT_ONCE, ContactsKept, ContactView

PAGE = 5000
MOST_GIVEN = 1000
COLUMNS = ("address", "name", "source", "mailbox", "first_seen_at", "last_seen_at")


class GivenContact(NamedTuple):
    address: Annotated[str, Argument("The mail address, in any form.", 3)]
    name: Annotated[str, Argument("The person's name, if known.", 0, LONGEST_NAME)] = ""


class ExportedContacts(NamedTuple):
    """`next_cursor` is null on the last page."""

    generated_at: datetime
    addresses: Sequence[str]
    next_cursor: str | None


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


@MAIL.operation(CONNECTORS, tool("contacts.export", "Get the known contacts", READS))
async def export_contacts(
    by: Caller,
    /,
    cursor: Annotated[str, Argument("next_cursor of the page before; empty for the first page.", 0, 1000)] = "",
    max: Annotated[int, Argument(f"How many addresses at most, 1 to {PAGE}.", 1, PAGE)] = PAGE,
) -> ExportedContacts:
    """Lists the addresses of everyone whom the user of this connector's mailbox knows, in pages: call again with
    next_cursor as cursor until it is null. Fetch them about every 15 minutes, and do not use a list that is older than
    an hour.
    """
    generated_at = by.clock()
    # One row more than requested, to know whether another page follows.
    found = await by.run(contacts.export_contacts(own_identity(by.program), cursor, max + 1))
    page = found[:max]
    return ExportedContacts(generated_at, page, page[-1] if len(found) > len(page) else None)


@MAIL.operation(STEER, tool("contacts.add", "Add known contacts", ADDS_ONCE))
async def add_contacts(
    by: Caller,
    /,
    contacts: Annotated[
        Sequence[GivenContact], Argument(f"1 to {MOST_GIVEN} people whom the user knows.", 1, MOST_GIVEN)
    ],
    endpoint_identity: Annotated[
        str | None, Argument("The mailbox for which they count; without it, all mailboxes.")
    ] = None,
) -> ContactsKept:
    """Adds people whom the user knows; their mail gets the tier high_priority within 15 minutes. Existing contacts are
    updated. One invalid address refuses the whole call.
    """
    checked = [_contact(index, each) for index, each in enumerate(contacts)]
    return await keep_contacts(by, checked, "mcp", endpoint_identity or EVERY_MAILBOX)


def _contact(index: int, given: GivenContact) -> Contact:
    address = contact_address(given.address)
    if address is None:
        problem = f"{given.address[:100]!r} is not an address"
        raise BadInput(f"contacts.{index}.address", problem, "give one such as mara@lindqvist.example")
    return Contact(address, " ".join(given.name.split())[:LONGEST_NAME])


@MAIL.operation(CONNECTORS, tool("contacts.written_to", "Report whom the user has written to", ADDS_ONCE))
async def note_written_to(
    by: Caller,
    /,
    addresses: Annotated[Sequence[str], Argument(f"1 to {MOST_GIVEN} addresses, in any form.", 1, MOST_GIVEN)],
) -> ContactsKept:
    """Reports the addresses to which the user of this connector's mailbox has sent mail: they become contacts of this
    mailbox. Entries of the address book are not changed; invalid addresses are ignored. Reporting the same again is
    safe.
    """
    return await by.run(contacts.note_correspondents(addresses, by.clock(), own_identity(by.program)))


async def known_to(database: Database, endpoint_identity: str = EVERY_MAILBOX) -> frozenset[str]:
    """The addresses of the contacts that count in a mailbox, or in all of them."""
    mailboxes = (EVERY_MAILBOX, endpoint_identity)
    return frozenset(each.address for each in await list_contacts(database) if each.endpoint_identity in mailboxes)


async def _mailbox(database: Database, address: str) -> str:
    found = await database.run(accounts_with_address(normalised_address(address)))
    if not found:
        raise BadInput("--account", f"there is no account {address}", "`postroom account list` lists them")
    return found[0].endpoint_identity
