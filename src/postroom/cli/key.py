"""`postroom key`: look at the keys that seal the accounts' secrets, and replace them."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list
from postroom.cli.running import with_database

if TYPE_CHECKING:
    from postroom.accounts.sealing import Resealing
    from postroom.store.engine.database import Database
    from postroom.vault.sealing import Vault

app = command_group("Look at the keys that seal the accounts' secrets, and replace them.")

COLUMNS = ("id", "source", "seals", "created_at", "first_used_at", "secrets", "dropped_at")


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the keys by their ids: where each is, since when, and how many secrets stand under it. Never the keys."""
    from postroom.compose.google import vault_of

    settings = settings_for(data_dir)
    vault = vault_of(settings)

    async def listed(database: "Database") -> list[dict[str, object]]:
        return await _rows(database, vault)

    show_list(with_database(application_of(context), settings, listed), COLUMNS, as_json=as_json)


@app.command()
def rotate(
    context: typer.Context,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Then forget the older keys, which nothing stands under any more.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a new key and seal every secret with it, while Postroom runs. Older keys stay until they are dropped.

    With keys in the setting `secret_key` none is made: everything is sealed with the first of them.
    """
    from postroom.compose.google import vault_of

    settings = settings_for(data_dir)
    vault = vault_of(settings)
    configured = settings.secret_key is not None

    async def rotated(database: "Database") -> "tuple[Resealing, list[str]]":
        return await _rotate(database, vault, configured, drop_old)

    done, dropped = with_database(application_of(context), settings, rotated)
    row = {"key": done.key_id, "resealed": done.resealed, "unopened": done.unopened, "dropped": dropped}
    if as_json:
        show_json({**row, "unopened": [str(id) for id in done.unopened]})
    else:
        typer.echo(f"{done.key_id}  seals {done.resealed} more secrets")
        for id in dropped:
            typer.echo(f"{id}  dropped")
    if configured and dropped:
        typer.echo("Those of them that are in the setting secret_key can be taken out of it.", err=True)
    for id in done.unopened:
        typer.echo(f"the secret of the account {id} does not open: connect it again", err=True)
    if done.unopened:
        raise typer.Exit(1)


async def _rotate(
    database: "Database", vault: "Vault", configured: bool, drop_old: bool
) -> "tuple[Resealing, list[str]]":
    from postroom.accounts.sealing import drop_other_keys, reseal_all
    from postroom.store.audit import record_audit
    from postroom.store.engine.clock import wall_clock
    from postroom.store.secret_keys import list_key_uses

    await database.run(list_key_uses())  # a database without its schema is told before any key is made
    key_id = vault.known_keys()[0].id if configured else vault.add_key(datetime.now(UTC))
    done = await reseal_all(database, vault, key_id, wall_clock)
    after = {"resealed": done.resealed, "unopened": len(done.unopened)}
    entry = operator_signature().under("key.rotate", "key", key_id, after=after)
    await database.run(record_audit(entry, wall_clock()))
    if not drop_old or done.unopened:
        return done, []
    return done, await drop_other_keys(database, vault, key_id, wall_clock, operator_signature)


async def _rows(database: "Database", vault: "Vault") -> list[dict[str, object]]:
    from postroom.store.secret_keys import list_key_uses

    uses = {use.id: use for use in await database.run(list_key_uses())}
    known = {key.id: key for key in vault.known_keys()}
    seals = next(iter(known), None)
    rows: list[dict[str, object]] = []
    for id in [*known, *(id for id in uses if id not in known)]:
        key, use = known.get(id), uses.get(id)
        rows.append(
            {
                "id": id,
                "source": key.source if key else "not here",
                "seals": id == seals,
                "created_at": key.created_at if key else None,
                "first_used_at": use.first_used_at if use else None,
                "secrets": use.secrets if use else 0,
                "dropped_at": use.dropped_at if use else None,
            }
        )
    return rows
