"""The commands around actions: the kill switch, protection, what was done and why, undo, and deciding anew."""

import io
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from postroom.core.actions.action import Actor, label_change
from postroom.core.actions.safety import Policy
from postroom.core.actions.undo import irreversible_hint, undo_hint
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.store.actions import actions, pauses, undos
from postroom.store.engine.codecs import time_text
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import undo_job
from postroom.store.people.audit import AuditView, Signature, list_audit
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from support.mail import done, keep_mail
from support.product import decided_action
from support.shell import Shell, on_database

INBOX = frozenset({"INBOX"})


@pytest.fixture
def archived(shell: Shell) -> UUID:
    """An archived message; the id of the action."""
    assert shell("migrate") == 0

    async def archive(database: Database) -> UUID:
        action_id, _ = await decided_action(database, wall_clock, max_attempts=8, rule_name="receipts")
        token = new_id()
        await database.run(jobs.open_lease(token, "worker", wall_clock(), wall_clock()))
        (job,) = await database.run(jobs.claim(token, 1, wall_clock()))
        await database.run(actions.begin_action(job, action_id, 20, wall_clock()))
        hint = undo_hint("archive", INBOX, label_change("archive").effective(INBOX))
        await database.run(actions.complete_action(job, action_id, actions.DoneChange(frozenset(), hint), wall_clock()))
        await database.run(jobs.close_lease(token, wall_clock()))
        return action_id

    return on_database(shell, archive)


def audited(shell: Shell) -> list[AuditView]:
    """The newest first."""
    return on_database(shell, lambda database: database.run(list_audit(10)))


def undo_jobs(shell: Shell) -> list[str]:
    assert shell("jobs", "list", "--type", "undo.action", "--json") == 0
    return [row["payload"]["original_action_id"] for row in shell.json()]


def test_what_was_done_is_listed_and_explained(shell: Shell, archived: UUID) -> None:
    assert shell("actions", "list", "--json") == 0
    (row,) = shell.json()
    assert (row["id"], row["action_type"], row["state"], row["undone"]) == (str(archived), "archive", "completed", None)
    assert shell("actions", "explain", row["message_id"], "--json") == 0
    (told,) = shell.json()
    assert [each["rationale"] for each in told["decisions"]] == ["a rule"]
    assert [each["id"] for each in told["actions"]] == [str(archived)]
    assert shell("actions", "list", "--state", "done") == 2
    assert "use one of" in shell.err


def test_one_action_is_undone(shell: Shell, archived: UUID) -> None:
    assert shell("undo", str(archived), "--dry-run", "--json") == 0
    assert shell.json() == [{"actions": 1, "messages": 1, "dry_run": True}]
    assert undo_jobs(shell) == []
    assert shell("undo", str(archived)) == 0
    assert shell.out == "It is being undone.\n"
    assert undo_jobs(shell) == [str(archived)]
    (entry,) = audited(shell)
    assert (entry.action, entry.object_type, entry.object_id) == ("action.undo", "action", str(archived))


def test_all_that_was_hidden_is_shown_and_brought_back_by_one_command(shell: Shell, archived: UUID) -> None:
    """What a rule did stays done; what the model hid is brought back."""
    assert shell("undo", "--hidden") == 0
    assert shell.out == "Nothing to undo.\n"

    async def hide(database: Database) -> None:
        await done(database, wall_clock, await keep_mail(database, wall_clock, 7, subject="Offer"), "model", hides=True)

    on_database(shell, hide)
    assert shell("undo", "--hidden", "--dry-run", "--json") == 0
    (row,) = shell.json()
    assert (row["actions"], row["messages"], row["dry_run"]) == (1, 1, True)
    assert [(each["subject"], each["what"]) for each in row["hidden"]] == [("Offer", "archive it")]
    assert shell("undo", "--hidden", "--dry-run") == 0
    assert "Offer" in shell.out
    assert "Would undo 1 action on 1 message." in shell.out
    assert undo_jobs(shell) == []
    assert shell("undo", "--hidden") == 0
    assert shell.out == "Undoing 1 action on 1 message.\n"
    assert len(undo_jobs(shell)) == 1
    assert str(archived) not in undo_jobs(shell)
    assert shell("undo", str(archived), "--hidden") == 2


