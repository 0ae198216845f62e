"""`postroom doctor`: compares the world with what Postroom relies on, and says what to do."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import typer

from postroom.cli import account_checks, checks
from postroom.cli.application import application_of
from postroom.cli.checks import Check
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import cell, show_json
from postroom.cli.running import with_database
from postroom.core.errors import DatabaseUnavailable, PostroomError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.cli.application import Application
    from postroom.settings.reading import Settings
    from postroom.store.engine.database import Database

app = one_command()


@app.command()
def doctor(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check the machine, the settings, the database, the keys, the accounts and their connectors.

    Exits with 1 when something must be done.
    """
    settings = settings_for(data_dir)
    found = [
        checks.interpreter(),
        checks.data_dir(settings.data_dir),
        *checks.file_modes(settings.data_dir, open_settings_file(data_dir)),
        checks.disk_space(settings.data_dir, settings.disk_reserve_mib),
        bind_check(settings),
        *account_checks.google_checks(settings),
        *hint_checks(settings),
        *database_checks(application_of(context), settings),
    ]
    show(found, as_json)
    if any(check.verdict == "fail" for check in found):
        raise typer.Exit(1)


def open_settings_file(data_dir: "Path | None") -> "Path | None":
    """The settings file, if it holds secrets and others than its owner can read it."""
    from pathlib import Path

    from postroom.settings.reading import known_settings, trace_settings
    from postroom.system.private_files import is_open_to_others

    _, origins = trace_settings({"data_dir": data_dir})
    files = {origins[each.key] for each in known_settings() if each.secret and "/" in origins[each.key]}
    return next((Path(file) for file in sorted(files) if is_open_to_others(Path(file))), None)


def show(found: Sequence[Check], as_json: bool) -> None:
    for check in found:
        if as_json:
            show_json(asdict(check))
            continue
        typer.echo(f"{check.verdict:<4}  {check.name:<{max(len(each.name) for each in found)}}  {cell(check.found)}")
        if check.remedy:
            typer.echo(f"      -> {check.remedy}")


def bind_check(settings: "Settings") -> Check:
    from postroom.http_server.listening import addresses_of, exposed_addresses

    web = settings.web
    try:
        return checks.bind(web.host, exposed_addresses(addresses_of(web.host)), web.allow_unprotected_bind)
    except SettingsError as error:
        problem, _, remedy = str(error).partition("; ")
        return Check("bind", "fail", problem, remedy)


def hint_checks(settings: "Settings") -> Sequence[Check]:
    """Whether the key that pulls hints can be used, where one is set. Without it mail still comes, by polling."""
    from postroom.compose.google import pubsub_key_file

    if (file := pubsub_key_file(settings)) is None:
        return []
    try:
        return [Check("pubsub key", "ok", f"signs as {file.read().email}")]
    except SettingsError as error:
        problem, _, remedy = str(error).partition("; ")
        return [Check("pubsub key", "fail", problem, remedy)]


def database_checks(application: "Application", settings: "Settings") -> Sequence[Check]:
    """Everything that only an opened database can tell. A new installation has none yet, and gets none from us."""
    from postroom.store.engine.opening import FILE

    if settings.database_url is None and not (settings.data_dir / FILE).exists():
        return [Check("database", "warn", "not created yet", "run `postroom migrate`, or start Postroom")]

    async def look(database: "Database") -> list[Check]:
        return await opened_database_checks(database, settings)

    try:
        return with_database(application, settings, look)
    except PostroomError as error:
        from postroom.telemetry.logs import without_secrets

        remedy = (
            "see that the server runs and that POSTROOM_DATABASE_URL is right"
            if isinstance(error, DatabaseUnavailable)
            else "the finding says what is wrong; put that right first"
        )
        return [Check("database", "fail", without_secrets(str(error)), remedy)]


async def opened_database_checks(database: "Database", settings: "Settings") -> list[Check]:
    from postroom.store.engine.migrate import pending
    from postroom.store.engine.opening import FILE
    from postroom.store.engine.write_ahead_log import log_bytes, snapshot_holders
    from postroom.store.health import facts

    before = datetime.now(UTC)
    known = await facts(database)
    after = datetime.now(UTC)
    durability = (
        checks.sqlite_durability(known)
        if database.dialect == "sqlite"
        else checks.postgres_durability(known, settings.allow_unsafe_durability)
    )
    missing = await pending(database)
    if database.dialect == "sqlite":
        file = settings.data_dir / FILE
        durability.append(checks.write_ahead_log(log_bytes(file), snapshot_holders(file)))
    return [
        Check("database", "ok", f"{database.dialect} answers"),
        checks.schema(missing),
        *durability,
        checks.clock(before, cast("datetime", known["now"]), after),
        *([] if missing else [await leader_check(database), *await protection_checks(database)]),
        *([] if missing else await kept_account_checks(database, settings)),
    ]


async def leader_check(database: "Database") -> Check:
    from postroom.store.engine.clock import clock_of
    from postroom.store.leaders import leader, neglected

    now = clock_of(database)()
    holder, until, _ = await database.run(leader("jobs")) or (None, None, 0)
    return checks.leader(now, holder, until, await database.run(neglected(now)))


async def protection_checks(database: "Database") -> list[Check]:
    """Protected labels that were renamed, or that no mailbox has any more."""
    from postroom.store.protection import lost_protection

    return [checks.protected_label(each.value, each.now_called) for each in await database.run(lost_protection())]


async def kept_account_checks(database: "Database", settings: "Settings") -> list[Check]:
    """What the database holds of accounts, compared with the keys that are here, the rules, and the time."""
    from postroom.compose.google import vault_of
    from postroom.store.accounts import list_accounts
    from postroom.store.connectors import last_reports, list_connectors
    from postroom.store.rules import enabled_rules
    from postroom.store.secret_keys import list_key_uses

    now = datetime.now(UTC)
    known = account_checks.Known(
        await database.run(list_accounts()),
        await database.run(enabled_rules()),
        last_reports(await database.run(list_connectors())),
        await database.run(list_key_uses()),
        settings.google.client_id,
    )
    return [
        account_checks.key_check(vault_of(settings), known.keys),
        *account_checks.account_checks(known, now),
        *account_checks.connector_checks(known, now, settings.connector.contacts_stale_s),
    ]
