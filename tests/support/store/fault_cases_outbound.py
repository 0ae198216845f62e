"""For each writing verb of outgoing mail: a database in which it has something to do."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import ActionType
from postroom.core.jobs.job import Job
from postroom.core.mail.message import read_mail
from postroom.core.submission.envelope import Recipient
from postroom.store.actions import actions, decisions
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound, outbound_answers
from postroom.store.outbound.outbound import LeasedMail, MailSender, NewMail, SendGuard
from support import storing
from support.store.fault_cases_inbox import leased_mail
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_mail import keep_account
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

LEASE = timedelta(minutes=10)
DRAFT = ("r-1", "18c0")
SENDER = "a@example.com"
OWNER = MailSender.of_mailbox("me@example.com")
NOBODY = SendGuard(SENDER, frozenset({"INBOX"}))


class About(NamedTuple):
    """The message that is answered or forwarded, and whose it is."""

    account_id: UUID
    message_id: UUID


async def stored(setup: JobSetup) -> About:
    account = await setup.database.run(await keep_account(setup))
    leased, message_id, classify = await leased_mail(setup), new_id(), setup.new()
    content = read_mail(leased.envelope)
    await setup.database.run(
        storing.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, setup.clock())
    )
    await setup.finish(await setup.claim_one())
    return About(account.id, message_id)


async def sending_job(
    setup: JobSetup, action: ActionType = "auto_reply", about: About | None = None, to: str = SENDER
) -> tuple[Job, NewMail]:
    """A claimed job whose action is being carried out, and the mail it is to admit."""
    account_id, message_id = about or await stored(setup)
    action_id, job = new_id(), setup.new()
    decision = decisions.Decision(new_id(), account_id, message_id, "none", action, {}, 1.0, "a test")
    new = decisions.NewAction(action_id, "user", "queued", "hash", job.id)
    await setup.database.run(decisions.ask_for_action(decision, new, job, setup.clock()))
    claimed = await setup.claim_one()
    await setup.database.run(actions.begin_action(claimed, action_id, 1000, setup.clock()))
    kind, id = "reply" if action == "auto_reply" else "forward", new_id()
    content = f"X-Postroom-Delivery: {id}\r\n\r\n".encode()
    return claimed, NewMail(id, account_id, action_id, OWNER, kind, (Recipient(to),), "Re: Hello", content)


async def admitted(
    setup: JobSetup, action: ActionType = "auto_reply", about: About | None = None, to: str = SENDER
) -> NewMail:
    job, new = await sending_job(setup, action, about, to)
    guard = NOBODY._replace(once_since=setup.clock() - timedelta(days=7)) if action == "auto_reply" else NOBODY
    assert await setup.database.run(outbound.admit_mail(job, new, guard, setup.clock())) is None
    return new


async def submitted(
    setup: JobSetup, about: About | None = None, to: tuple[str, ...] = (SENDER, "b@example.com")
) -> NewMail:
    """A mail that no action has asked for."""
    id, account_id = new_id(), (about or await stored(setup)).account_id
    await setup.enqueue()
    recipients, content = tuple(map(Recipient, to)), f"X-Postroom-Delivery: {id}\r\n\r\n".encode()
    new = NewMail(id, account_id, None, OWNER, "submitted", recipients, "Hello", content)
    assert await setup.database.run(outbound.admit_mail(await setup.claim_one(), new, None, setup.clock())) is None
    return new


async def leased_outbound(setup: JobSetup, action: ActionType = "auto_reply") -> LeasedMail:
    await admitted(setup, action)
    (leased,) = await lease(setup)
    return leased


async def lease(setup: JobSetup, most: int = 10) -> list[LeasedMail]:
    now = setup.clock()
    return await setup.database.run(outbound.lease_mail(new_id(), most, now, now + LEASE))


async def doubted(setup: JobSetup) -> LeasedMail:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.hold_mail(leased.hold, DRAFT, setup.clock(), setup.clock() + LEASE))
    await setup.database.run(outbound.doubt(leased.hold, "who knows", setup.clock()))
    return leased


async def admit_mail(setup: JobSetup) -> Transaction[Any]:
    """An answer to one who was answered long ago."""
    about = await stored(setup)
    await admitted(setup, about=about)
    since = setup.clock.forward(10 * 86_400) - timedelta(days=7)
    job, new = await sending_job(setup, about=about)
    return outbound.admit_mail(job, new, NOBODY._replace(once_since=since), setup.clock())


async def refuse_mail(setup: JobSetup) -> Transaction[Any]:
    job, new = await sending_job(setup)
    return outbound.refuse_mail(job, new.action_id, "a list", setup.clock())


async def lease_mail(setup: JobSetup) -> Transaction[Any]:
    """One whose sender has died, and one that is due."""
    about = await stored(setup)
    await admitted(setup, "forward", about)
    await lease(setup)
    await admitted(setup, about=about)
    now = setup.clock.forward(LEASE.total_seconds() + 1)
    return outbound.lease_mail(new_id(), 10, now, now + LEASE)


async def hold_mail(setup: JobSetup) -> Transaction[Any]:
    leased = await leased_outbound(setup)
    return outbound.hold_mail(leased.hold, DRAFT, setup.clock(), setup.clock() + LEASE)


async def give_back_mail(setup: JobSetup) -> Transaction[Any]:
    return outbound.give_back_mail((await leased_outbound(setup)).hold, DRAFT, setup.clock())


async def deliver(setup: JobSetup) -> Transaction[Any]:
    return outbound.deliver((await leased_outbound(setup)).hold, "18c1", setup.clock())


async def defer(setup: JobSetup) -> Transaction[Any]:
    later = setup.clock() + timedelta(minutes=1)
    return outbound.defer((await leased_outbound(setup)).hold, DRAFT, later, "503", setup.clock())


async def bounce(setup: JobSetup) -> Transaction[Any]:
    return outbound.bounce((await leased_outbound(setup)).hold, "no such recipient", setup.clock())


async def doubt(setup: JobSetup) -> Transaction[Any]:
    return outbound.doubt((await leased_outbound(setup)).hold, "who knows", setup.clock())


async def withdraw_mail(setup: JobSetup) -> Transaction[Any]:
    return outbound.withdraw_mail((await leased_outbound(setup)).hold, "canceled", "removed", setup.clock())


async def resolve_mail(setup: JobSetup) -> Transaction[Any]:
    return outbound_answers.resolve_mail((await doubted(setup)).id, "sent", signed(), setup.clock())


async def hasten_mail(setup: JobSetup) -> Transaction[Any]:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock() + LEASE, "503", setup.clock()))
    return outbound_answers.hasten_mail(leased.id, signed(), setup.clock())


async def cancel_mail(setup: JobSetup) -> Transaction[Any]:
    new = await admitted(setup)
    return outbound_answers.cancel_mail(new.id, signed(), setup.clock())


async def renew_mail(setup: JobSetup) -> Transaction[Any]:
    leased, now = await leased_outbound(setup), setup.clock.forward(60)
    return outbound.renew_mail(leased.hold, DRAFT, now, now + LEASE)


CASES: list[Case] = [
    admit_mail,
    refuse_mail,
    lease_mail,
    hold_mail,
    give_back_mail,
    deliver,
    defer,
    bounce,
    doubt,
    withdraw_mail,
    resolve_mail,
    hasten_mail,
    cancel_mail,
    renew_mail,
]
