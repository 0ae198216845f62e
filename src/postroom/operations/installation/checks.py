"""Checks of `postroom doctor`: small functions that compare one fact with what Postroom relies on."""

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

from postroom.core.counted import counted
from postroom.core.outbound.delivery_health import DeliveryHealth
from postroom.operations.rules.model import EndedLine
from postroom.settings.locations import EARLIER_DATA_DIR, Locations
from postroom.settings.reading import Settings
from postroom.settings.stored import is_given, why_unusable
from postroom.store.engine.write_ahead_log import CROWDED_BYTES, LONG_BYTES
from postroom.store.jobs.leaders import OverdueWork
from postroom.system.folder_errors import owner_of, why_database_unusable
from postroom.system.http_server.listening import PAGES_INSTEAD, refusal
from postroom.system.private_files import DATABASE, exposed_files
from postroom.words.outbound import CONDITIONS, trouble_in_words

Verdict = Literal["ok", "warn", "fail"]
Facts = Mapping[str, object]

MIB = 1024 * 1024
SKEW_WARNS_S = 1.0
SKEW_FAILS_S = 5.0
OLDEST_POSTGRES = 14
OLD_BACKUP = timedelta(days=8)
CERTIFICATE_WARNS = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. The remedy says what to do; it is empty if there is nothing to do."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


def passes_if(name: str, good: bool, found: str, remedy: str, otherwise: Verdict = "fail") -> Check:
    return Check(name, "ok", found) if good else Check(name, otherwise, found, remedy)


def interpreter() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return passes_if("interpreter", sys.version_info >= (3, 11), f"Python {version}", "install Python 3.11 or newer")


def backup(made_at: datetime | None, now: datetime) -> Check:
    """The age of the last backup. Its user may make them by other means, so a missing one is no failure."""
    if made_at is None:
        remedy = "make one with `postroom backup FILE`, unless you back up the database by other means"
        return Check("backup", "warn", "`postroom backup` has made none here", remedy)
    found = f"the last was made {counted((now - made_at).days, 'day')} ago, at {made_at:%Y-%m-%d %H:%M} UTC"
    remedy = "make a new one with `postroom backup FILE`, on another disk"
    return passes_if("backup", now - made_at < OLD_BACKUP, found, remedy, "warn")


def certificate(name: str, ends_at: datetime, now: datetime) -> Check:
    """How long a certificate is valid. Renewal usually begins a month before the end."""
    found, left = f"valid until {ends_at:%Y-%m-%d %H:%M} UTC", ends_at - now
    remedy = "renew it; a running server reads the new files within a minute"
    return passes_if(name, left > CERTIFICATE_WARNS, found, remedy, "fail" if left <= timedelta(0) else "warn")


def data_dir(folder: Path) -> Check:
    if problem := why_database_unusable(folder / DATABASE):
        found, _, remedy = problem.partition("; ")
        return Check("data folder", "fail", found, remedy)
    if not folder.exists():
        remedy = "nothing to do for a new installation: the first start creates it; otherwise set --data-dir"
        return Check("data folder", "warn", f"{folder} does not exist", remedy)
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remedy = "allow the user that runs Postroom to write there, or set --data-dir"
        return Check("data folder", "fail", f"{folder} cannot be written: {error.strerror}", remedy)
    if owner := owner_of(folder):
        remedy = f"run Postroom as {owner}, who may be unable to use files that others have made there"
        return Check("data folder", "warn", f"{folder} belongs to {owner}", remedy)
    return Check("data folder", "ok", f"{folder} can be written")


def file_modes(folder: Path) -> Check:
    """Check that only the owner can read Postroom's data."""
    loose = exposed_files(folder)
    found = ", ".join(f"{each.path.name} ({each.mode:03o})" for each in loose[:5]) or "folders 0700, files 0600"
    named = " ".join(shlex.quote(str(each.path)) for each in loose[:5])
    remedy = f"start Postroom, which fixes them, or run `chmod go= {named}`"
    return passes_if("file modes", not loose, f"others can read: {found}" if loose else found, remedy)


def settings_file(locations: Locations, exposed: Path | None) -> Check:
    """Name the settings file in effect. `exposed` is the file if it contains secrets and others can read it."""
    if exposed is not None:
        problem = f"{exposed} contains secrets, and others can read it"
        remedy = f"run `chmod 600 {shlex.quote(str(exposed))}`, and replace the secrets if others could have read them"
        return Check("settings file", "fail", problem, remedy)
    if locations.file is None:
        return Check("settings file", "ok", f"there is none; it may be {' or '.join(map(str, locations.searched))}")
    return Check("settings file", "ok", str(locations.file))


def other_folder(folder: Path, is_of_demo: bool) -> Check:
    """Name another folder in which Postroom has kept data. One of an earlier version is probably forgotten."""
    found = f"{folder}, {'of the demo' if is_of_demo else 'not in use here'}"
    if folder.name != EARLIER_DATA_DIR:
        return Check("other data", "ok", found)
    remedy = f"look into it with `--data-dir {folder}`; delete it when you no longer need it"
    return Check("other data", "warn", found, remedy)


