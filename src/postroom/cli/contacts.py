"""`postroom contacts`: take in address books, and look at whom Postroom knows."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list
from postroom.cli.running import with_database
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.core.mail.contacts import ReadContacts
    from postroom.store.contacts import ContactsKept, ContactView
    from postroom.store.engine.database import Database

app = command_group("Take in address books, and look at whom Postroom knows.")

COLUMNS = ("address", "name", "source", "mailbox", "first_seen_at", "last_seen_at")
PAGE = 5000


@app.command("import")
def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An address book as vCard or CSV.", show_default=False)],
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="ADDRESS", help="The mailbox they are for; without it, for all of yours."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Take in the contacts of an address book: their mail gets the highest tier. Safe to repeat."""
    found = _read(file)

    async def keep(database: "Database") -> "ContactsKept":
        return await _keep(database, found, account)

    kept = with_database(application_of(context), settings_for(data_dir), keep)
    if as_json:
        show_json({**kept._asdict(), "problems": list(found.problems)})
        return
    typer.echo(f"{kept.added} added, {kept.updated} updated, {kept.unchanged} unchanged")
    for problem in found.problems:
        typer.echo(f"skipped: {problem}", err=True)


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the contacts in the order of their addresses. `mailbox` is empty for those of all mailboxes."""
    found = with_database(application_of(context), settings_for(data_dir), _all)
    show_list([_row(contact) for contact in found], COLUMNS, as_json=as_json)


def _read(file: Path) -> "ReadContacts":
    from postroom.core.mail.contacts import LARGEST_FILE, read_contacts

    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadInput("FILE", f"{file} cannot be read ({error.strerror})", "give the address book's file") from None
    found = read_contacts(content)
    if not found.contacts:
        raise BadInput("FILE", f"{file}: {found.problems[0]}", "export the address book as vCard or CSV")
    return found


async def _keep(database: "Database", found: "ReadContacts", account: str | None) -> "ContactsKept":
    """A new installation gets its schema here, so that contacts can be there before the first mail."""
    from postroom.store.contacts import EVERY_MAILBOX, MOST_AT_ONCE, ContactsKept, keep_contacts
    from postroom.store.engine.migrate import applied_migrations, migrate

    if not await database.run(applied_migrations()):
        await migrate(database)
    mailbox = EVERY_MAILBOX if account is None else await _mailbox(database, account)
    kept = ContactsKept(0, 0, 0)
    for at in range(0, len(found.contacts), MOST_AT_ONCE):
        part = found.contacts[at : at + MOST_AT_ONCE]
        keeping = keep_contacts(part, found.form, mailbox, operator_signature(), datetime.now(UTC))
        kept = ContactsKept(*map(sum, zip(kept, await database.run(keeping), strict=True)))
    return kept


async def _mailbox(database: "Database", address: str) -> str:
    from postroom.core.mail.accounts import normalised_address
    from postroom.store.accounts import accounts_with_address

    found = await database.run(accounts_with_address(normalised_address(address)))
    if not found:
        raise BadInput("--account", f"there is no account {address}", "`postroom account list` shows those there are")
    return found[0].endpoint_identity


async def _all(database: "Database") -> "list[ContactView]":
    from postroom.store.contacts import list_contacts

    found = await database.run(list_contacts(PAGE))
    while len(found) % PAGE == 0 and found:
        page = await database.run(list_contacts(PAGE, (found[-1].address, found[-1].endpoint_identity)))
        if not page:
            break
        found += page
    return found


def _row(contact: "ContactView") -> dict[str, object]:
    row = asdict(contact)
    mailbox = row.pop("endpoint_identity")
    return {**row, "mailbox": mailbox}
