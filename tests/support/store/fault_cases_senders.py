"""For each writing verb of tenants and senders: a database in which it has something to do."""

from datetime import datetime, timedelta
from typing import Any

from postroom.core.outbound.limits import DailyLimits
from postroom.core.outbound.priority import Throttle
from postroom.outbound.queue.notices import notice_mail
from postroom.store.engine.database import Script, Transaction, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import sender_counts, sender_notices, senders, tenants
from postroom.store.outbound.sender_counts import SenderCount
from postroom.store.outbound.senders import Grounds, NewSender, SenderView
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

ADA = "ada@example.com"


def throttle(setup: JobSetup, hours: float = 4) -> Throttle:
    return Throttle(setup.clock() + timedelta(hours=hours), "31 of 100 bounced")


async def added(setup: JobSetup, username: str = ADA, tenant: str | None = None, **more: Any) -> SenderView:
    domain = username.rpartition("@")[2]
    new = NewSender(username, domain, (f"*@{domain}",), tenant, **more)
    return await setup.database.run(senders.add_sender(new, signed(), setup.clock()))


@transaction
def count(counts: list[SenderCount], now: datetime) -> Script[None]:
    yield from sender_counts.counting(counts, now)


async def counted(setup: JobSetup, sender_id: int, **counts: int) -> None:
    await setup.database.run(count([SenderCount(sender_id, **counts)], setup.clock()))


@transaction
def admit(sender_id: int, recipients: int, now: datetime, limits: DailyLimits | None = None) -> Script[None]:
    yield from senders.admitting(sender_id, recipients, now, limits)


async def admitted(setup: JobSetup, sender_id: int, recipients: int = 1, limits: DailyLimits | None = None) -> None:
    await setup.database.run(admit(sender_id, recipients, setup.clock(), limits))


async def throttled(setup: JobSetup) -> SenderView:
    ada = await added(setup)
    await setup.database.run(senders.throttle_sender(ADA, throttle(setup), signed(), setup.clock()))
    return ada


async def add_tenant(setup: JobSetup) -> Transaction[Any]:
    return tenants.add_tenant("acme", ["acme.example", "acme.test"], 2.0, signed(), setup.clock())


async def pause_tenant(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await add_tenant(setup))
    return tenants.pause_tenant("acme", signed(), setup.clock())


async def resume_tenant(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await pause_tenant(setup))
    return tenants.resume_tenant("acme", signed(), setup.clock())


async def weigh_tenant(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await add_tenant(setup))
    return tenants.weigh_tenant("acme", 3.0, signed(), setup.clock())


async def add_sender(setup: JobSetup) -> Transaction[Any]:
    return senders.add_sender(NewSender(ADA, "example.com", (ADA,), "acme"), signed(), setup.clock())


async def set_password(setup: JobSetup) -> Transaction[Any]:
    await added(setup)
    return senders.set_password(ADA, "$argon2id$…", signed(), setup.clock())


async def disable_sender(setup: JobSetup) -> Transaction[Any]:
    await added(setup)
    return senders.disable_sender(ADA, signed(), setup.clock())


async def enable_sender(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await disable_sender(setup))
    return senders.enable_sender(ADA, signed(), setup.clock())


async def throttle_sender(setup: JobSetup) -> Transaction[Any]:
    await added(setup)
    return senders.throttle_sender(ADA, throttle(setup), signed(), setup.clock())


async def throttle_for_score(setup: JobSetup) -> Transaction[Any]:
    ada, grounds = await added(setup), Grounds(60, setup.clock())
    notices = [setup.new(key="notice")]
    return senders.throttle_for_score(ada.id, throttle(setup), grounds, notices, signed(), setup.clock())


async def release_sender(setup: JobSetup) -> Transaction[Any]:
    await throttled(setup)
    return senders.release_sender(ADA, signed(), setup.clock())


async def release_for_score(setup: JobSetup) -> Transaction[Any]:
    ada = await throttled(setup)
    return senders.release_for_score(ada.id, signed(), setup.clock.forward(4 * 3600))


async def record_scores(setup: JobSetup) -> Transaction[Any]:
    return sender_counts.record_scores([((await added(setup)).id, 30)])


async def prune_sender_counts(setup: JobSetup) -> Transaction[Any]:
    await admitted(setup, (await added(setup)).id)
    return sender_counts.prune_sender_counts(setup.clock.forward(60 * 86_400))


async def queue_notice(setup: JobSetup) -> Transaction[Any]:
    job, own = await setup.claimed(), "postroom@example.com"
    told = {"username": ADA, "tenant": "example.com", "score": 60, "reason": "bounces", "until": "noon"}
    return sender_notices.queue_notice(job, notice_mail(new_id(), told, ADA, own, setup.clock()), setup.clock())


CASES: list[Case] = [
    add_tenant,
    pause_tenant,
    resume_tenant,
    weigh_tenant,
    add_sender,
    set_password,
    disable_sender,
    enable_sender,
    throttle_sender,
    throttle_for_score,
    release_sender,
    release_for_score,
    record_scores,
    prune_sender_counts,
    queue_notice,
]
