"""`postroom backfill`: plan, estimate, consent, watch, and what is refused."""

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from postroom.interfaces.cli import backfill as command
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, SampledMailbox, read_sample
from postroom.store.backfill import backfill
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.shell import Shell
from support.store.fault_cases_backfill import ENDPOINT, OWNER, active, created, load, reporting, signed
from support.store.fault_cases_mail import keep_account as keep_other
from support.store.fault_cases_registry import signed as admin
from support.store.job_setup import JobSetup

NOBODY = "01997000-0000-7000-8000-000000000000"
FINANCE = ("--category", "finance", "--from", "2024-01-01", "--to", "2024-01-31")
FOUND = {
    "total": {"counted": 1_000, "about": 1_000},
    "candidates": {"counted": 400, "about": 400},
    "categories": {"finance": {"counted": 400, "about": 400}},
    "queries": 1,
    "sample": {"read": 200, "in_category": 120, "full": 100, "metadata": 20, "skipped": 0},
}


@pytest.fixture(autouse=True)
def mailbox(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> list[dict[str, Any]]:
    """A connector that answers at once, and what it was asked; and the model that reads the mail."""
    asked: list[dict[str, Any]] = []

    async def sampled(
        _self: BackfillEstimates, _identity: str, names: Sequence[str], arguments: dict[str, Any]
    ) -> SampledMailbox:
        asked.append(arguments)
        return read_sample({**FOUND, "categories": dict.fromkeys(names, FOUND["candidates"])}, names)

    monkeypatch.setattr(BackfillEstimates, "_sample", sampled)
    for name, value in {"PROVIDER": "openai", "NAME": "gpt-test", "BASE_URL": "http://127.0.0.1:1/v1"}.items():
        monkeypatch.setenv(f"POSTROOM_MODEL_{name}", value)
    for name in ("INPUT", "OUTPUT"):
        monkeypatch.setenv(f"POSTROOM_MODEL_{name}_CENTS_PER_MILLION", "300")
    return asked


def today() -> date:
    """Ask again after what is tested: it may be another day by then."""
    return datetime.now(UTC).date()


def on_the_desk(shell: Shell, use: Callable[[JobSetup], Awaitable[Any]]) -> Any:
    async def opened() -> Any:
        database = await open_database(shell.folder / "postroom-data", None)
        try:
            return await use(JobSetup(database, ManualClock()))
        finally:
            await database.close()

    found = asyncio.run(opened())
    shell.capture.readouterr()
    return found


async def with_account(setup: JobSetup) -> None:
    """The account, whose first backfill is over."""
    id = await created(setup)
    await setup.database.run(backfill.cancel_backfill(id, setup.clock(), signed()))


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))


def test_the_plan_shows_windows_and_what_is_skipped(shell: Shell) -> None:
    assert shell("backfill", "plan") == 0
    for category in ("finance", "health", "relationship", "travel", "Newsletters are skipped"):
        assert category in shell.out
    first = today()
    assert shell("backfill", "plan", "--json") == 0
    plan = {each["category"]: each for each in shell.json()}
    assert plan["health"]["date_from"] == "1970-01-01"
    assert first <= date.fromisoformat(plan["travel"]["date_to"]) <= today()


def test_an_estimate_is_shown_with_cost_time_and_its_basis(shell: Shell, mailbox: list[dict[str, Any]]) -> None:
    on_the_desk(shell, with_account)
    assert shell("backfill", "estimate", *FINANCE) == 0
    assert "finance, from 2024-01-01 to 2024-01-31" in shell.out
    assert "$6.00, from " in shell.out
    assert "$30.00 for everything (80 % saved)" in shell.out
    assert "About 4 hours at 100 messages an hour" in shell.out
    assert "2, since a day may cost $5.00" in shell.out
    assert "200 of 400 messages were read as a sample" in shell.out
    assert mailbox == [
        {"categories": ["finance"], "date_from": "2024-01-01", "date_to": "2024-01-31", "time_zone": "UTC"}
    ]
    assert shell("backfill", "estimate", *FINANCE, "--rate", "400", "--cap", "1000", "--json") == 0
    (row,) = shell.json()
    assert (row["cost_cents"]["expected"], row["hours_at_rate"], row["days_at_cap"]) == (600, 1.0, 1)
    assert row["endpoint_identity"] == ENDPOINT


