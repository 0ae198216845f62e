"""`postroom approvals`: what waits is shown in full, asked about, and answered once."""

import asyncio
import getpass
import io
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from postroom.core.actions.safety import Policy
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Role
from postroom.store.actions import protection
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import create_token, mint
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from support.clocks import ManualClock
from support.mail import keep_mail
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
        waiting[-8:],
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
    assert states(shell) == ["approved_pending"]
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
    back = f"approvals take-back {waiting[-8:]}"
    assert f"{waiting[-8:]}  Rejected: it is not done.\nTo take it back within 10 seconds: postroom" in shell.out
    assert shell.out.endswith(f"{back}\n")
    assert shell("approvals", "show", waiting) == 0
    assert f"rejected by cli:{getpass.getuser()}: not to him" in shell.out
    assert shell("approvals", "approve", waiting, "--yes") == 1
    assert states(shell) == ["rejected"]
    assert shell(*back.split()) == 0
    assert shell.out == "It needs your approval again.\n"
    assert states(shell) == ["approved_pending"]


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


def proposed(shell: Shell, migrated: Path, *senders: str) -> None:
    """Two agents, each of which proposes to delete a mail of each sender."""

    async def fill(setup: JobSetup) -> None:
        agents = Agents(ActionRequests(setup.database, CATALOGUE, Policy(), setup.clock))
        for name in ("assistant", "another"):
            token = mint(Role.AGENT, name=name).token
            await setup.database.run(create_token(token, Signature(new_id(), "cli:ada", "admin"), setup.clock()))
            for number, sender in enumerate(senders):
                message = await keep_mail(setup.database, setup.clock, f"{name}-{number}", sender=sender)
                signed = Signature(new_id(), f"token:{token.id}", "agent")
                await agents.propose(message, "delete", {}, "it is old", signed)

    on_the_desk(shell, migrated, fill)


def test_what_is_alike_is_one_line_with_the_name_of_the_agent(shell: Shell, migrated_sqlite: Path):
    proposed(shell, migrated_sqlite, "ida@shop.example", "ida@shop.example", "bob@club.example")
    assert shell("approvals", "list") == 0
    lines = shell.out.splitlines()[1:]
    assert len(lines) == 4
    assert "2 messages" in lines[0]
    assert "ida@shop.example" in lines[0]
    assert "the agent 'assistant'" in lines[0]
    assert shell("approvals", "list", "--each") == 0
    assert len(shell.out.splitlines()) == 1 + 6
    assert shell("approvals", "list", "--by", "another", "--json") == 0
    assert {row["agent"] for row in shell.json()} == {"another"}


def test_a_short_id_is_enough_if_it_is_unique(shell: Shell, waiting: str):
    assert shell("approvals", "show", waiting[-8:]) == 0
    assert waiting in shell.out
    assert shell("approvals", "reject", waiting[-8:-2]) == 0
    assert states(shell) == ["rejected"]
    assert shell("approvals", "show", "abc") == 2


def test_everything_of_one_agent_is_rejected_after_it_was_shown(
    shell: Shell, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
):
    proposed(shell, migrated_sqlite, "ida@shop.example", "bob@club.example")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("approvals", "reject", "--by", "assistant") == 1
    assert "by the agent 'assistant'" in shell.err
    assert "Reject 2 actions?" in shell.err
    assert shell("approvals", "reject", "--by", "assistant", "--yes", "--json") == 0
    assert shell.json() == [{"rejected": 2}]
    assert sorted(states(shell)) == ["approved_pending", "approved_pending", "rejected", "rejected"]
    assert shell("approvals", "reject", "--by", "nobody", "--yes") == 1
    assert "there is no token 'nobody'" in shell.err
    assert shell("approvals", "reject", "--all", "--yes") == 0
    assert shell.out == "Rejected 2 actions.\n"
    assert set(states(shell)) == {"rejected"}


@pytest.mark.parametrize("arguments", [(), ("--all", "--by", "x"), ("abcd1234", "--all")])
def test_what_is_to_be_rejected_is_named_in_one_way(shell: Shell, waiting: str, arguments: tuple[str, ...]):
    assert shell("approvals", "reject", *arguments, "--yes") == 2
    assert states(shell) == ["approved_pending"]


def test_revoking_an_agent_withdraws_what_it_proposed(shell: Shell, migrated_sqlite: Path):
    proposed(shell, migrated_sqlite, "ida@shop.example", "bob@club.example")
    assert shell("token", "list", "--json") == 0
    token = next(row["id"] for row in shell.json() if row["name"] == "assistant")
    assert shell("token", "revoke", token) == 0
    assert shell.out == f"{token[-8:]}  revoked; 2 waiting approvals withdrawn\n"
    assert sorted(states(shell)) == ["approved_pending", "approved_pending", "canceled", "canceled"]
