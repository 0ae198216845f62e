"""For each writing verb of outgoing mail: a database in which it has something to do."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_inbox import leased_mail
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_mail import keep_account
from conformance.fault_cases_registry import signed
from postroom.core.actions.action import ActionType
from postroom.core.jobs.job import Job
from postroom.core.mail.message import read_mail
from postroom.store import actions, decisions, mail, outbound, outbound_answers
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import LeasedDelivery, NewDelivery, SendGuard

LEASE = timedelta(minutes=10)
DRAFT = ("r-1", "18c0")
SENDER = "a@example.com"
NOBODY = SendGuard(SENDER, frozenset({"INBOX"}))


class About(NamedTuple):
    """The message that is answered or forwarded, and whose it is."""

    account_id: UUID
    message_id: UUID


async def stored(desk: Desk) -> About:
    account = await desk.database.run(await keep_account(desk))
    leased, message_id, classify = await leased_mail(desk), new_id(), desk.new()
    content = read_mail(leased.envelope)
    await desk.database.run(
        mail.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, desk.clock())
    )
    await desk.finish(await desk.claim_one())
    return About(account.id, message_id)


async def sending_job(
    desk: Desk, action: ActionType = "auto_reply", about: About | None = None, to: str = SENDER
) -> tuple[Job, NewDelivery]:
    """A claimed job whose action is being carried out, and the mail it is to admit."""
    account_id, message_id = about or await stored(desk)
    action_id, job = new_id(), desk.new()
    wish = decisions.Decision(new_id(), account_id, message_id, "none", action, {}, 1.0, "a test")
    new = decisions.NewAction(action_id, "user", "queued", "hash", job.id)
    await desk.database.run(decisions.ask_for_action(wish, new, job, desk.clock()))
    claimed = await desk.claim_one()
    await desk.database.run(actions.begin_action(claimed, action_id, 1000, desk.clock()))
    kind, id = "reply" if action == "auto_reply" else "forward", new_id()
    return claimed, NewDelivery(
        id, account_id, action_id, kind, (to,), "Re: Hello", f"X-Postroom-Delivery: {id}\r\n\r\n"
    )


async def admitted(
    desk: Desk, action: ActionType = "auto_reply", about: About | None = None, to: str = SENDER
) -> NewDelivery:
    job, new = await sending_job(desk, action, about, to)
    guard = NOBODY._replace(once_since=desk.clock() - timedelta(days=7)) if action == "auto_reply" else NOBODY
    assert await desk.database.run(outbound.admit_delivery(job, new, guard, desk.clock())) is None
    return new


async def leased_delivery(desk: Desk, action: ActionType = "auto_reply") -> LeasedDelivery:
    await admitted(desk, action)
    (leased,) = await lease(desk)
    return leased


async def lease(desk: Desk, most: int = 10) -> list[LeasedDelivery]:
    now = desk.clock()
    return await desk.database.run(outbound.lease_deliveries(new_id(), most, now, now + LEASE))


async def doubted(desk: Desk) -> LeasedDelivery:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.hold_delivery(leased.hold, DRAFT, desk.clock(), desk.clock() + LEASE))
    await desk.database.run(outbound.doubt(leased.hold, "who knows", desk.clock()))
    return leased


async def admit_delivery(desk: Desk) -> Transaction[Any]:
    """An answer to one who was answered long ago."""
    about = await stored(desk)
    await admitted(desk, about=about)
    since = desk.clock.forward(10 * 86_400) - timedelta(days=7)
    job, new = await sending_job(desk, about=about)
    return outbound.admit_delivery(job, new, NOBODY._replace(once_since=since), desk.clock())


async def refuse_delivery(desk: Desk) -> Transaction[Any]:
    job, new = await sending_job(desk)
    return outbound.refuse_delivery(job, new.action_id, "a list", desk.clock())


async def lease_deliveries(desk: Desk) -> Transaction[Any]:
    """One whose sender has died, and one that is due."""
    about = await stored(desk)
    await admitted(desk, "forward", about)
    await lease(desk)
    await admitted(desk, about=about)
    now = desk.clock.forward(LEASE.total_seconds() + 1)
    return outbound.lease_deliveries(new_id(), 10, now, now + LEASE)


async def hold_delivery(desk: Desk) -> Transaction[Any]:
    leased = await leased_delivery(desk)
    return outbound.hold_delivery(leased.hold, DRAFT, desk.clock(), desk.clock() + LEASE)


async def give_back_delivery(desk: Desk) -> Transaction[Any]:
    return outbound.give_back_delivery((await leased_delivery(desk)).hold, DRAFT, desk.clock())


async def deliver(desk: Desk) -> Transaction[Any]:
    return outbound.deliver((await leased_delivery(desk)).hold, "18c1", desk.clock())


async def defer(desk: Desk) -> Transaction[Any]:
    later = desk.clock() + timedelta(minutes=1)
    return outbound.defer((await leased_delivery(desk)).hold, DRAFT, later, "503", desk.clock())


async def bounce(desk: Desk) -> Transaction[Any]:
    return outbound.bounce((await leased_delivery(desk)).hold, "no such recipient", desk.clock())


async def doubt(desk: Desk) -> Transaction[Any]:
    return outbound.doubt((await leased_delivery(desk)).hold, "who knows", desk.clock())


async def withdraw_delivery(desk: Desk) -> Transaction[Any]:
    return outbound.withdraw_delivery((await leased_delivery(desk)).hold, "canceled", "removed", desk.clock())


async def resolve_delivery(desk: Desk) -> Transaction[Any]:
    return outbound_answers.resolve_delivery((await doubted(desk)).id, "sent", signed(), desk.clock())


async def hasten_delivery(desk: Desk) -> Transaction[Any]:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock() + LEASE, "503", desk.clock()))
    return outbound_answers.hasten_delivery(leased.id, signed(), desk.clock())


async def cancel_delivery(desk: Desk) -> Transaction[Any]:
    new = await admitted(desk)
    return outbound_answers.cancel_delivery(new.id, signed(), desk.clock())


async def renew_delivery(desk: Desk) -> Transaction[Any]:
    leased, now = await leased_delivery(desk), desk.clock.forward(60)
    return outbound.renew_delivery(leased.hold, DRAFT, now, now + LEASE)


CASES: list[Case] = [
    admit_delivery,
    refuse_delivery,
    lease_deliveries,
    hold_delivery,
    give_back_delivery,
    deliver,
    defer,
    bounce,
    doubt,
    withdraw_delivery,
    resolve_delivery,
    hasten_delivery,
    cancel_delivery,
    renew_delivery,
]