def test_the_whole_plan_is_estimated_with_one_command(shell: Shell) -> None:
    on_the_desk(shell, with_account)
    assert shell("backfill", "estimate", "--plan", "--json") == 0
    assert [row["target_categories"] for row in shell.json()] == [["finance"], ["health"], ["relationship"], ["travel"]]


def test_without_a_terminal_consent_must_be_given(shell: Shell, mailbox: list[dict[str, Any]]) -> None:
    on_the_desk(shell, with_account)
    assert shell("backfill", "create", *FINANCE) == 2
    assert "--consent" in shell.err
    assert mailbox == []
    assert shell("backfill", "create", *FINANCE, "--consent", "--json") == 0
    (row,) = shell.json()
    assert (row["status"], row["overlaps"], row["mode"], row["acts"]) == ("pending", [], "batch", False)
    assert "$6.00" in shell.err


def test_on_a_terminal_it_asks_and_a_no_creates_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    on_the_desk(shell, with_account)
    at_a_terminal(monkeypatch, "no\n")
    assert shell("backfill", "create", *FINANCE) == 1
    assert "Do you agree to have this old mail read" in shell.out
    assert shell("backfill", "list", "--status", "pending", "--json") == 0
    assert shell.json() == []
    at_a_terminal(monkeypatch, "yes\n")
    assert shell("backfill", "create", *FINANCE, "--background", "--resume-daily", "--act") == 0
    assert shell("backfill", "list", "--status", "pending", "--json") == 0
    (row,) = shell.json()
    assert (row["mode"], row["resume_daily"], row["acts"]) == ("background", True, True)


def test_all_of_the_plan_is_created_with_one_command_and_consent_is_audited(shell: Shell) -> None:
    on_the_desk(shell, with_account)
    assert shell("backfill", "create", "--plan", "--consent") == 0
    assert shell("backfill", "list", "--status", "pending") == 0
    assert all(category in shell.out for category in ("finance", "health", "relationship", "travel"))

    async def audited(setup: JobSetup) -> list[Any]:
        return [each.after for each in await setup.database.run(list_audit(4, action="backfill.create"))]

    entries = on_the_desk(shell, audited)
    assert len(entries) == 4
    assert all(each["consent"] for each in entries)


def test_an_overlap_is_told_and_safe(shell: Shell) -> None:
    on_the_desk(shell, with_account)
    assert shell("backfill", "create", *FINANCE, "--consent", "--json") == 0
    (first,) = shell.json()
    assert shell("backfill", "create", *FINANCE, "--consent") == 0
    assert f"overlaps with {first['id']}; that is safe: messages are recognised" in shell.out


WRONG = [
    (("--category", "finance", "--from", "2024-02-01", "--to", "2024-01-01"), "is after 2024-01-01, the last day"),
    (("--category", "finance", "--from", "2024-02-01", "--to", "2999-01-01"), "is in the future"),
    (("--category", "finance", "--from", "1969-12-31"), "is before 1970"),
    (("--category", "finance", "--from", "2024-02-30"), "'2024-02-30' is not a day"),
    (("--category", "finanse", "--from", "2024-02-01"), "did you mean 'finance'?"),
    ((*FINANCE, "--account", "mara@lindqvist.exampel"), "did you mean 'mara@lindqvist.example'?"),
    ((*FINANCE, "--rate", "0"), "rate_limit_per_hour: is 0"),
    ((*FINANCE, "--cap", "-5"), "daily_cost_cap_cents: is -5"),
    (("--from", "2024-02-01"), "--category: is missing"),
    (("--category", "finance"), "--from: is missing"),
    (("--plan", "--category", "finance"), "--plan: is combined"),
]


def test_what_is_wrong_is_named(shell: Shell) -> None:
    on_the_desk(shell, with_account)
    for options, problem in WRONG:
        for name in (("estimate",), ("create", "--consent")):
            assert shell("backfill", *name, *options) == 2, options
            assert problem in shell.err


def test_of_several_mailboxes_one_must_be_named(shell: Shell) -> None:
    async def two(setup: JobSetup) -> None:
        await with_account(setup)
        await setup.database.run(await keep_other(setup))

    on_the_desk(shell, two)
    assert shell("backfill", "estimate", *FINANCE) == 2
    assert "--account: is missing" in shell.err
    assert OWNER in shell.err
    for name in (OWNER, ENDPOINT):
        assert shell("backfill", "estimate", *FINANCE, "--account", name) == 0