def test_an_undo_that_is_asked_for_again_is_the_same_undo(shell: Shell, archived: UUID) -> None:
    async def begin(database: Database) -> tuple[UUID, Job]:
        view, *_ = await database.run(actions.list_actions(1))
        token, undo = new_id(), new_id()
        await database.run(jobs.enqueue_many([undo_job(CATALOGUE, view.account_id, (archived,))], wall_clock()))
        await database.run(jobs.open_lease(token, "worker", wall_clock(), wall_clock()))
        (job,) = await database.run(jobs.claim(token, 1, wall_clock()))
        await database.run(undos.begin_undo(job, archived, view.account_id, undo, wall_clock()))
        return undo, job

    undo, job = on_database(shell, begin)
    assert shell("undo", str(archived), "--json") == 0
    (row,) = shell.json()
    assert (row["state"], row["job_id"]) == ("executing", str(job.id))
    ending = undos.complete_undo(job, undo, INBOX, irreversible_hint("apply_label"), None, wall_clock())
    on_database(shell, lambda database: database.run(ending))
    assert shell("undo", str(archived)) == 0
    assert shell.out == "It is already undone.\n"
    assert shell("undo", "--since", "7d") == 0
    assert shell.out == "Nothing to undo.\n"
    assert undo_jobs(shell) == [str(archived)]


def test_what_a_rule_did_is_undone_after_the_rule_was_removed_and_the_request_is_audited(
    shell: Shell, archived: UUID
) -> None:
    assert shell("undo", "--rule", "receipts", "--since", "7d", "--dry-run") == 0
    assert audited(shell) == []
    assert shell("undo", "--rule", "receipts", "--since", "7d", "--json") == 0
    assert shell.json()[0]["actions"] == 1
    assert undo_jobs(shell) == [str(archived)]
    (entry,) = audited(shell)
    assert (entry.action, entry.role) == ("actions.undo", "admin")
    assert entry.actor.startswith("cli:")
    since = datetime.fromisoformat((entry.after or {})["since"])
    assert timedelta(days=7) <= datetime.now(UTC) - since < timedelta(days=8)
    assert entry.after == {"rule": "receipts", "since": time_text(since), "actions": 1, "messages": 1}


