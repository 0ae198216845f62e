"""`postroom person`: the people who may sign in to the pages."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands

if TYPE_CHECKING:
    from postroom.operations.people.people import LinkAnswer

app = command_group("Add people who may sign in to the pages; change their roles, help them in, sign them out.")
add_commands(app, "person", "people.people")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name with which they sign in.")]


@app.command()
def add(
    session: Session,
    name: Name,
    role: Annotated[
        str,
        typer.Option(
            "--role", help="viewer (reads), operator (also acts) or admin (also changes people and settings)."
        ),
    ] = "viewer",
) -> None:
    """Add somebody and print a one-time link, with which they choose a passkey or a password."""
    from postroom.operations.people.people import add_person, role_named

    _show_link(session, name, session.act(add_person, session.settings, name, role_named(role)))


@app.command()
def link(session: Session, name: Name) -> None:
    """Print a new one-time link for somebody who is locked out. Using it turns their codes off and signs them out
    elsewhere."""
    from postroom.operations.people.people import make_link

    _show_link(session, name, session.act(make_link, session.settings, name))


@app.command()
def role(
    session: Session,
    name: Name,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="viewer, operator or admin.")],
) -> None:
    """Change what somebody may do, from their next click on. Safe to repeat."""
    from postroom.operations.people.people import change_role, role_named

    changed = session.act(change_role, name, role_named(role)).changed
    session.show_result(name, f"is {role} now" if changed else f"was {role} before", key="name")


def _show_link(session: Session, name: str, made: "LinkAnswer") -> None:
    session.show_line({"name": name, "sign_in_url": made.link, "expires_at": made.ends_at}, made.link)
    if not session.as_json:
        typer.echo("Give it to them by a safe way: it works once, until tomorrow at this time.", err=True)
