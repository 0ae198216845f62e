"""Each check of the doctor: what it accepts, what it refuses, and that it says what to do."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from postroom.operations.accounts.account_status import AccountLine
from postroom.operations.installation import checks, use_checks
from postroom.operations.overview.first_steps import FirstStep, FirstSteps, StepName
from postroom.settings.reading import Settings
from postroom.store.engine.serve_lock import serve_lock
from postroom.store.installation.health import NOT_CHECKED

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
SQLITE = {"journal_mode": "wal", "synchronous": 2, "quick_check": "ok", "sqlite_version": "3.53.4"}
POSTGRES = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "server_version": "16.4 (Debian)"}


class Usage(NamedTuple):
    free: int


def verdicts(found: list[checks.Check]) -> dict[str, str]:
    assert all(bool(check.remedy) == (check.verdict != "ok") for check in found)
    return {check.name: check.verdict for check in found}


def test_the_interpreter_these_tests_run_on_is_good_enough():
    assert checks.interpreter().verdict == "ok"


@pytest.mark.parametrize(("version", "verdict"), [((3, 10, 14), "fail"), ((3, 11, 0), "ok"), ((3, 14, 1), "ok")])
def test_python_below_3_11_is_refused(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], verdict: str):
    monkeypatch.setattr("sys.version_info", version)
    assert checks.interpreter().verdict == verdict


def test_a_data_folder_must_be_a_folder_that_can_be_written(tmp_path: Path):
    assert checks.data_dir(tmp_path).verdict == "ok"
    assert list(tmp_path.iterdir()) == []
    assert checks.data_dir(tmp_path / "new").verdict == "warn"
    (tmp_path / "file").touch()
    assert checks.data_dir(tmp_path / "file").verdict == "fail"


def test_work_that_waits_for_a_wrong_time_is_counted_in_words():
    assert verdicts([checks.written_ahead(1)]) == {"stored times": "warn"}
    assert checks.written_ahead(1).found.startswith("1 job or mail waits")
    assert checks.written_ahead(1200).found.startswith("1,200 jobs and mails wait")


@pytest.mark.parametrize(
    ("made_at", "verdict", "found"),
    [
        (None, "warn", "has made none"),
        (NOW - timedelta(days=3, hours=5), "ok", "made 3 days ago"),
        (NOW - timedelta(days=8), "warn", "made 8 days ago"),
    ],
)
def test_the_age_of_the_last_backup_is_told(made_at: datetime | None, verdict: str, found: str):
    check = checks.backup(made_at, NOW)
    assert check.verdict == verdict
    assert found in check.found


@pytest.mark.parametrize(("free_mib", "verdict"), [(511, "fail"), (512, "warn"), (1023, "warn"), (1024, "ok")])
def test_free_space_is_compared_with_the_reserve(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_mib: int, verdict: str
):
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(free_mib * checks.MIB))  # type: ignore[reportUnknownLambdaType]
    assert checks.disk_space(tmp_path / "not" / "there" / "yet", 512).verdict == verdict


def test_a_schema_with_pending_migrations_is_refused_by_their_names():
    assert checks.schema([]).verdict == "ok"
    found = checks.schema(["jobs", "mail"])
    assert found.verdict == "fail"
    assert "jobs, mail" in found.found
    assert "postroom upgrade" in found.remedy


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("seconds", "verdict"), [(0, "ok"), (1, "ok"), (1.1, "warn"), (5, "warn"), (5.1, "fail")])
def test_the_clock_of_the_database_may_differ_by_a_second(sign: int, seconds: float, verdict: str):
    assert checks.clock(NOW, NOW + sign * timedelta(seconds=seconds), NOW).verdict == verdict


def test_a_slow_answer_is_no_skew():
    assert checks.clock(NOW, NOW + timedelta(seconds=4), NOW + timedelta(seconds=9)).verdict == "ok"


def test_sqlite_as_postroom_opens_it_is_durable():
    found = verdicts(checks.sqlite_durability(SQLITE))
    assert set(found.values()) == {"ok"}


@pytest.mark.parametrize(
    ("fact", "value", "name"),
    [
        ("journal_mode", "delete", "journal"),
        ("synchronous", 1, "durability"),
        ("synchronous", "off", "durability"),
        ("quick_check", "*** in database main ***", "integrity"),
        ("sqlite_version", "3.40.1", "sqlite library"),
    ],
)
def test_anything_less_durable_in_sqlite_fails(fact: str, value: object, name: str):
    found = verdicts(checks.sqlite_durability({**SQLITE, fact: value}))
    assert [each for each, verdict in found.items() if verdict == "fail"] == [name]


def test_a_check_that_was_cut_short_because_much_is_written_is_no_damage():
    found = verdicts(checks.sqlite_durability({**SQLITE, "quick_check": NOT_CHECKED}))
    assert found["integrity"] == "warn"


@pytest.mark.parametrize(
    ("mib", "room_mib", "verdict"),
    [
        (0, 900, "ok"),
        (87, 10, "ok"),
        (88, 10, "warn"),
        (111, 10, "warn"),
        (112, 10, "fail"),
        (112, 900, "warn"),
        (900, 900, "warn"),
        (901, 900, "fail"),
    ],
)
def test_a_long_write_ahead_log_is_reported_with_who_holds_it(mib: int, room_mib: int, verdict: str):
    """It stops intake when the disk has no room for it a second time."""
    found = checks.write_ahead_log(mib * checks.MIB, [4711], room_mib * checks.MIB)
    assert (found.verdict, found.found) == (verdict, f"{mib} MiB")
    assert ("4711" in found.remedy) == (verdict != "ok")


@pytest.mark.parametrize("version", ["3.7.0", "3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2"])
def test_a_sqlite_with_the_wal_reset_bug_is_refused(version: str):
    assert checks.sqlite_library(version).verdict == "fail"


@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", "3.53.0", "4.0.0"])
def test_a_sqlite_without_the_wal_reset_bug_is_accepted(version: str):
    assert checks.sqlite_library(version).verdict == "ok"


def test_the_sqlite_that_is_installed_is_accepted():
    import apsw

    assert checks.sqlite_library(apsw.sqlite_lib_version()).verdict == "ok"


def test_postgres_as_shipped_is_durable():
    assert set(verdicts(checks.postgres_durability(POSTGRES, unsafe_allowed=False)).values()) == {"ok"}
    replicated = {**POSTGRES, "synchronous_commit": "remote_apply"}
    assert set(verdicts(checks.postgres_durability(replicated, unsafe_allowed=False)).values()) == {"ok"}


@pytest.mark.parametrize("fact", ["fsync", "synchronous_commit", "full_page_writes"])
def test_anything_less_durable_in_postgres_fails_unless_the_user_allowed_it(fact: str):
    unsafe = {**POSTGRES, fact: "off"}
    assert verdicts(checks.postgres_durability(unsafe, unsafe_allowed=False))[fact] == "fail"
    assert verdicts(checks.postgres_durability(unsafe, unsafe_allowed=True))[fact] == "warn"


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("13.22", "fail"), ("14.0", "ok"), ("18beta1", "ok"), ("130022", "fail"), ("160004", "ok"), ("?", "fail")],
)
def test_postgres_below_14_is_refused(version: str, verdict: str):
    assert checks.postgres_version(version).verdict == verdict


def test_the_time_zone_is_asked_for_where_days_would_begin_at_the_wrong_hour():
    assert use_checks.time_zone("Europe/Berlin", True, "Europe/Paris").verdict == "ok"
    assert use_checks.time_zone("UTC", False, "Etc/UTC").verdict == "ok"
    assert use_checks.time_zone("UTC", False, None).verdict == "ok"
    found = use_checks.time_zone("UTC", False, "Europe/Berlin")
    assert found.verdict == "warn"
    assert "`postroom settings set time_zone Europe/Berlin`" in found.remedy


def test_whoever_serves_the_folder_is_named_and_a_port_that_is_taken_too(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        web = {"port": other.getsockname()[1]}
        (found,) = use_checks.running(Settings(data_dir=tmp_path, web=web))  # type: ignore[arg-type]
        assert (found.verdict, found.remedy.split("`")[1]) == ("warn", "postroom serve --port NUMBER")
        with serve_lock(tmp_path) as note:
            note("http://localhost:8025")
            (found,) = use_checks.running(Settings(data_dir=tmp_path, web=web))  # type: ignore[arg-type]
            assert found.verdict == "ok"
            assert f"process {os.getpid()} at http://localhost:8025, since " in found.found


OK, WARN, FAIL = (checks.Check(name, name, "", f"mend {name}") for name in ("ok", "warn", "fail"))


def test_the_next_thing_to_do_is_what_fails_then_the_setup_then_what_is_doubtful():
    assert use_checks.next_step([OK, WARN, FAIL], "connect") == "fail: mend fail"
    assert use_checks.next_step([OK, WARN], "connect") == "connect"
    assert use_checks.next_step([OK, WARN], None) == "warn: mend warn"
    assert use_checks.next_step([OK], None) == "Everything is fine."
    assert use_checks.by_urgency([OK, WARN, FAIL, OK]) == [FAIL, WARN, OK, OK]


@pytest.mark.parametrize(
    ("next_name", "active", "running", "acts", "command"),
    [
        ("connect", 0, False, None, "postroom init"),
        ("preview", 0, False, None, "postroom serve"),
        ("preview", 1, False, NOW, "postroom serve"),
        ("preview", 0, True, None, "postroom mail list"),
        ("rules", 0, True, None, "postroom init"),
        ("on", 0, True, None, "postroom rules list"),
        ("on", 1, True, None, "postroom account act ada@example.com"),
        ("on", 1, True, NOW, "postroom resume"),
    ],
)
def test_each_step_into_a_new_installation_has_its_command(
    next_name: StepName, active: int, running: bool, acts: datetime | None, command: str
):
    steps = FirstSteps([FirstStep(next_name, False, True)], active, active)
    line = use_checks.step_line(steps, [AccountLine("ada@example.com", "active", acts_from=acts)], is_running=running)
    assert line.split("`")[1] == command
    assert ("changes nothing" in line) == (command == "postroom serve" and acts is None)