def test_everything_of_a_time_is_undone(shell: Shell, archived: UUID) -> None:
    assert shell("undo", "--since", "1h", "--until", "30m", "--json") == 0
    assert shell.json()[0]["actions"] == 0
    assert shell("undo", "--since", "7d", "--json") == 0
    assert shell.json()[0]["actions"] == 1
    assert undo_jobs(shell) == [str(archived)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "name an action"),
        (("--since", "yesterday"), "--since"),
        (("--rule", "nothing"), "there is no rule"),
        ((str(UUID(int=7)),), "there is no action"),
        ((str(UUID(int=7)), "--since", "7d"), "one or the other"),
    ],
)
def test_what_cannot_be_undone_says_why(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    assert shell("migrate") == 0
    assert shell("undo", *arguments) in (1, 2)
    assert problem in shell.err


def by_agent(shell: Shell) -> tuple[str, list[UUID]]:
    """The id of an agent's token, and what it has archived; a rule has archived something too."""
    assert shell("token", "create", "--role", "agent", "--name", "assistant", "--json") == 0
    token = shell.json()[0]["id"]

    async def archive(database: Database) -> list[UUID]:
        agent = f"token:{token}"
        asking: list[tuple[Actor, str]] = [("agent", agent), ("agent", agent), ("rule", "test")]
        found: list[UUID] = []
        for number, (actor, asked_by) in enumerate(asking):
            message = await keep_mail(database, wall_clock, number, sender=f"ida{number}@shop.example")
            found.append(await done(database, wall_clock, message, actor, asked_by))
        return found[:2]

    return token, on_database(shell, archive)


@pytest.mark.parametrize("named", ["by its name", "by digits of its id"])
def test_what_an_agent_did_is_shown_and_then_undone(shell: Shell, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    token, archived = by_agent(shell)
    name = "assistant" if named == "by its name" else token[-8:]
    assert shell("undo", "--by", name, "--dry-run") == 0
    assert "archive  ida1@shop.example  Hello" in shell.err
    assert shell.out == "Would undo 2 actions on 2 messages.\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("undo", "--by", name) == 1
    assert "Undo 2 actions?" in shell.err
    assert undo_jobs(shell) == []
    assert shell("undo", "--by", name, "--yes", "--json") == 0
    assert sorted(undo_jobs(shell)) == sorted(map(str, archived))
    assert audited(shell)[0].after == {"by": name, "actions": 2, "messages": 2}
    assert shell("undo", "--by", "nobody") == 1
    assert "there is no token 'nobody'" in shell.err
    assert shell("undo", "--by", "model", "--yes") == 0
    assert shell.out == "Nothing to undo.\n"


def test_resuming_shows_what_it_would_release_and_asks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("token", "create", "--role", "agent", "--name", "assistant", "--json") == 0
    token = shell.json()[0]["id"]

    async def ask(database: Database) -> None:
        agents = Agents(ActionRequests(database, CATALOGUE, Policy(trust_agents=True), wall_clock))
        for number in range(2):
            signed = Signature(new_id(), f"token:{token}", "agent")
            await agents.propose(await keep_mail(database, wall_clock, number), "archive", {}, "x", signed)

    on_database(shell, ask)
    assert shell("pause") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("resume") == 1
    assert "2 × archive, asked for by the agent 'assistant'" in shell.err
    assert on_database(shell, lambda database: database.run(pauses.standing_pauses()))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert shell("resume") == 0
    assert shell("pause") == 0
    assert shell("resume", "--yes", "--json") == 0
    assert [(each["was_paused"], each["jobs_released"]) for each in shell.json()] == [(True, 0)]


def test_the_kill_switch_is_set_and_released(shell: Shell) -> None:
    assert shell("migrate") == 0
    assert shell("pause", "--reason", "on holiday") == 0
    assert "nothing is changed in any mailbox" in shell.out
    (pause,) = on_database(shell, lambda database: database.run(pauses.standing_pauses()))
    assert (pause.scope, pause.reason) == ("all", "on holiday")
    assert shell("resume", "--json") == 0
    assert [(each["was_paused"], each["jobs_released"]) for each in shell.json()] == [(True, 0)]
    assert shell("resume") == 0
    assert shell.out == "Nothing was paused.\n"
    assert shell("pause", "--account", "nobody@example.com") == 1
    assert "nobody@example.com" in shell.err


def test_senders_domains_and_labels_are_protected(shell: Shell) -> None:
    assert shell("migrate") == 0
    assert shell("protect", "add", "sender", "Ann@Shop.example", "--reason", "a friend") == 0
    assert shell("protect", "add", "label", "Keep") == 2
    assert "protect nothing" in shell.err
    assert "postroom labels sync" in shell.err
    assert shell("protect", "add", "label", "STARRED") == 0
    assert shell("protect", "list", "--json") == 0
    assert [(row["kind"], row["value"]) for row in shell.json()] == [
        ("label", "starred"),
        ("sender", "ann@shop.example"),
    ]
    assert shell("protect", "remove", "sender", "ANN@shop.example") == 0
    assert shell("protect", "remove", "sender", "ann@shop.example") == 1
    assert shell("protect", "add", "sender", "no address") == 2
    assert "sender" in shell.err


def test_a_message_is_decided_on_again(shell: Shell, archived: UUID) -> None:
    assert shell("actions", "list", "--json") == 0
    message = shell.json()[0]["message_id"]
    assert shell("reclassify", message) == 0
    told = shell.out
    assert shell("jobs", "list", "--type", "classify", "--state", "queued", "--json") == 0
    (job,) = shell.json()
    batch = job["payload"]["batch_id"]
    assert told.splitlines() == [
        "Deciding again about 1 message.",
        f"`postroom undo --batch {batch}` takes back the resulting actions.",
    ]
    assert job["payload"]["again"] is True
    assert job["idempotency_key"].endswith(":2")
    (entry,) = audited(shell)
    assert (entry.action, entry.object_id, entry.after) == ("messages.reclassify", batch, {"messages": 1})
    assert shell("reclassify", "--since", "7d", "--json") == 0
    assert shell.json()[0]["messages"] == 0
    assert shell("reclassify") == 2


def test_a_message_is_decided_on_again_once_at_a_time_and_again_after_that_was_canceled(
    shell: Shell, archived: UUID
) -> None:
    assert shell("actions", "list", "--json") == 0
    message = shell.json()[0]["message_id"]
    counts: list[int] = []
    for _ in range(2):
        assert shell("reclassify", message, "--json") == 0
        counts.append(shell.json()[0]["messages"])
    assert shell("jobs", "list", "--type", "classify", "--state", "queued", "--json") == 0
    assert shell("jobs", "cancel", shell.json()[0]["id"]) == 0
    assert shell("reclassify", message, "--json") == 0
    counts.append(shell.json()[0]["messages"])
    assert counts == [1, 0, 1]
