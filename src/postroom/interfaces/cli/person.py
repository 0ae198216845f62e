"""`postroom person`: the people who may sign in to the pages."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli.session import Session, command_group

if TYPE_CHECKING:
    from postroom.operations.people.people import LinkText

app = command_group("Add people who may sign in to the pages; change their roles, help them in, sign them out.")

COLUMNS = ("name", "role", "has_password", "has_codes", "passkeys", "sessions", "last_seen_at", "created_at")
SESSION_COLUMNS = ("id", "name", "browser", "address", "created_at", "last_seen_at", "idle_ends_at", "ends_at")

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
    from postroom.operations.people.people import add_person

    _show_link(session, name, session.act(add_person, name, role))


@app.command("list")
def list_(session: Session) -> None:
    """List everybody, with their roles and how they can sign in."""
    from postroom.operations.people.people import list_people

    session.show_list(session.call(list_people), COLUMNS)


@app.command()
def link(session: Session, name: Name) -> None:
    """Print a new one-time link for somebody who is locked out. Using it turns their codes off and signs them out
    elsewhere."""
    from postroom.operations.people.people import link_for

    _show_link(session, name, session.act(link_for, name))


@app.command()
def role(
    session: Session,
    name: Name,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="viewer, operator or admin.")],
) -> None:
    """Change what somebody may do, from their next click on. Safe to repeat."""
    from postroom.operations.people.people import change_role

    changed = session.act(change_role, name, role)
    session.show_result(name, f"is {role} now" if changed else f"was {role} before", key="name")


@app.command()
def remove(session: Session, name: Name) -> None:
    """Remove somebody, and sign them out. The audit log keeps what they did."""
    from postroom.operations.people.people import remove_person

    session.act(remove_person, name)
    session.show_result(name, "removed", key="name")


@app.command()
def sessions(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only the sessions of this person.")] = None,
) -> None:
    """List where people are signed in, the last used first."""
    from postroom.operations.people.people import list_sessions

    session.show_list(session.call(list_sessions, name), SESSION_COLUMNS)


@app.command("sign-out")
def sign_out(session: Session, name: Name) -> None:
    """Sign somebody out everywhere. Safe to repeat."""
    from postroom.operations.people.people import sign_out

    ended = session.act(sign_out, name)
    session.show_result(name, f"{ended} sessions ended", key="name")


def _show_link(session: Session, name: str, made: "LinkText") -> None:
    from postroom.operations.people.pages_address import link_address

    address = link_address(session.settings, made.secret)
    session.show_line({"name": name, "sign_in_url": address, "expires_at": made.link.expires_at}, address)
    if not session.as_json:
        typer.echo("Give it to them by a safe way: it works once, until tomorrow at this time.", err=True)