def earlier_place(advice: str) -> Check:
    """Warn that the data or the settings in use depend on the current folder."""
    found, _, remedy = advice.partition("; ")
    return Check("current folder", "warn", found, remedy)


def disk_space(folder: Path, reserve_mib: int) -> Check:
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free_mib = shutil.disk_usage(existing).free // MIB
    remedy = "free some space: below the reserve (`disk_reserve_mib`) no new mail is accepted"
    verdict: Verdict = "fail" if free_mib < reserve_mib else "warn"
    found = f"{free_mib} MiB free, reserve {reserve_mib} MiB"
    return passes_if("disk space", free_mib >= 2 * reserve_mib, found, remedy, verdict)


def bind(host: str, exposed: Sequence[str], allowed: bool, sign_in: bool, localhost_only: bool = False) -> Check:
    """Check who can reach the pages, and whether they ask for a sign-in."""
    if exposed and not allowed:
        problem, _, remedy = refusal(host, exposed, "web.host", PAGES_INSTEAD).partition("; ")
        return Check("bind", "fail", problem, f"{remedy}; until then nothing starts")
    if exposed:
        how = "answers to localhost only: publish its port on 127.0.0.1" if localhost_only else "with sign-in and TLS"
        return Check("bind", "ok", f"{host} can be reached from other machines ({', '.join(exposed)}), {how}")
    found = f"{host} can be reached from this machine only"
    remedy = "set web.sign_in to true, unless nobody else uses this machine"
    return passes_if("bind", sign_in, found if sign_in else f"{found}, by anyone on it: sign-in is off", remedy, "warn")


def schema(pending: list[str]) -> Check:
    found = f"{len(pending)} migrations pending: {', '.join(pending)}" if pending else "up to date"
    return passes_if("schema", not pending, found, "stop Postroom and run `postroom upgrade`, or `postroom migrate`")


def clock(before: datetime, database: datetime, after: datetime) -> Check:
    """Check the skew. The database's clock was read between `before` and `after`: only what lies outside is skew."""
    ahead = (database - after).total_seconds()
    behind = (before - database).total_seconds()
    skew = max(ahead, behind, 0.0)
    remedy = "synchronise both clocks by NTP: leases and schedules compare the times of both machines"
    verdict: Verdict = "fail" if skew > SKEW_FAILS_S else "warn"
    return passes_if("clock", skew <= SKEW_WARNS_S, f"{skew:.1f} s off from the database", remedy, verdict)


def leader(now: datetime, holder: str | None, lease_until: datetime | None, left: OverdueWork) -> Check:
    """Check that due work is being done. Having no leader while nothing runs is not a fault."""
    leads = holder is not None and lease_until is not None and lease_until >= now
    found = f"{holder} is the leader" if leads else "there is no leader"
    if left:
        found += f"; {left.due_jobs} due jobs and {left.dead_workers} dead workers' jobs are not being handled"
    remedy = (
        "start `postroom serve` or `postroom worker`; if one is running, read its log, and synchronise the clock by NTP"
    )
    return passes_if("leader", not left, found, remedy)


def written_ahead(count: int) -> Check:
    """Warn that jobs or mail wait for a time that was stored by a clock which was ahead."""
    what = "1 job or mail waits" if count == 1 else f"{count:,} jobs and mails wait"
    found = f"{what} for a time that was stored by a clock running ahead"
    remedy = "start `postroom serve`, which corrects this within a minute; if it stays, synchronise the clock by NTP"
    return Check("stored times", "warn", found, remedy)


def protected_label(name: str, now_called: str | None) -> Check:
    """Warn that a protected label was renamed or no longer exists in any mailbox."""
    forget = f"`postroom protect remove label {shlex.quote(name)}`"
    if now_called is None:
        remedy = f"create the label in the mailbox again, or remove the protection with {forget}"
        return Check("protected label", "warn", f"no mailbox has the label {name!r}: it protects nothing", remedy)
    protect = f"`postroom protect add label {shlex.quote(now_called)}`"
    found = f"the label {name!r} is now called {now_called!r}; mail with it is still protected"
    return Check("protected label", "warn", found, f"{protect}, then {forget}")


def outgoing(health: DeliveryHealth) -> Check:
    """Report the worst trouble of outgoing mail."""
    if not health.troubles:
        return Check("outgoing mail", "ok", CONDITIONS["healthy"][1])
    problem, remedy = trouble_in_words(health.troubles[0])
    more = len(health.troubles) - 1
    also = f" And {counted(more, 'other trouble')}: see `postroom outbound stats`." if more else ""
    return Check("outgoing mail", "fail" if health.condition == "failing" else "warn", f"{problem}{also}", remedy)


