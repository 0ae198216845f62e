"""The turns of outgoing mail in the database: batches as in memory, counts that stay right, and what is held."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple
from uuid import UUID

import pytest

from postroom.core.outbound.fair_nodes import InFlight, WaitingMail
from postroom.core.outbound.lanes import LanePolicy
from postroom.core.outbound.priority import Throttle
from postroom.core.outbound.rollout import Rollout
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound, outbound_answers, senders, tenants
from postroom.store.outbound.outbound import Capacity, LeasedMail, MailSender, NewMail, queueing_mail
from postroom.store.outbound.outbound_turns import miscounted_turns
from support.scale import scale
from support.store.fault_cases_outbound import LEASE, stored
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.turn_table import TurnTable

POLICY = LanePolicy.of()
EVERYWHERE, NOWHERE = Rollout("all"), Rollout("off")


@transaction
def queue_mail(news: Sequence[NewMail], rollout: Rollout, now: datetime) -> Script[None]:
    for new in news:
        yield from queueing_mail(new, now, rollout)


class Place(NamedTuple):
    tenant: int
    domain: int
    sender: int

    @property
    def owner(self) -> MailSender:
        domain = f"d{self.tenant}-{self.domain}.example"
        return MailSender(f"t{self.tenant}", domain, f"u{self.sender}@{domain}", f"u{self.sender}@{domain}")


class Office:
    """Queues mail of several tenants and takes it, a batch at a time."""

    def __init__(self, setup: JobSetup, account_id: UUID) -> None:
        self.setup = setup
        self.account_id = account_id

    @classmethod
    async def open(cls, setup: JobSetup) -> "Office":
        return cls(setup, (await stored(setup)).account_id)

    async def put(
        self, place: Place, count: int = 1, *, recipients: int = 1, bulk: bool = False, rollout: Rollout = EVERYWHERE
    ) -> list[UUID]:
        to = tuple(Recipient(f"r{n}@example.com") for n in range(recipients))
        ids = [new_id() for _ in range(count)]
        mail_class = "bulk" if bulk else "transactional"
        news = [
            NewMail(id, self.account_id, None, place.owner, "submitted", to, "s", b"x\r\n", message_class=mail_class)
            for id in ids
        ]
        await self.setup.database.run(queue_mail(news, rollout, self.setup.clock()))
        return ids

    async def take(
        self, most: int, in_flight: InFlight | None = None, rollout: Rollout = EVERYWHERE
    ) -> list[LeasedMail]:
        now = self.setup.clock()
        capacity = Capacity(in_flight or InFlight(10**9), POLICY, rollout)
        leased = await self.setup.database.run(outbound.lease_mail(new_id(), most, now, now + LEASE, capacity))
        assert await self.setup.database.run(miscounted_turns()) == []
        return leased

    async def grown_up(self, *places: Place) -> None:
        """Senders are new for a week, and new mail of theirs is in the lane `low`."""
        for place in places:
            for id in await self.put(place):
                await self.setup.database.run(outbound_answers.cancel_mail(id, signed(), self.setup.clock()))
        self.setup.clock.forward((timedelta(days=8)).total_seconds())


async def test_batches_are_those_of_the_picker_in_memory(setup: JobSetup) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng = Random(seed)
    office, memory = await Office.open(setup), TurnTable()
    numbers: dict[UUID, int] = {}
    places = [Place(t, d, s) for t in range(3) for d in range(2) for s in range(2)]
    for place in places:
        # Made in this order, so that their ids are in this order in both: that is what decides between equals.
        for id in await office.put(place):
            await setup.database.run(outbound_answers.cancel_mail(id, signed(), setup.clock()))
    for _ in range(scale(6, 60)):
        for _ in range(rng.randrange(8)):
            place, cost, bulk = rng.choice(places), rng.choice((1, 1, 1, 3)), rng.random() < 0.3
            path = (
                place.tenant,
                10 * place.tenant + place.domain,
                100 * place.tenant + 10 * place.domain + place.sender,
            )
            for id in await office.put(place, rng.choice((1, 2, 5)), recipients=cost, bulk=bulk):
                numbers[id] = len(numbers)
                memory.put("low", path, WaitingMail(numbers[id], cost, bulk), (1.0, 1.0, 1.0))
        most = rng.choice((1, 3, 10))
        expected = {each.mail.seq for each in memory.choose(POLICY, InFlight(10**9), most)}
        assert {numbers[each.id] for each in await office.take(most)} == expected


async def test_a_flood_does_not_delay_the_small_ones(setup: JobSetup) -> None:
    office = await Office.open(setup)
    flood, small = Place(0, 0, 0), [Place(n, 0, 0) for n in range(1, 6)]
    await office.put(flood, 100)
    for place in small:
        await office.put(place, 3)
    first = [each.tenant_id for each in await office.take(20)]
    assert sorted(Counter(first).values()) == [3, 3, 3, 3, 3, 5]


async def test_what_is_canceled_takes_no_turn(setup: JobSetup) -> None:
    office = await Office.open(setup)
    ids = await office.put(Place(1, 1, 1), 3)
    await setup.database.run(outbound_answers.cancel_mail(ids[0], signed(), setup.clock()))
    assert {each.id for each in await office.take(9)} == set(ids[1:])
    assert await office.take(9) == []


async def test_deferred_mail_waits_for_its_time_and_returns_in_the_lane_of_retries(setup: JobSetup) -> None:
    office = await Office.open(setup)
    await office.put(Place(1, 1, 1), 2)
    first, second = await office.take(9)
    later = setup.clock() + timedelta(minutes=5)
    for each in (first, second):
        await setup.database.run(outbound.defer(each.hold, None, later, "try later", setup.clock()))
    assert await office.take(9) == []
    setup.clock.forward((timedelta(minutes=6)).total_seconds())
    assert [(each.id, each.lane) for each in await office.take(9)] == [(first.id, "retry"), (second.id, "retry")]


async def test_mail_of_a_dead_holder_waits_for_its_turn_again(setup: JobSetup) -> None:
    office = await Office.open(setup)
    await office.put(Place(1, 1, 1), 2)
    assert len(await office.take(9)) == 2
    setup.clock.forward((LEASE + timedelta(seconds=1)).total_seconds())
    assert len(await office.take(9)) == 2


async def test_throttled_mail_waits_and_then_drains_in_the_lane_throttled_until_the_release(setup: JobSetup) -> None:
    office = await Office.open(setup)
    place, other = Place(1, 1, 1), Place(1, 1, 2)
    await office.grown_up(place, other)
    await office.put(place, 30)
    (other_id,) = await office.put(other)
    for leased in await office.take(2):
        assert leased.lane == "normal"
        await setup.database.run(outbound.deliver(leased.hold, "18c1", setup.clock()))
    until = setup.clock() + timedelta(hours=2)
    name = place.owner.username
    await setup.database.run(senders.throttle_sender(name, Throttle(until, "spam"), signed(), setup.clock()))
    for leased in await office.take(99):
        assert leased.id == other_id, "nothing of the throttled sender leaves"
        await setup.database.run(outbound.deliver(leased.hold, "18c2", setup.clock()))
    setup.clock.forward((timedelta(hours=2)).total_seconds())
    assert [each.lane for each in await office.take(3)] == ["throttled"] * 3
    await setup.database.run(senders.release_sender(name, signed(), setup.clock()))
    assert {each.lane for each in await office.take(3)} == {"normal"}


async def test_mail_of_a_paused_tenant_stays_and_that_of_others_goes(setup: JobSetup) -> None:
    office = await Office.open(setup)
    await office.put(Place(1, 1, 1), 3)
    await office.put(Place(2, 1, 1), 3)
    await setup.database.run(tenants.pause_tenant("t1", signed(), setup.clock()))
    assert len(await office.take(9)) == 3
    await office.put(Place(1, 2, 1), 1)
    assert await office.take(9) == []
    await setup.database.run(tenants.resume_tenant("t1", signed(), setup.clock()))
    assert len(await office.take(9)) == 4


async def test_weights_count_at_once(setup: JobSetup) -> None:
    office = await Office.open(setup)
    for tenant in (1, 2):
        await office.put(Place(tenant, 1, 1), 40)
    await setup.database.run(tenants.weigh_tenant("t1", 3.0, signed(), setup.clock()))
    assert sorted(Counter(each.tenant_id for each in await office.take(40)).values()) == [10, 30]


@pytest.mark.parametrize("rollout", [EVERYWHERE, NOWHERE])
async def test_mail_of_tenants_that_are_not_on_the_fair_queue_goes_in_the_order_of_acceptance(
    setup: JobSetup, rollout: Rollout
) -> None:
    office = await Office.open(setup)
    flood = await office.put(Place(1, 1, 1), 20, rollout=rollout)
    await office.put(Place(2, 1, 1), 5, rollout=rollout)
    first = {each.id for each in await office.take(10, rollout=rollout)}
    assert (first <= set(flood)) == (rollout is NOWHERE)
