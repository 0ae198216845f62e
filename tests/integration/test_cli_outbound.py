"""`postroom outbound`: outgoing mail, why it waits, and what a person settles."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from postroom.core.outbound.rollout import Rollout
from postroom.store.actions import actions, pauses
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.outbound import outbound
from postroom.store.people.audit import Signature, list_audit
from support.clocks import ManualClock
from support.shell import Shell
from support.store.fault_cases_outbound import DRAFT, LEASE, doubted, leased_outbound
from support.store.job_setup import JobSetup
from support.store.outbound_traffic import Traffic

NOBODY = "01997000-0000-7000-8000-000000000000"


def on_the_desk(shell: Shell, use: Callable[[JobSetup], Awaitable[UUID]]) -> str:
    async def opened() -> UUID:
        database = await open_database(shell.folder / "postroom-data", None)
        try:
            return await use(JobSetup(database, ManualClock()))
        finally:
            await database.close()

    found = asyncio.run(opened())
    shell.capture.readouterr()
    return str(found)


async def deferred(setup: JobSetup) -> UUID:
    leased = await leased_outbound(setup, "forward")
    later = setup.clock() + timedelta(days=900)
    await setup.database.run(outbound.defer(leased.hold, DRAFT, later, "Gmail failed (503)", setup.clock()))
    return leased.id


async def unknown(setup: JobSetup) -> UUID:
    return (await doubted(setup)).id


def test_outgoing_mail_is_listed_and_shown_with_its_reason(shell: Shell) -> None:
    id = on_the_desk(shell, deferred)
    assert shell("outbound", "list") == 0
    assert id[-8:] in shell.out
    assert "deferred" in shell.out
    assert "Gmail failed (503)" in shell.out
    assert shell("outbound", "list", "--state", "unknown", "--json") == 0
    assert shell.json() == []
    assert shell("outbound", "show", id, "--json") == 0
    (shown,) = shell.json()
    assert (shown["id"], shown["kind"]) == (id, "forward")
    assert [each["address"] for each in shown["recipients"]] == ["a@example.com"]
    assert "mime" not in shown


def test_a_pause_is_reported_where_mail_waits_for_it(shell: Shell) -> None:
    async def paused(setup: JobSetup) -> UUID:
        id = await deferred(setup)
        signed = Signature(new_id(), "test", "admin")
        await setup.database.run(pauses.pause(pauses.ALL, "to look around", signed, setup.clock()))
        return id

    id = on_the_desk(shell, paused)
    assert shell("outbound", "show", id) == 0
    assert "to look around" in shell.out


def test_a_mail_is_shown_with_its_attempts(shell: Shell) -> None:
    id = on_the_desk(shell, deferred)
    assert shell("outbound", "show", id) == 0
    assert "ENDED AT" in shell.out
    assert shell.out.count("Gmail failed (503)") == 3, "as the reason, of the recipient, and as an attempt"
    assert shell("outbound", "show", id, "--json") == 0
    ((attempt,),) = (shown["attempts"] for shown in shell.json())
    assert (attempt["outcome"], attempt["reply"]) == ("deferred", "Gmail failed (503)")


def test_many_mails_are_counted_first_and_settled_with_yes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    id = on_the_desk(shell, unknown)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("outbound", "resolve", "--sent", "--destination", "example.com") == 1
    assert "1 mail would be recorded as sent. Do it? [y/N]" in shell.err
    assert shell("outbound", "show", id, "--json") == 0
    assert [each["state"] for each in shell.json()] == ["unknown"]
    assert shell("outbound", "resolve", "--sent", "--destination", "nowhere.example", "--yes", "--json") == 0
    assert shell.json() == [{"matched": 0, "done": 0}]
    assert shell("outbound", "resolve", "--sent", "--destination", "example.com", "--yes") == 0
    assert shell.out == "Recorded as sent: 1 of 1 mail.\n"
    assert shell("outbound", "show", id, "--json") == 0
    assert [each["state"] for each in shell.json()] == ["sent"]


@pytest.mark.parametrize("command", [("resolve", "--sent"), ("retry",), ("cancel",)])
def test_a_mail_or_a_filter_is_needed_and_not_both(shell: Shell, command: tuple[str, ...]) -> None:
    assert shell("outbound", *command) == 2
    assert "give the id of a mail, or --tenant" in shell.err
    assert shell("outbound", *command, NOBODY, "--tenant", "x") == 2
    assert "together with a filter" in shell.err


def test_a_wrong_state_and_an_unknown_id_are_reported(shell: Shell) -> None:
    on_the_desk(shell, deferred)
    assert shell("outbound", "list", "--state", "lost") == 2
    assert "use one of queued, sending, deferred" in shell.err
    for command in (["show"], ["retry"], ["cancel"], ["resolve", "--sent"]):
        assert shell("outbound", command[0], NOBODY, *command[1:]) == 1
        assert "there is no outgoing mail" in shell.err


def test_what_waits_is_made_due(shell: Shell) -> None:
    id = on_the_desk(shell, deferred)
    assert shell("outbound", "retry", id) == 0
    assert shell.out == "The mail is due now.\n"

    async def due(setup: JobSetup) -> UUID:
        now = setup.clock.forward(86_400 * 500)
        (leased,) = await setup.database.run(outbound.lease_mail(new_id(), 9, now, now + LEASE))
        (entry,) = await setup.database.run(list_audit(1))
        assert (entry.action, entry.object_id) == ("outbound.retry", id)
        return leased.id

    assert on_the_desk(shell, due) == id


def test_a_person_says_what_became_of_a_mail(shell: Shell) -> None:
    id = on_the_desk(shell, unknown)
    assert shell("outbound", "resolve", id) == 2
    assert "--not-sent" in shell.err
    assert shell("outbound", "retry", id) == 1
    assert "may have been sent" in shell.err
    assert shell("outbound", "resolve", id, "--sent", "--json") == 0
    assert shell.json() == [{"done": "The mail is sent.", "state": "sent"}]

    async def completed(setup: JobSetup) -> UUID:
        (action,) = await setup.database.run(actions.list_actions(9))
        assert action.state == "completed"
        return action.id

    on_the_desk(shell, completed)
    assert shell("outbound", "resolve", id, "--not-sent") == 1
    assert "is known: it is sent" in shell.err


def test_what_was_not_sent_is_queued_again(shell: Shell) -> None:
    id = on_the_desk(shell, unknown)
    assert shell("outbound", "resolve", id, "--not-sent") == 0
    assert shell.out == "The mail is queued.\n"


def test_what_is_unknown_is_canceled_with_the_reason_and_nothing_has_to_be_done_about_it(shell: Shell) -> None:
    id = on_the_desk(shell, unknown)
    assert shell("outbound", "cancel", id, "--reason", "never mind", "--json") == 0
    assert shell.json() == [{"done": "The mail is canceled.", "state": "canceled"}]
    assert shell("outbound", "show", id, "--json") == 0
    (shown,) = shell.json()
    assert shown["state"] == "canceled"
    assert shown["error"].endswith(": never mind; it may have been sent before")
    assert shell("outbound", "cancel", id) == 1
    assert "is canceled and cannot be canceled any more" in shell.err


def test_what_has_a_draft_is_stopped_by_the_next_sender(shell: Shell) -> None:
    id = on_the_desk(shell, deferred)
    assert shell("outbound", "cancel", id) == 0
    assert shell.out == "The mail is being stopped, if it has not left.\n"


async def served(setup: JobSetup) -> UUID:
    """A tenant on the fair queue and one that is not, each with mail that was delivered."""
    setup.clock.now = datetime.now(UTC) - timedelta(days=8)
    traffic = await Traffic.open(setup, 8)
    share = Rollout("share", 0.5)
    for name in sorted(traffic.owners):
        await traffic.put(name, 2, share)
    setup.clock.forward(2)
    for each in await traffic.take(100, share):
        await setup.database.run(outbound.deliver(each.hold, "18c1", setup.clock()))
    return next(iter(traffic.mails))


def test_figures_are_shown_for_both_disciplines(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    on_the_desk(shell, served)
    monkeypatch.setenv("POSTROOM_OUTBOUND_FAIR_QUEUE", "share")
    assert shell("outbound", "stats") == 0
    for words in ("FAIR QUEUE", "FIRST IN, FIRST OUT", "Gini", "Jain", "delivery fine", "false positives", "p99"):
        assert words.lower() in shell.out.lower(), words
    assert shell("outbound", "stats", "--since", "2h", "--json") == 0
    (shown,) = shell.json()
    assert shown["stage"] == "share"
    found = {name: each["delivered"] for name, each in shown["disciplines"].items()}
    assert sum(found.values()) == 8 * 3 * 2
    assert all(found.values())
    for each in shown["disciplines"].values():
        assert each["waits"]["high"]["mean_s"] == each["deliveries"]["all"]["mean_s"] == 2
        assert each["evenness"]["tenant"]["gini"] == 0
    assert shown["queue"]["limits"] == {"high": 112, "normal": 75, "low": 37, "throttled": 7}
    assert shell("outbound", "stats", "--since", "yesterday") != 0


def test_figures_of_a_quiet_time_say_so(shell: Shell) -> None:
    assert shell("migrate") == 0
    assert shell("outbound", "stats") == 0
    assert "no mail took its turn" in shell.out
