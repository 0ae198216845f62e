"""`postroom approvals`: what waits is shown in full, asked about, and answered once."""

import asyncio
import getpass
import io
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from postroom.store import protection
from postroom.store.audit import Signature
from postroom.store.engine.ids import new_id
from support.clocks import ManualClock
from support.shell import Shell
from support.sqlite import new_sqlite
from support.store.fault_cases_approvals import pending
from support.store.job_setup import JobSetup

T = TypeVar("T")
NOBODY = "01997000-0000-7000-8000-000000000000"


def on_the_desk(
    shell: Shell, migrated: Path, use: Callable[[JobSetup], Awaitable[T]], ago: timedelta = timedelta(0)
) -> T:
    async def opened() -> T:
        folder, clock = shell.folder / "postroom-data", ManualClock()
        clock.now = datetime.now(UTC) - ago
        database = await new_sqlite(folder, migrated)
        try:
            return await use(JobSetup(database, clock))
        finally:
            await database.close()

    return asyncio.run(opened())


@pytest.fixture
def waiting(shell: Shell, migrated_sqlite: Path) -> str:
    """The id of a forward that waits."""
    wanted = {"to": ["boss@example.com", "aide@example.com"], "note": "please look\x1b[2J"}
    return str(on_the_desk(shell, migrated_sqlite, lambda setup: pending(setup, "forward", wanted, actor="rule")))


def states(shell: Shell) -> list[str]:
    assert shell("actions", "list", "--json") == 0
    return [row["state"] for row in shell.json()]


def test_the_list_shows_what_to_whom_why_and_until_when(shell: Shell, waiting: str):
    assert shell("approvals", "list") == 0
    head, row = shell.out.splitlines()
    assert head.split() == ["ID", "WHAT", "TO", "WHOM", "SENDER", "SUBJECT", "DECIDED", "BY", "WHY", "EXPIRES", "AT"]
    for part in (
        waiting,
        "forward",
        "boss@example.com, aide@example.com",
        "a@example.com",
        "it is old",
        "agents propose",
    ):
        assert part in row
    assert shell("approvals", "list", "--json") == 0
    (found,) = shell.json()
    assert (found["id"], found["to_whom"]) == (waiting, ["boss@example.com", "aide@example.com"])


def test_the_exact_action_is_shown_and_confirmed_before_it_is_approved(
    shell: Shell, waiting: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("approvals", "approve", waiting) == 1
    assert "please look" in shell.out
    assert "Do this? [y/N]" in shell.out
    assert "\x1b" not in shell.out
    assert states(shell) == ["awaiting_approval"]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert shell("approvals", "approve", waiting) == 0
    assert states(shell) == ["queued"]


def test_an_approved_action_is_queued_by_name_of_who_approved(shell: Shell, waiting: str):
    assert shell("approvals", "approve", waiting, "--yes", "--json") == 0
    assert shell.json() == [{"id": waiting, "state": "queued"}]
    assert shell("jobs", "list", "--type", "action.gmail", "--json") == 0
    assert [row["idempotency_key"].endswith(waiting) for row in shell.json()] == [True]
    assert shell("approvals", "list", "--json") == 0
    assert shell.json() == []
    assert shell("approvals", "approve", waiting) == 1
    assert f"approved by cli:{getpass.getuser()}" in shell.err


def test_a_rejected_action_keeps_the_reason(shell: Shell, waiting: str):
    assert shell("approvals", "reject", waiting, "--reason", "not to him") == 0
    assert shell.out == f"{waiting}  Rejected: it is not done.\n"
    assert shell("approvals", "show", waiting) == 0
    assert f"rejected by cli:{getpass.getuser()}: not to him" in shell.out
    assert shell("approvals", "approve", waiting, "--yes") == 1
    assert states(shell) == ["rejected"]


def test_what_is_invalid_any_more_is_reported_as_a_failure(shell: Shell, migrated_sqlite: Path):
    async def protected(setup: JobSetup) -> str:
        id = await pending(setup)
        by = Signature(new_id(), "cli:ada", "admin")
        await setup.database.run(protection.protect("sender", "a@example.com", "", by, setup.clock()))
        return str(id)

    id = on_the_desk(shell, migrated_sqlite, protected)
    assert shell("approvals", "approve", id, "--yes") == 1
    assert "the sender is protected" in shell.err
    assert states(shell) == ["canceled"]


def test_what_has_expired_cannot_be_approved(shell: Shell, migrated_sqlite: Path):
    id = on_the_desk(shell, migrated_sqlite, pending, ago=timedelta(hours=25))
    assert shell("approvals", "approve", str(id), "--yes") == 1
    assert "expired" in shell.err


def test_what_does_not_exist_is_an_error_that_says_where_to_look(shell: Shell, waiting: str):
    for command in (("show", NOBODY), ("approve", NOBODY, "--yes"), ("reject", NOBODY)):
        assert shell("approvals", *command) == 1
        assert "`postroom approvals list`" in shell.err
