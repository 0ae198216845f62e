"""`postroom token`: create, list and revoke tokens."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.core.roles import Role
from postroom.interfaces.cli.moments import read_moment
from postroom.interfaces.cli.options import choice
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands

app = command_group("Create, list and revoke tokens for connectors, pages, agents and senders.")
add_commands(app, "token", "people.tokens")


@app.command()
def create(
    session: Session,
    role: Annotated[
        str, typer.Option("--role", help="What it may do: connector, dashboard, agent, sender, metrics or admin.")
    ],
    identity: Annotated[
        str | None,
        typer.Option(
            "--identity", help="The endpoint identity that a connector's token is bound to; for connectors only."
        ),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            "--channel", help="A channel that a connector may deliver; repeatable. Default: those of its identity."
        ),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="ADDRESS", help="The only account whose mail an agent sees; default: all."),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option("--sender", metavar="USERNAME", help="The sender for whom a token of that role submits mail."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="A name for the list.")] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="WHEN", help="When it expires: 30d, 12h, or a time with its offset; default: never."
        ),
    ] = None,
) -> None:
    """Create a token and print it, once only: Postroom keeps just a hash of it."""
    from postroom.operations.accounts.accounts import find_account
    from postroom.operations.outbound.senders import load_sender
    from postroom.operations.people.tokens import create_token, mint

    now = datetime.now(UTC)
    expires_at = None if expires is None else moment_of(expires, now)
    account_id = None if account is None else session.call(find_account, account).id
    sender_id = None if sender is None else session.call(load_sender, lambda: now, sender).id
    minted = mint(choice("--role", role, Role), identity, name, expires_at, account_id, channel or (), sender_id)
    token = session.at(now).act(create_token, minted.token)
    session.show_line({"token": minted.text, **asdict(token)}, minted.text)
    if not session.as_json:
        typer.echo("Keep it safe: it will not be shown again. `postroom token revoke` ends it.", err=True)


@app.command()
def revoke(
    session: Session,
    token_id: Annotated[
        UUID, typer.Argument(metavar="ID", help="The id of the token, as `postroom token list` shows it.")
    ],
) -> None:
    """Revoke a token: within a second it is no longer accepted. What its holder asked for and what is not done yet is
    withdrawn: approvals that wait, and queued actions. Safe to repeat."""
    from postroom.operations.people.tokens import revoke_token

    revoked = session.act(revoke_token, token_id)
    result = "revoked" if revoked.revoked else "was revoked before"
    words = revoked.work.in_words()
    line = f"{token_id}  {result}{f'; {words}' if words else ''}"
    session.show_line({"id": token_id, "result": result, **revoked.work._asdict()}, line)


def moment_of(text: str, now: datetime) -> datetime:
    """When a token ends: a span from now, or a moment; always in the future."""
    moment = read_moment("--expires", text, now, ahead=True)
    if moment <= now:
        raise BadInput("--expires", f"{text!r} is over", "give a time in the future, such as 30d")
    return moment
