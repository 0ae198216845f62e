"""Shares of the model's budget: one stranger, one domain or all strangers together leave room for others."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from postroom.core.budget_shares import BudgetShares, Share, Spender, why_share_ended
from postroom.core.errors import BudgetSpent, Parked, ShareSpent
from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.envelope import PolicyTier
from postroom.jobs.run import JobRun
from postroom.store.actions.model_calls import (
    IN_PROGRESS,
    SHARES_KEPT,
    CallEnd,
    Caps,
    NewCall,
    end_call,
    ended_shares,
    forget_shares,
    reserve_call,
    spend_of,
)
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import StoredMessage
from postroom.store.mail.mail_views import mail_record
from postroom.triage.decide.engine import Advice
from postroom.triage.handlers.classify import Classify
from support.gates import LASTING
from support.store.fault_cases_model import new_call
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

CENT = 10_000
CAPS = Caps(day_micros=100 * CENT, message_micros=10**12, shares=BudgetShares())
TODAY = "2026-11-15"


@pytest.fixture
async def call(setup: JobSetup) -> NewCall:
    return await new_call(setup, reserved_micros=2 * CENT)


async def asked(
    setup: JobSetup, call: NewCall, sender: str, tier: PolicyTier = "default", caps: Caps = CAPS, cost: int = 2 * CENT
) -> Share | None:
    """One call for mail of the sender, which costs so much; or the share that has ended."""
    each = replace(call, id=new_id(), spender=Spender.of(sender, tier))
    held = await setup.database.run(reserve_call(each, caps, setup.clock()))
    if held is None:
        await setup.database.run(end_call(each.id, CallEnd("answered", cost_micros=cost), setup.clock()))
    assert held is None or isinstance(held, Share)
    return held


async def count(setup: JobSetup, call: NewCall, senders: list[str], tier: PolicyTier = "default") -> int:
    """How many calls are made, one for each of these senders."""
    return sum([await asked(setup, call, each, tier) is None for each in senders])


async def test_one_stranger_with_52_mails_leaves_the_day_to_others(setup: JobSetup, call: NewCall) -> None:
    assert await count(setup, call, ["thief@evil.example"] * 52) == 5
    assert (await setup.database.run(spend_of(TODAY))).micros == 10 * CENT
    assert await asked(setup, call, "ann@shop.example") is None
    assert await asked(setup, call, "thief@evil.example") == Share(
        "sender", Spender.of("thief@evil.example", "default").sender, 10 * CENT
    )


async def test_one_domain_with_many_senders_and_hosts_has_a_share(setup: JobSetup, call: NewCall) -> None:
    assert await count(setup, call, [f"s{n}@h{n}.evil.example" for n in range(40)]) == 12
    ended = await asked(setup, call, "new@evil.example")
    assert ended == Share("domain", Spender.of("x@evil.example", "default").domain or "", 25 * CENT)
    assert await asked(setup, call, "ann@evil.example", "high_priority") is None, "contacts do not count"


async def test_all_strangers_together_leave_a_reserve_for_direct_mail_and_that_one_for_contacts(
    setup: JobSetup, call: NewCall
) -> None:
    assert await count(setup, call, [f"s@bulk{n}.example" for n in range(60)]) == 30
    assert await asked(setup, call, "s@other.example") == Share("tier", "default", 60 * CENT)
    assert await count(setup, call, [f"s@direct{n}.example" for n in range(60)], "interactive") == 10
    assert await count(setup, call, [f"s@friend{n}.example" for n in range(9)], "high_priority") == 9
    assert await asked(setup, call, "s@friend.example", "high_priority") is None
    with pytest.raises(BudgetSpent, match="100 cents"):
        await asked(setup, call, "t@friend.example", "high_priority")


async def test_the_first_call_of_a_day_is_made_however_small_the_share(setup: JobSetup, call: NewCall) -> None:
    caps = replace(CAPS, day_micros=3 * CENT)
    assert await asked(setup, call, "a@x.example", caps=caps, cost=1) is None
    assert await asked(setup, call, "a@x.example", caps=caps, cost=1) == Share("tier", "default", int(1.8 * CENT))


async def test_what_calls_really_cost_counts_and_not_what_was_reserved(setup: JobSetup, call: NewCall) -> None:
    for _ in range(30):
        assert await asked(setup, call, "ann@shop.example", cost=CENT // 4) is None


async def test_a_share_that_calls_in_progress_hold_is_asked_for_again_soon(setup: JobSetup, call: NewCall) -> None:
    spender = Spender.of("ann@shop.example", "default")
    held = [replace(call, id=new_id(), spender=spender) for _ in range(5)]
    for each in held:
        await setup.database.run(reserve_call(each, CAPS, setup.clock()))
    with pytest.raises(BudgetSpent, match="in progress") as refused:
        await asked(setup, call, "ann@shop.example")
    assert refused.value.until == setup.clock() + IN_PROGRESS
    for each in held:
        await setup.database.run(end_call(each.id, CallEnd("answered", cost_micros=1), setup.clock()))
    assert await asked(setup, call, "ann@shop.example") is None
    assert await setup.database.run(ended_shares(TODAY)) == []


async def test_processes_that_ask_at_once_stay_within_a_share_together(
    setup: JobSetup, second_database: Database, call: NewCall
) -> None:
    async def ask(database: Database) -> bool:
        each = replace(call, id=new_id(), spender=Spender.of("ann@shop.example", "default"))
        try:
            return await database.run(reserve_call(each, CAPS, setup.clock())) is None
        except BudgetSpent:
            return False

    databases = (setup.database, second_database)
    made = await asyncio.gather(*(ask(databases[n % 2]) for n in range(30)))
    assert sum(made) == 5


async def test_it_is_recorded_whose_share_ended_and_which_message_waits(setup: JobSetup, call: NewCall) -> None:
    assert await count(setup, call, ["ann@shop.example"] * 6) == 5
    [ended] = await setup.database.run(ended_shares(TODAY))
    assert (ended.kind, ended.spent_micros, ended.cap_micros) == ("sender", 10 * CENT, 10 * CENT)
    came = (await setup.database.run(mail_record(call.message_id))).mail
    assert (ended.sender, ended.policy_tier) == (came.sender, came.policy_tier)
    assert (ended.messages, ended.first_at) == (1, setup.clock())
    wait = (await setup.database.run(mail_record(call.message_id))).model_wait
    assert wait is not None
    assert wait.kind == "sender"


async def test_senders_are_forgotten_after_a_week(setup: JobSetup, call: NewCall) -> None:
    assert await count(setup, call, ["ann@shop.example"] * 6) == 5
    setup.clock.now += SHARES_KEPT
    assert await setup.database.run(forget_shares(setup.clock())) == 0
    setup.clock.forward(86_400)
    assert await setup.database.run(forget_shares(setup.clock())) == 6
    assert await setup.database.run(ended_shares(TODAY)) == []


class OutOfShare:
    """A model without budget for this sender."""

    def __init__(self, box: MailSetup) -> None:
        self.box = box

    async def advise(self, message: StoredMessage) -> Advice:
        raise ShareSpent(why_share_ended("sender", "default"), self.box.setup.clock() + timedelta(hours=16))


async def test_mail_for_which_there_is_no_share_two_days_later_stays_where_it_is(setup: JobSetup) -> None:
    box = await MailSetup(setup).opened()
    box.adviser = OutOfShare(box)
    await box.deliver(Sample("m1"))
    [job] = await setup.claim(1)
    classify = Classify(setup.database, CATALOGUE, setup.clock, adviser=box.adviser)
    for hours in (0, 16, 24):
        setup.clock.forward(hours * 3600)
        with pytest.raises(Parked, match="used up its share") as parked:
            await classify(JobRun(job, setup.database, setup.clock, LASTING))
        assert parked.value.after == timedelta(hours=16)
    setup.clock.forward(24 * 3600)
    await classify(JobRun(job, setup.database, setup.clock, LASTING))
    decision = await box.decision("m1")
    assert (decision.source, decision.action_type) == ("none", "none")
    assert "this sender's mail has used up its share of today's budget" in decision.rationale


async def test_the_day_begins_at_the_owners_midnight(setup: JobSetup, call: NewCall) -> None:
    caps = replace(CAPS, zone=ZoneInfo("America/New_York"))
    setup.clock.now = datetime(2026, 11, 16, 4, 59, tzinfo=UTC)
    for _ in range(50):
        await asked(setup, call, f"{new_id()}@{new_id()}.example", "high_priority", caps)
    with pytest.raises(BudgetSpent) as refused:
        await asked(setup, call, "ann@shop.example", "high_priority", caps)
    assert refused.value.until == datetime(2026, 11, 16, 5, tzinfo=UTC)
    setup.clock.now = datetime(2026, 11, 16, 5, tzinfo=UTC)
    assert await asked(setup, call, "ann@shop.example", caps=caps) is None
    assert (await setup.database.run(spend_of("2026-11-16"))).calls == 1
