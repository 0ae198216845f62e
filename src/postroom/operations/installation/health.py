"""All checks of `postroom doctor`: the machine, the settings, the database, the keys, the accounts."""

import os
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

from postroom.backup.make import last_backup
from postroom.core.days import zone_named
from postroom.core.errors import DatabaseUnavailable, PostroomError, SettingsError
from postroom.mailboxes.gmail.from_settings import pubsub_key_file
from postroom.mailboxes.gmail.service_account import ServiceAccountKeyFile
from postroom.operations.accounts import account_checks
from postroom.operations.installation import checks, use_checks
from postroom.operations.installation.checks import Check
from postroom.operations.installation.demo import is_demo
from postroom.operations.installation.live_settings import LiveSettings
from postroom.operations.outbound.outbound_health import outbound_health
from postroom.operations.rules.model import model_status
from postroom.outbound.submission.certificates import BadCertificate, load_pair
from postroom.settings.locations import advise_moving, locations_of_command, other_folders
from postroom.settings.reading import Settings, known_settings, trace_settings
from postroom.settings.stored import is_given
from postroom.settings.submission import SubmissionSettings
from postroom.store.accounts.accounts import list_accounts
from postroom.store.accounts.secret_keys import list_key_uses
from postroom.store.actions.protection import lost_protection
from postroom.store.engine.clock import clock_of
from postroom.store.engine.clock_jumps import count_written_ahead
from postroom.store.engine.database import Database
from postroom.store.engine.migrate import pending
from postroom.store.engine.write_ahead_log import log_bytes, snapshot_holders
from postroom.store.installation.health import facts
from postroom.store.intake.connectors import last_reports, list_connectors
from postroom.store.jobs.leaders import leader, overdue_work
from postroom.store.rules.rules import enabled_rules
from postroom.system.http_server.listening import addresses_of, exposed_addresses
from postroom.system.private_files import DATABASE, is_open_to_others
from postroom.system.wall_clock import Clock, wall_clock
from postroom.telemetry.logs import without_secrets
from postroom.vault.sealing import Vault

NOT_CREATED = Check("database", "warn", "not created yet", "connect a mailbox with `postroom init`, or start Postroom")


def machine_checks(settings: Settings, data_dir: Path | None) -> list[Check]:
    """Run the checks that need no database. `data_dir` is the option under which settings were read."""
    hints_key = pubsub_key_file(settings)
    return [
        checks.interpreter(),
        checks.data_dir(settings.data_dir),
        *_folder_checks(settings.data_dir, data_dir),
        checks.file_modes(settings.data_dir),
        checks.disk_space(settings.data_dir, settings.disk_reserve_mib),
        _bind_check(settings),
        *use_checks.running(settings),
        _zone_check(settings),
        *_certificate_checks(settings.submission, wall_clock()),
        *account_checks.google_checks(settings),
        *([] if hints_key is None else [_hints_key_check(hints_key)]),
    ]


async def database_checks(
    database: Database, settings: Settings, vault: Vault, clock: Clock = wall_clock
) -> list[Check]:
    """Run the checks that need an open database. The settings are those of the file and the environment."""
    live = LiveSettings(settings)
    settings = await live.refresh(database)
    before = clock()
    known = await facts(database)
    after = clock()
    missing = await pending(database)
    return [
        Check("database", "ok", f"{database.dialect} answers"),
        checks.schema(missing),
        *_durability_checks(database, settings, known),
        checks.clock(before, cast("datetime", known["now"]), after),
        checks.backup(last_backup(settings.data_dir), after),
        *([] if missing else [*await _leader_checks(database), *await _protection_checks(database)]),
        *([] if missing else await use_checks.use_checks(database, settings, clock)),
        *([] if missing else await _kept_checks(database, settings, vault, clock())),
        *([] if missing else await _budget_checks(database, settings, clock)),
        *([] if missing else [checks.outgoing(await outbound_health(database, settings.outbound, clock()))]),
        *checks.stored_settings(live.start, {name: each.value for name, each in live.stored.items()}),
    ]


def _folder_checks(folder: Path, named: Path | None) -> list[Check]:
    """Name the settings file, and other folders in which Postroom has kept data."""
    locations = locations_of_command(named)
    advice = advise_moving(locations, folder, os.environ)
    others = other_folders(folder, os.environ, Path.cwd())
    return [
        checks.settings_file(locations, _open_settings_file(named)),
        *([checks.earlier_place(advice)] if advice else []),
        *(checks.other_folder(each, is_demo(each)) for each in others),
    ]


async def schema_checks(database: Database) -> list[Check]:
    """Check what an upgrade has changed."""
    known = await facts(database)
    found = [checks.integrity(str(known["quick_check"]))] if database.dialect == "sqlite" else []
    return [checks.schema(await pending(database)), *found]