def test_it_is_paused_resumed_and_canceled(shell: Shell) -> None:
    async def begun(setup: JobSetup) -> str:
        return str((await active(setup)).id)

    id = on_the_desk(shell, begun)
    for name, status in (("pause", "paused"), ("resume", "pending"), ("cancel", "cancelled")):
        assert shell("backfill", name, id, "--reason", "a test") == 0
        assert shell.out == f"{id[-8:]}  {status}\n"
    assert shell("backfill", "resume", id) == 1
    for name in ("show", "pause", "resume", "cancel", "watch"):
        assert shell("backfill", name, NOBODY) == 1
        assert "there is no backfill" in shell.err
    assert shell("backfill", "list", "--status", "lost") == 2
    assert "there is no status 'lost'" in shell.err


@transaction
def found_in(id: str) -> Script[None]:
    yield Text(f"INSERT INTO backfill_found VALUES ('{id}', 'finance', 2023, 4), ('{id}', 'finance', 2024, 1200)")


def test_one_is_shown_beside_its_estimate(shell: Shell) -> None:
    on_the_desk(shell, with_account)
    assert shell("backfill", "create", *FINANCE, "--consent", "--json") == 0
    (row,) = shell.json()
    assert shell("backfill", "show", row["id"]) == 0
    assert "240 ingested (now 0), 200 read by a model (now 0), $6.00 (now $0.00)" in shell.out
    assert "decisions are only recorded" in shell.out
    assert shell("backfill", "show", row["id"], "--json") == 0
    (shown,) = shell.json()
    assert shown["estimated"] == {"to_read": 400, "ingested": 240, "classified": 200, "cost_micros": 6_000_000}
    assert "lease_token" not in shown
    assert (shown["spent_micros"], shown["expected_micros"], shown["found"]) == (0, 0, [])
    on_the_desk(shell, lambda setup: setup.database.run(found_in(row["id"])))
    assert shell("backfill", "show", row["id"]) == 0
    assert "finance 2024: 1,200, 2023: 4" in shell.out
    assert shell("backfill", "show", row["id"], "--json") == 0
    assert shell.json()[0]["found"][1] == {"category": "finance", "year": 2023, "messages": 4}


def test_watching_prints_lines_and_ends_with_the_job(shell: Shell) -> None:
    async def failed(setup: JobSetup) -> str:
        job = await active(setup)
        await setup.database.run(reporting(setup, job, status="error", error="the mailbox burns", rows_skipped=3))
        return str((await load(setup, job.id)).id)

    id = on_the_desk(shell, failed)
    assert shell("backfill", "watch", id, "--every", "0.01") == 1
    assert "3 read" in shell.out
    assert "It failed: the mailbox burns" in shell.out
    assert shell("backfill", "watch", id, "--json") == 1
    (row,) = shell.json()
    assert (row["status"], row["read"]) == ("error", 3)


def test_watching_follows_a_job_until_it_is_over(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def begun(setup: JobSetup) -> str:
        return str((await active(setup)).id)

    id, looks = on_the_desk(shell, begun), 0
    sleep = asyncio.sleep

    async def meanwhile(seconds: float) -> None:
        nonlocal looks
        looks += 1
        database = await open_database(shell.folder / "postroom-data", None)
        try:
            await database.run(backfill.pause_backfill(id, datetime.now(UTC), admin()))  # pyright: ignore[reportArgumentType]
        finally:
            await database.close()
        await sleep(0)

    monkeypatch.setattr("postroom.interfaces.cli.backfill_watch.asyncio.sleep", meanwhile)
    assert shell("backfill", "watch", id) == 0
    assert looks == 1
    lines = shell.out.splitlines()
    assert lines[0].endswith("active")
    assert lines[1].endswith("paused")
    assert "resume" in lines[2]


def test_ctrl_c_stops_watching_and_not_the_backfill(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def begun(setup: JobSetup) -> str:
        return str((await active(setup)).id)

    async def interrupted(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    id = on_the_desk(shell, begun)
    monkeypatch.setattr(command, "watch_backfill", interrupted)
    assert shell("backfill", "watch", id) == 130
    assert "The backfill goes on" in shell.err
    assert shell("backfill", "list", "--status", "active", "--json") == 0
    assert len(shell.json()) == 1


def test_the_last_day_is_today_unless_it_is_given(shell: Shell, mailbox: list[dict[str, Any]]) -> None:
    on_the_desk(shell, with_account)
    first = today()
    since = first - timedelta(days=30)
    assert shell("backfill", "estimate", "--category", "finance", "--from", since.isoformat()) == 0
    assert first <= date.fromisoformat(mailbox[0]["date_to"]) <= today()