def stored_settings(start: Settings, stored: Mapping[str, object]) -> list[Check]:
    """Report the settings that were changed while Postroom ran; warn of those that this version cannot use."""
    unusable = {name: why for name, value in stored.items() if (why := why_unusable(name, value)) is not None}
    overruled = [name for name in stored if name not in unusable and is_given(start, name)]
    used = [name for name in stored if name not in unusable and name not in overruled]
    found = [f"changed here: {', '.join(used)}"] if used else []
    found += [f"overruled by the file or the environment: {', '.join(overruled)}"] if overruled else []
    name = "changed settings"
    return [
        *([Check(name, "ok", "; ".join(found))] if found else []),
        *(
            Check(name, "warn", f"{each} is ignored: {why}", f"forget it with `postroom settings reset {each}`")
            for each, why in unusable.items()
        ),
    ]


def ended_shares(lines: Sequence[EndedLine]) -> Check:
    """Warn that mail waits, since its senders have used up their shares of the model's budget."""
    names = ", ".join(f"{each.who} ({counted(each.messages, 'message')})" for each in lines[:3])
    more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    remedy = (
        "nothing to do: it is decided after midnight or stays where it is; `postroom model status` shows the shares; "
        "raise model.max_cents_per_day or model.sender_share if this is mail that you want"
    )
    return Check("model budget", "warn", f"shares of today's budget have ended: {names}{more}", remedy)


def sqlite_durability(facts: Facts) -> list[Check]:
    remedy = "no other program may change these: stop other programs that open the file, then restart Postroom"
    journal, synchronous = str(facts["journal_mode"]).lower(), str(facts["synchronous"]).lower()
    return [
        passes_if("journal", journal == "wal", f"journal_mode={journal}", remedy),
        passes_if("durability", synchronous in {"2", "3", "full", "extra"}, f"synchronous={synchronous}", remedy),
        integrity(str(facts["quick_check"])),
        sqlite_library(str(facts["sqlite_version"])),
    ]


def integrity(found: str) -> Check:
    if found == "not checked":
        remedy = "too much is being written; run it again at a quieter time"
        return Check("integrity", "warn", "quick_check: not done", remedy)
    return passes_if("integrity", found == "ok", f"quick_check: {found}", "restore the file from a backup")


def write_ahead_log(size: int, holders: Sequence[int], room: int) -> Check:
    """Check the log's size: it grows only while some process keeps reading from an old snapshot. `room` is the free
    space beyond the reserve; a log that is longer than that stops intake.
    """
    who = f"process {', '.join(map(str, holders))}" if holders else "the process"
    is_refused = size >= LONG_BYTES and size > room
    since = "now" if is_refused else f"from {max(room, LONG_BYTES) // MIB:,} MiB on"
    remedy = f"stop {who} that reads from an old snapshot; {since} nothing more is accepted"
    verdict: Verdict = "fail" if is_refused else "warn"
    return passes_if("write-ahead log", size < CROWDED_BYTES, f"{size // MIB} MiB", remedy, verdict)


def sqlite_library(version: str) -> Check:
    """Versions 3.7.0 to 3.51.2 can damage a WAL file that two connections checkpoint at once; two got a backport."""
    numbers = numbers_of(version)
    fixed = numbers >= (3, 51, 3) or (3, 50, 7) <= numbers < (3, 51) or (3, 44, 6) <= numbers < (3, 45)
    remedy = "upgrade the apsw package, which brings its own SQLite: this one has the WAL-reset bug (fixed in 3.51.3)"
    return passes_if("sqlite library", fixed, f"SQLite {version}", remedy)


def postgres_durability(facts: Facts, unsafe_allowed: bool) -> list[Check]:
    return [
        _postgres_switch(facts, "fsync", {"on", "true"}, unsafe_allowed),
        _postgres_switch(facts, "full_page_writes", {"on", "true"}, unsafe_allowed),
        _postgres_switch(
            facts, "synchronous_commit", {"on", "true", "local", "remote_write", "remote_apply"}, unsafe_allowed
        ),
        postgres_version(str(facts["server_version"])),
    ]


def _postgres_switch(facts: Facts, name: str, safe: set[str], unsafe_allowed: bool) -> Check:
    value = str(facts[name]).lower()
    remedy = f"set {name} to on in postgresql.conf: as it is, acknowledged mail can be lost in a crash"
    return passes_if(name, value in safe, f"{name}={value}", remedy, "warn" if unsafe_allowed else "fail")


def postgres_version(version: str) -> Check:
    """Check the version, given as `16.4 (Debian …)` or as the number 160004."""
    major = numbers_of(version)[0]
    major = major // 10_000 if major >= 10_000 else major
    remedy = f"upgrade the server to PostgreSQL {OLDEST_POSTGRES} or newer"
    return passes_if("server version", major >= OLDEST_POSTGRES, f"PostgreSQL {version}", remedy)


def numbers_of(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3]) or (0,)
