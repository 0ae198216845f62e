"""`postroom contacts`: import address books and list the contacts."""

from pathlib import Path
from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.files import read_bytes
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.operation import Argument

app = command_group("Import address books; list the contacts that Postroom knows.")
add_commands(app, "contacts", "accounts.contacts")


@app.command("import")
def import_(
    session: Session,
    file: Annotated[Path, Argument("An address book as vCard or CSV.", typed_as="FILE")],
    account: Annotated[
        str | None, Argument("The mailbox they are for; default: all of yours.", typed_as="--account ADDRESS")
    ] = None,
) -> None:
    """Import the contacts of an address book: their mail gets the highest tier. Safe to repeat."""
    from postroom.core.mail.contacts import LARGEST_FILE, read_contacts
    from postroom.operations.accounts.contacts import import_contacts

    found = read_contacts(read_bytes(file, LARGEST_FILE + 1, remedy="give the file of an address book"))
    if not found.contacts:
        raise BadInput("FILE", f"{file}: {found.problems[0]}", "export the address book as vCard or CSV")
    with progress(session.as_json):
        kept = session.act(import_contacts, found, account)
    if session.as_json:
        show_json({**kept._asdict(), "problems": list(found.problems)})
        return
    typer.echo(f"{kept.added} added, {kept.updated} updated, {kept.unchanged} unchanged")
    for problem in found.problems:
        typer.echo(f"skipped: {cell(problem)}", err=True)