async def setup_step(database: Database, settings: Settings, clock: Clock = wall_clock) -> str | None:
    """The next step into a new installation; None when they are behind, or cannot be told yet."""
    return None if await pending(database) else await use_checks.setup_step(database, settings, clock)


def _certificate_checks(given: SubmissionSettings, now: datetime) -> list[Check]:
    """The certificate of the submission server, as it would be read now. A server keeps the last that it could use."""
    if given.certificate_file is None or given.key_file is None:
        return []
    try:
        _, _, ends_at = load_pair(Path(given.certificate_file), Path(given.key_file))
    except BadCertificate as error:
        remedy = "let the user that runs Postroom read submission.certificate_file and key_file, a pair of PEM files"
        return [Check("submission certificate", "fail", f"it cannot be used: {error}", remedy)]
    return [checks.certificate("submission certificate", ends_at, now)]


def unavailable(error: PostroomError, settings: Settings) -> Check:
    """Report that the database could not be opened or read."""
    remedy = (
        "check that the server runs and that POSTROOM_DATABASE_URL is right"
        if isinstance(error, DatabaseUnavailable) and settings.database_url is not None
        else "the finding says what is wrong; fix that first"
    )
    return Check("database", "fail", without_secrets(str(error)), remedy)


def _zone_check(settings: Settings) -> Check:
    return use_checks.time_zone(settings.time_zone, is_given(settings, "time_zone"), use_checks.machine_zone())


def _open_settings_file(data_dir: Path | None) -> Path | None:
    """Return the settings file if it contains secrets and others can read it."""
    _, origins = trace_settings({"data_dir": data_dir})
    files = {origins[each.key] for each in known_settings() if each.secret and "/" in origins[each.key]}
    return next((Path(file) for file in sorted(files) if is_open_to_others(Path(file))), None)


def _bind_check(settings: Settings) -> Check:
    web = settings.web
    try:
        exposed = exposed_addresses(addresses_of(web.host))
        return checks.bind(web.host, exposed, web.may_be_exposed, web.sign_in, web.is_localhost_only)
    except SettingsError as error:
        problem, _, remedy = str(error).partition("; ")
        return Check("bind", "fail", problem, remedy)


def _hints_key_check(file: ServiceAccountKeyFile) -> Check:
    """Check that the key that pulls hints can be used. Without it mail still arrives, by polling."""
    try:
        return Check("pubsub key", "ok", f"signs as {file.read().email}")
    except SettingsError as error:
        problem, _, remedy = str(error).partition("; ")
        return Check("pubsub key", "fail", problem, remedy)


def _durability_checks(database: Database, settings: Settings, known: checks.Facts) -> Sequence[Check]:
    if database.dialect == "postgres":
        return checks.postgres_durability(known, settings.allow_unsafe_durability)
    file = settings.data_dir / DATABASE
    room = shutil.disk_usage(settings.data_dir).free - settings.disk_reserve_mib * checks.MIB
    log = checks.write_ahead_log(log_bytes(file), snapshot_holders(file), room)
    return [*checks.sqlite_durability(known), log]


async def _leader_checks(database: Database) -> list[Check]:
    """Check that due work is being done, and that nothing waits for a time which a wrong clock has stored."""
    now = clock_of(database)()
    holder, until, _ = await database.run(leader("jobs")) or (None, None, 0)
    ahead = await database.run(count_written_ahead(now))
    return [
        checks.leader(now, holder, until, await database.run(overdue_work(now))),
        *([checks.written_ahead(ahead)] if ahead else []),
    ]


async def _budget_checks(database: Database, settings: Settings, clock: Clock) -> list[Check]:
    """Report the senders whose mail waits for the model's budget."""
    if settings.model.provider == "none":
        return []
    status = await model_status(database, settings.model, clock, zone=zone_named(settings.time_zone))
    return [checks.ended_shares(status.ended)] if status.ended else []


async def _protection_checks(database: Database) -> list[Check]:
    """Report protected labels that were renamed or that no mailbox has any more."""
    return [checks.protected_label(each.value, each.now_called) for each in await database.run(lost_protection())]


async def _kept_checks(database: Database, settings: Settings, vault: Vault, now: datetime) -> list[Check]:
    """Check the accounts in the database against the available keys, the rules and the time."""
    known = account_checks.Known(
        await database.run(list_accounts()),
        await database.run(enabled_rules()),
        last_reports(await database.run(list_connectors())),
        await database.run(list_key_uses()),
        settings.google.client_id,
    )
    return [
        account_checks.key_check(vault, known.keys),
        *account_checks.account_checks(known, now),
        *account_checks.connector_checks(known, now, settings.connector.contacts_stale_s),
    ]
