"""`postroom token`: create, list and revoke tokens."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, choice, command_group, settings_for
from postroom.cli.output import show_line, show_list, show_result
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.core.roles import Role

app = command_group("Create, list and revoke tokens for connectors, pages and agents.")

COLUMNS = (
    "id",
    "role",
    "identity",
    "channels",
    "account_id",
    "name",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
)


@app.command()
def create(
    context: typer.Context,
    role: Annotated[str, typer.Option("--role", help="What it may do: connector, dashboard, agent or admin.")],
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
    name: Annotated[str | None, typer.Option("--name", help="A name for the list.")] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="WHEN", help="When it expires: 30d, 12h, or a time with its offset; default: never."
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, once only: Postroom keeps just a hash of it."""
    from postroom.manage.accounts import find_account
    from postroom.manage.tokens import create_token, mint

    now, settings = datetime.now(UTC), settings_for(data_dir)
    expires_at = None if expires is None else moment_of(expires, now)
    account_id = None if account is None else call(context, settings, find_account, account).id
    minted = mint(choice("--role", role, Role), identity, name, expires_at, account_id, channel or ())
    token = call(context, settings, create_token, minted.token, operator_signature(), now)
    show_line({"token": minted.text, **asdict(token)}, minted.text, as_json=as_json)
    if not as_json:
        typer.echo("Keep it safe: it will not be shown again. `postroom token revoke` ends it.", err=True)


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the tokens, newest first, without their secrets."""
    from postroom.manage.tokens import list_tokens

    show_list(call(context, settings_for(data_dir), list_tokens), COLUMNS, as_json=as_json)


@app.command()
def revoke(
    context: typer.Context,
    token_id: Annotated[
        UUID, typer.Argument(metavar="ID", help="The id of the token, as `postroom token list` shows it.")
    ],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: within a second it is no longer accepted. Safe to repeat."""
    from postroom.manage.tokens import revoke_token

    was_live = call(context, settings_for(data_dir), revoke_token, token_id, operator_signature())
    show_result(token_id, "revoked" if was_live else "was revoked before", as_json=as_json)


def moment_of(text: str, now: datetime) -> datetime:
    """When a token ends: a span from now, or a moment; always in the future."""
    moment = read_moment("--expires", text, now, ahead=True)
    if moment <= now:
        raise BadInput("--expires", f"{text!r} is over", "give a time in the future, such as 30d")
    return moment
