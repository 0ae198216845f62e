"""`postroom token`: make tokens, look at them, revoke them."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.cli.accounts_named import account_named
from postroom.cli.application import application_of
from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list
from postroom.cli.running import run_transaction, with_database
from postroom.core.errors import BadInput
from postroom.core.roles import Role

if TYPE_CHECKING:
    from postroom.store.engine.database import Database
    from postroom.store.tokens import NewToken, Token

app = command_group("Make tokens for connectors, pages and agents; look at them, revoke them.")

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
        typer.Option("--identity", help="The endpoint identity that a connector is bound to; for connectors only."),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            "--channel", help="A channel that a connector may hand in; may be repeated. Else those of its identity."
        ),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(
            "--account", metavar="ADDRESS", help="The only account whose mail an agent sees; else it sees all."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="A label by which you know it again.")] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="WHEN", help="When it ends: 30d, 12h, or a time with its offset. Never, without this."
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once: only a hash of it is kept."""
    now = datetime.now(UTC)
    expires_at = None if expires is None else moment_of(expires, now)
    from postroom.store.tokens import mint

    application, settings = application_of(context), settings_for(data_dir)
    account_id = None if account is None else account_named(application, settings, account).id
    minted = mint(_role(role), identity, name, expires_at, account_id, channel or ())

    async def keep(database: "Database") -> "Token":
        return await _keep(database, minted.token, now)

    token = with_database(application, settings, keep)
    if as_json:
        show_json({"token": minted.text, **asdict(token)})
    else:
        typer.echo(minted.text)
        typer.echo("Keep it safe: it will not be shown again. `postroom token revoke` ends it.", err=True)


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the tokens, the newest first, without what proves them."""
    from postroom.store.tokens import list_tokens

    found = run_transaction(application_of(context), settings_for(data_dir), list_tokens())
    rows = [asdict(token) for token in found]
    if not as_json:
        rows = [row | {"channels": row["channels"] and ", ".join(row["channels"])} for row in rows]
    show_list(rows, COLUMNS, as_json=as_json)


@app.command()
def revoke(
    context: typer.Context,
    token_id: Annotated[
        UUID, typer.Argument(metavar="ID", help="The id of the token, as `postroom token list` shows it.")
    ],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: within a second it opens nothing any more. Safe to repeat."""
    from postroom.store.tokens import revoke_token

    transaction = revoke_token(token_id, operator_signature(), datetime.now(UTC))
    was_live = run_transaction(application_of(context), settings_for(data_dir), transaction)
    result = "revoked" if was_live else "was revoked before"
    show_json({"id": token_id, "result": result}) if as_json else typer.echo(f"{token_id}  {result}")


async def _keep(database: "Database", token: "NewToken", now: datetime) -> "Token":
    """A new installation gets its schema here, so that tokens can be made before the first start."""
    from postroom.store.engine.migrate import applied_migrations, migrate
    from postroom.store.tokens import create_token

    if not await database.run(applied_migrations()):
        await migrate(database)
    return await database.run(create_token(token, operator_signature(), now))


def _role(text: str) -> Role:
    if text not in list(Role):
        raise BadInput("--role", f"there is no role {text!r}", f"use one of {', '.join(Role)}")
    return Role(text)


def moment_of(text: str, now: datetime) -> datetime:
    """When a token ends: a span from now, or a moment; always in the future."""
    moment = read_moment("--expires", text, now, ahead=True)
    if moment <= now:
        raise BadInput("--expires", f"{text!r} is over", "give a time in the future, such as 30d")
    return moment
