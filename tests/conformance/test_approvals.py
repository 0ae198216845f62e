"""Answers to waiting actions: once, by a person, for exactly what was shown, and only while it still applies."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from postroom.core.errors import Conflict, IllegalMove, NotFound, Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.registry import ALL_TOOLS
from postroom.operations.actions import approvals as manage
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts
from postroom.store.actions import approvals, protection
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail import mail, mail_changes
from postroom.store.people.audit import Signature, list_audit
from postroom.triage.act.approvals import Approvals
from support.approvals import tamper
from support.store.fault_cases_approvals import LIFE, pending
from support.store.fault_cases_inbox import ENDPOINT
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


def answers(setup: JobSetup) -> Approvals:
    return Approvals(setup.database, CATALOGUE, setup.clock)


async def shown(setup: JobSetup, id: UUID) -> approvals.Approval:
    return await setup.database.run(approvals.show_approval(id))


async def approve(setup: JobSetup, id: UUID, by: Signature | None = None) -> approvals.AnsweredApproval:
    return await answers(setup).approve(id, (await shown(setup, id)).action_hash, by or signed())


async def audited(setup: JobSetup) -> list[tuple[str, str]]:
    entries = await setup.database.run(list_audit(10))
    return [(entry.action, entry.actor) for entry in entries if entry.action.startswith("approval.")]


async def test_what_waits_is_listed_with_what_a_person_needs_to_answer(setup: JobSetup) -> None:
    id = await pending(setup, "forward", {"to": "boss@example.com"}, actor="rule")
    (found,) = await setup.database.run(approvals.list_waiting(10))
    assert (found.id, found.action_type, found.parameters) == (id, "forward", {"to": "boss@example.com"})
    assert (found.account, found.sender, found.subject) == ("me@example.com", "a@example.com", "Hello")
    assert found.reasons == ("agents propose, people approve",)
    assert found.expires_at == setup.clock() + LIFE


async def test_an_approved_action_is_queued_with_its_job_and_who_approved_it(setup: JobSetup) -> None:
    id = await pending(setup)
    assert await approve(setup, id) == approvals.AnsweredApproval("queued")
    found = await shown(setup, id)
    assert (found.state, found.approved_by) == ("queued", "cli:ada")
    jobs = {job.type: job for job in await setup.claim()}
    assert jobs["action.gmail"].payload == {"account_id": str(found.account_id), "action_id": str(id)}
    assert await audited(setup) == [("approval.approve", "cli:ada")]


async def test_a_rejected_action_says_by_whom_and_why_and_has_no_job(setup: JobSetup) -> None:
    id = await pending(setup)
    await answers(setup).reject(id, Signature(new_id(), "discord:7", "approver", "not this one"))
    found = await shown(setup, id)
    assert (found.state, found.error) == ("rejected", "rejected by discord:7: not this one")
    assert "action.gmail" not in {job.type for job in await setup.claim()}


async def test_of_a_long_reason_the_beginning_is_shown(setup: JobSetup) -> None:
    id = await pending(setup)
    await answers(setup).reject(id, Signature(new_id(), "cli:ada", "admin", "n" * 301))
    assert (await shown(setup, id)).error == f"rejected by cli:ada: {'n' * 300}"


async def test_an_action_is_answered_once(setup: JobSetup) -> None:
    id = await pending(setup)
    await approve(setup, id)
    with pytest.raises(IllegalMove, match="any more: approved by cli:ada"):
        await approve(setup, id)
    with pytest.raises(IllegalMove, match="any more: approved by"):
        await answers(setup).reject(id, signed())
    other = await pending(setup)
    await answers(setup).reject(other, signed())
    with pytest.raises(IllegalMove, match="any more: rejected by cli:ada"):
        await approve(setup, other)


async def test_of_many_answers_at_once_one_counts(setup: JobSetup) -> None:
    id = await pending(setup)
    given = (approve(setup, id) if n % 2 else answers(setup).reject(id, signed()) for n in range(6))
    became = await asyncio.gather(*given, return_exceptions=True)
    assert sum(isinstance(each, approvals.AnsweredApproval) for each in became) == 1
    assert all(isinstance(each, approvals.AnsweredApproval | IllegalMove) for each in became)
    assert len(await audited(setup)) == 1


async def test_of_answers_on_a_page_by_command_and_in_a_chat_at_once_one_counts(
    setup: JobSetup, second_database: Database
) -> None:
    for _ in range(5):
        id = await pending(setup)
        seen = await shown(setup, id)
        chat = Approvals(second_database, CATALOGUE, setup.clock)
        became = await asyncio.gather(
            manage.approve_action(Caller(setup.database, signed(), setup.clock), id, seen.action_hash),
            manage.answer_approvals(
                Caller(second_database, signed(), setup.clock), "approve", [manage.ShownApproval(id, seen.action_hash)]
            ),
            chat.answer("approve", id, seen.action_hash[:24], signed()),
            chat.answer("reject", id, "", signed()),
            return_exceptions=True,
        )
        counted = [isinstance(each, approvals.AnsweredApproval | manage.Answered) for each in became].count(True)
        counted += sum(each.counted for each in became if isinstance(each, manage.SeveralAnswers))
        assert counted == 1, became
        queued = [job for job in await setup.claim() if job.payload.get("action_id") == str(id)]
        assert [job.type for job in queued if job.type == "action.gmail"] == (
            ["action.gmail"] if (await shown(setup, id)).state == "queued" else []
        )


@pytest.mark.parametrize(
    "change",
    [
        """parameters_json = '{"to":"thief@example.net"}'""",
        "action_type = 'delete'",
        f"action_hash = '{'0' * 64}'",
    ],
)
async def test_an_action_that_was_changed_afterwards_is_not_approved(setup: JobSetup, change: str) -> None:
    id = await pending(setup, "forward", {"to": "boss@example.com"}, actor="rule")
    seen = await shown(setup, id)
    await setup.database.run(tamper(change, id))
    for hashed in (seen.action_hash, (await shown(setup, id)).action_hash):
        with pytest.raises(Conflict):
            await answers(setup).approve(id, hashed, signed())
    assert (await shown(setup, id)).state == approvals.WAITING
    assert (await answers(setup).reject(id, signed())).state == "rejected"


async def test_another_action_than_the_one_shown_is_not_approved(setup: JobSetup) -> None:
    id = await pending(setup)
    for wrong in ("0" * 64, "", (await shown(setup, id)).action_hash[:8]):
        with pytest.raises(Conflict, match="has changed since it was shown"):
            await answers(setup).approve(id, wrong, signed())


@pytest.mark.parametrize("role", ["agent", "connector", "viewer", "none"])
async def test_an_agent_can_neither_approve_nor_reject(setup: JobSetup, role: str) -> None:
    id = await pending(setup)
    by = Signature(new_id(), "token:7", role)
    with pytest.raises(Refused, match="only people"):
        await approve(setup, id, by)
    with pytest.raises(Refused, match="only people"):
        await answers(setup).reject(id, by)
    assert (await shown(setup, id)).state == approvals.WAITING
    await answers(setup).reject(id, signed())
    with pytest.raises(Refused, match="only people"):
        await setup.database.run(approvals.take_back_rejection(id, by, setup.clock()))


def test_no_tool_that_an_agent_may_call_answers() -> None:
    names = [tool.name for tool in ALL_TOOLS if Role.AGENT in tool.roles]
    assert [name for name in names if "approv" in name or "reject" in name] == []


async def test_what_does_not_exist_cannot_be_answered(setup: JobSetup) -> None:
    with pytest.raises(NotFound, match="postroom approvals list"):
        await answers(setup).reject(new_id(), signed())
    with pytest.raises(NotFound):
        await answers(setup).approve(new_id(), "0" * 64, signed())


async def take_back(setup: JobSetup, id: UUID, database: Database | None = None) -> None:
    await (database or setup.database).run(approvals.take_back_rejection(id, signed(), setup.clock()))


async def test_a_rejection_is_taken_back_for_ten_seconds_by_any_process(
    setup: JobSetup, second_database: Database
) -> None:
    early, late = await pending(setup), await pending(setup, "archive")
    for id in (early, late):
        await answers(setup).reject(id, signed())
    setup.clock.forward(9.9)
    assert (await shown(setup, early)).may_be_taken_back(setup.clock())
    await asyncio.gather(*(take_back(setup, early, each) for each in (setup.database, second_database)))
    found = await shown(setup, early)
    assert (found.state, found.error) == (approvals.WAITING, None)
    assert [action for action, _ in await audited(setup)].count("approval.take_back") == 1
    assert (await approve(setup, early)).state == "queued"
    setup.clock.forward(0.1)
    assert not (await shown(setup, late)).may_be_taken_back(setup.clock())
    with pytest.raises(IllegalMove, match="possible for 10 seconds only"):
        await take_back(setup, late)
    with pytest.raises(IllegalMove, match="not rejected any more"):
        await take_back(setup, early)


async def test_of_a_rejection_that_is_taken_back_and_an_approval_at_once_both_orders_hold(
    setup: JobSetup, second_database: Database
) -> None:
    id = await pending(setup)
    await answers(setup).reject(id, signed())
    hashed = (await shown(setup, id)).action_hash
    approving = Approvals(second_database, CATALOGUE, setup.clock).approve(id, hashed, signed())
    _, became = await asyncio.gather(take_back(setup, id), approving, return_exceptions=True)
    assert isinstance(became, approvals.AnsweredApproval | IllegalMove)
    expected = "queued" if isinstance(became, approvals.AnsweredApproval) else approvals.WAITING
    assert (await shown(setup, id)).state == expected


async def test_a_rejection_of_what_makes_no_sense_any_more_is_not_taken_back(setup: JobSetup) -> None:
    expiring = await pending(setup)
    setup.clock.forward(LIFE.total_seconds() - 1)
    await answers(setup).reject(expiring, signed())
    setup.clock.forward(1)
    with pytest.raises(IllegalMove, match="expired meanwhile"):
        await take_back(setup, expiring)
    assert await setup.database.run(approvals.expire_approvals(setup.clock())) == 0
    repeated = await pending(setup, "archive")
    await answers(setup).reject(repeated, signed())
    setup.clock.forward(1)
    await pending(setup, "archive")
    with pytest.raises(IllegalMove, match="asked for again"):
        await take_back(setup, repeated)
    assert (await shown(setup, repeated)).state == "rejected"


async def test_whoever_was_not_asked_before_a_rejection_is_asked_when_it_is_taken_back(setup: JobSetup) -> None:
    id = await pending(setup)
    await answers(setup).reject(id, signed())
    await take_back(setup, id)
    jobs = [job for job in await setup.claim() if job.type == "approval.notify"]
    assert [job.payload["action_id"] for job in jobs] == [str(id)]


async def test_an_answer_after_the_expiry_comes_too_late(setup: JobSetup) -> None:
    first, second = await pending(setup), await pending(setup)
    setup.clock.forward(LIFE.total_seconds())
    assert (await approve(setup, first)).state == "expired"
    assert (await answers(setup).reject(second, signed())).state == "expired"
    assert (await shown(setup, first)).error == "it was not approved in time"


async def test_what_nobody_answers_expires_and_the_rest_waits_on(setup: JobSetup) -> None:
    old = await pending(setup)
    setup.clock.forward(60)
    young = await pending(setup)
    setup.clock.forward((LIFE - timedelta(seconds=60)).total_seconds())
    assert await setup.database.run(approvals.expire_approvals(setup.clock())) == 1
    assert ((await shown(setup, old)).state, (await shown(setup, young)).state) == ("expired", approvals.WAITING)
    assert await setup.database.run(approvals.expire_approvals(setup.clock())) == 0


async def test_approving_what_happens_to_a_deleted_message_cancels_it(setup: JobSetup) -> None:
    id = await pending(setup)
    gone = mail_changes.Change("m1", frozenset(), frozenset(), deleted=True)
    await setup.database.run(mail_changes.apply_changes(ENDPOINT, [gone], setup.clock()))
    became = await approve(setup, id)
    assert became == approvals.AnsweredApproval("canceled", "approved too late: the message was deleted")
    assert (await shown(setup, id)).state == "canceled"
    assert "action.gmail" not in {job.type for job in await setup.claim()}
    assert await audited(setup) == [("approval.cancel", "cli:ada")]


async def test_approving_what_was_protected_meanwhile_cancels_it(setup: JobSetup) -> None:
    id = await pending(setup)
    await setup.database.run(protection.protect("sender", "a@example.com", "", signed(), setup.clock()))
    became = await approve(setup, id)
    assert became == approvals.AnsweredApproval("canceled", "approved too late: the sender is protected")


async def test_approving_for_an_account_that_was_removed_cancels_it(setup: JobSetup) -> None:
    id = await pending(setup)
    account = await setup.database.run(mail.account_of(ENDPOINT))
    await setup.database.run(accounts.remove_account(account.id, signed(), setup.clock()))
    became = await approve(setup, id)
    assert became == approvals.AnsweredApproval("canceled", "approved too late: the account was removed")


async def test_a_notice_is_kept_once_and_closed_once(setup: JobSetup) -> None:
    id = await pending(setup)
    assert await setup.database.run(approvals.keep_notice(id, "discord", "1", setup.clock()))
    assert not await setup.database.run(approvals.keep_notice(id, "discord", "2", setup.clock()))
    assert await setup.database.run(approvals.notices_of(id)) == [("discord", "1", True)]
    assert await setup.database.run(approvals.close_notice(id, "discord", setup.clock()))
    assert not await setup.database.run(approvals.close_notice(id, "discord", setup.clock()))
    assert await setup.database.run(approvals.notices_of(id)) == [("discord", "1", False)]


async def test_open_notices_of_answered_actions_are_asked_to_be_closed_once(setup: JobSetup) -> None:
    answered, waiting = await pending(setup), await pending(setup)
    for id in (answered, waiting):
        await setup.database.run(approvals.keep_notice(id, "webhook", "x", setup.clock()))
    assert await setup.database.run(approvals.ask_to_close(new_id(), setup.clock())) == 0
    await answers(setup).reject(answered, signed())
    assert await setup.database.run(approvals.ask_to_close(new_id(), setup.clock())) == 1
    assert await setup.database.run(approvals.ask_to_close(new_id(), setup.clock())) == 0
    setup.clock.forward(14)
    await setup.wake_due()
    assert "approval.notify" not in {job.type for job in await setup.claim()}, "it can still be taken back"
    setup.clock.forward(1)
    await setup.wake_due()
    jobs = [job for job in await setup.claim() if job.type == "approval.notify"]
    assert [job.payload["action_id"] for job in jobs] == [str(answered)]


async def test_a_notice_posted_after_the_others_were_closed_is_asked_to_be_closed_too(setup: JobSetup) -> None:
    id = await pending(setup)
    await setup.database.run(approvals.keep_notice(id, "discord", "1", setup.clock()))
    await answers(setup).reject(id, signed())
    for channel in ("discord", "webhook"):
        assert await setup.database.run(approvals.ask_to_close(new_id(), setup.clock())) == 1
        setup.clock.forward(15)
        await setup.wake_due()
        for job in await setup.claim():
            await setup.finish(job)
        await setup.database.run(approvals.close_notice(id, channel, setup.clock()))
        await setup.database.run(approvals.keep_notice(id, "webhook", "2", setup.clock()))
    assert await setup.database.run(approvals.ask_to_close(new_id(), setup.clock())) == 0


async def test_the_oldest_notices_are_closed_first(setup: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "_MOST_CLOSINGS", 1)
    young, old = await pending(setup), await pending(setup)
    for id, ago in ((young, 0), (old, 60)):
        await setup.database.run(approvals.keep_notice(id, "discord", "x", setup.clock() - timedelta(seconds=ago)))
        await answers(setup).reject(id, signed())
    await setup.database.run(approvals.ask_to_close(new_id(), setup.clock()))
    setup.clock.forward(15)
    await setup.wake_due()
    jobs = [job for job in await setup.claim() if job.type == "approval.notify"]
    assert [job.payload["action_id"] for job in jobs] == [str(old)]


async def test_people_are_asked_singly_so_many_times_an_hour_and_then_by_a_digest(setup: JobSetup) -> None:
    async def asked(id: UUID) -> bool:
        return await setup.database.run(approvals.take_slot(id, 2, setup.new("other", key="digest"), setup.clock()))

    first, second, third = [await pending(setup) for _ in range(3)]
    assert [await asked(id) for id in (first, second)] == [True, True]
    assert "other" not in {job.type for job in await setup.claim()}
    assert not await asked(third)
    assert [job.type for job in await setup.claim()] == ["other"]
    assert await asked(first), "a retry has its slot already"
    setup.clock.forward(3599)
    assert not await asked(third)
    setup.clock.forward(1)
    assert await asked(third)


async def test_an_approval_waits_until_it_is_answered(setup: JobSetup) -> None:
    id = await pending(setup)
    assert (await shown(setup, id)).is_waiting
    await approve(setup, id)
    assert not (await shown(setup, id)).is_waiting
