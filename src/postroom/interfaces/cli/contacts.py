"""`postroom contacts`: import address books and list the contacts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands

if TYPE_CHECKING:
    from postroom.core.mail.contacts import ReadContacts

app = command_group("Import address books; list the contacts that Postroom knows.")
add_commands(app, "contacts", "accounts.contacts")


@app.command("import")
def import_(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An address book as vCard or CSV.", show_default=False)],
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="ADDRESS", help="The mailbox they are for; default: all of yours."),
    ] = None,
) -> None:
    """Import the contacts of an address book: their mail gets the highest tier. Safe to repeat."""
    from postroom.operations.accounts.contacts import import_contacts

    found = _read(file)
    kept = session.act(import_contacts, found, account)
    if session.as_json:
        show_json({**kept._asdict(), "problems": list(found.problems)})
        return
    typer.echo(f"{kept.added} added, {kept.updated} updated, {kept.unchanged} unchanged")
    for problem in found.problems:
        typer.echo(f"skipped: {problem}", err=True)


def _read(file: Path) -> "ReadContacts":
    from postroom.core.mail.contacts import LARGEST_FILE, read_contacts

    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadInput(
            "FILE", f"{file} cannot be read ({error.strerror})", "give the file of an address book"
        ) from None
    found = read_contacts(content)
    if not found.contacts:
        raise BadInput("FILE", f"{file}: {found.problems[0]}", "export the address book as vCard or CSV")
    return found
