"""The cap of a day holds for the real cost of a backfill's mail, whatever happens at the same time."""

import asyncio
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from random import Random
from uuid import UUID

from postroom.core.money import MICROS_PER_CENT
from postroom.store.actions.model_calls import CallEnd, Caps, NewCall, calls_of, end_call, reserve_call, spend_of
from postroom.store.backfill.backfill_spend import BackfillCharge
from postroom.store.engine.ids import new_id
from support.scale import scale
from support.store.fault_cases_backfill import FINANCE, active, day, load
from support.store.fault_cases_model import new_call
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

WIDE = Caps(day_micros=1, message_micros=10**12)  # the cap of live mail must play no part


async def test_a_day_never_costs_more_than_its_cap_or_one_message(setup: JobSetup) -> None:
    """Calls in tens at once, some of which never end, while midnight passes and the clock jumps back and forth."""
    message = await new_call(setup)
    rng = Random(seed := 1207)
    print(f"seed {seed}")
    for _ in range(scale(10, 100)):
        cents = rng.choice([1, 3, 20, 500])
        mailbox = f"gmail:user:{rng.random()}@example.com"
        job = await active(setup, replace(FINANCE, daily_cost_cap_cents=cents, endpoint_identity=mailbox))
        cap, most = cents * MICROS_PER_CENT, rng.choice([500, 8_000, 40_000])
        real: defaultdict[str, list[int]] = defaultdict(list)

        async def one_call(at: str, most: int, job_id: UUID, real: defaultdict[str, list[int]]) -> None:
            charge = BackfillCharge(job_id, at, signed())
            call = replace(message, id=new_id(), reserved_micros=rng.randint(1, most), backfill=charge)
            await asyncio.sleep(0)
            if await setup.database.run(reserve_call(call, WIDE, setup.clock())) is not None:
                return
            if rng.random() < 0.1:
                real[at].append(call.reserved_micros)  # its process died: what was reserved counts
                return
            cost = rng.randint(0, call.reserved_micros)
            real[at].append(cost)
            await setup.database.run(end_call(call.id, CallEnd("answered", 10, 1, cost), setup.clock()))

        for _ in range(rng.randint(2, 6)):
            await asyncio.gather(*(one_call(day(setup), most, job.id, real) for _ in range(rng.randint(1, 12))))
            setup.clock.forward(rng.choice([60, 3600, 86_400, -3600]))
        for costs in real.values():
            assert sum(costs) <= cap or (len(costs) == 1 and costs[0] <= most), (cap, costs)
        shown = await load(setup, job.id)
        assert shown.spent_micros == sum(sum(costs) for costs in real.values())
        setup.clock.now = max(setup.clock.now, shown.updated_at) + timedelta(days=2)


async def test_live_mail_and_backfills_have_budgets_of_their_own(setup: JobSetup) -> None:
    message, job = await new_call(setup), await active(setup)
    charge = BackfillCharge(job.id, day(setup), signed())
    caps = Caps(day_micros=message.reserved_micros, message_micros=10**9)
    old = replace(message, id=new_id(), backfill=charge)
    assert await setup.database.run(reserve_call(old, caps, setup.clock())) is None
    assert await setup.database.run(reserve_call(message, caps, setup.clock())) is None
    assert (await setup.database.run(spend_of(setup.clock().date().isoformat()))).micros == message.reserved_micros
    await setup.database.run(end_call(old.id, CallEnd("answered", 100, 10, 2_500), setup.clock()))
    shown = await load(setup, job.id)
    assert (shown.spent_micros, shown.spent_today_micros, shown.cost_spent_cents) == (2_500, 2_500, 1)


async def test_a_call_is_settled_on_the_day_it_was_reserved(setup: JobSetup) -> None:
    message, job = await new_call(setup), await active(setup)
    yesterday = day(setup)
    call: NewCall = replace(message, backfill=BackfillCharge(job.id, yesterday, signed()))
    await setup.database.run(reserve_call(call, WIDE, setup.clock()))
    setup.clock.forward(86_400)
    await setup.database.run(end_call(call.id, CallEnd("answered", 100, 10, 2_500), setup.clock()))
    assert (await load(setup, job.id)).spent_today_micros == 0
    setup.clock.forward(-86_400)
    assert (await load(setup, job.id)).spent_today_micros == 2_500
    assert len(await setup.database.run(calls_of(message.message_id))) == 1
