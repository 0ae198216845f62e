"""How many mails are in delivery: bounded over all processes, with as much room again for those that are slow."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.rollout import Rollout
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound
from postroom.store.outbound.delivery_bound import DeliveryBound
from postroom.store.outbound.outbound import Capacity, LeasedMail, MailSender, NewMail, give_back_mail, queueing_mail
from support.store.fault_cases_outbound import LEASE
from support.store.job_setup import JobSetup

SLOW = timedelta(seconds=5)
BOUND = DeliveryBound(5, SLOW)


@transaction
def queue_mail(news: Sequence[NewMail], now: datetime) -> Script[None]:
    for new in news:
        yield from queueing_mail(new, now, Rollout("all"))


async def put(setup: JobSetup, count: int, tenant: str = "t") -> None:
    """Mail that leaves by SMTP."""
    domain = f"{tenant}.example"
    owner = MailSender(tenant, domain, f"u@{domain}", f"u@{domain}")
    to = (Recipient("r@example.com"),)
    news = [NewMail(new_id(), None, None, owner, "submitted", to, "s", b"x\r\n") for _ in range(count)]
    await setup.database.run(queue_mail(news, setup.clock()))


async def take(
    setup: JobSetup, database: Database, bound: DeliveryBound = BOUND, own: InFlight | None = None, most: int = 50
) -> list[LeasedMail]:
    now = setup.clock()
    capacity = Capacity(own or InFlight(50, room=100), bound=bound)
    return await database.run(outbound.lease_mail(new_id(), most, now, now + LEASE, capacity))


async def test_all_processes_together_have_no_more_in_delivery_than_the_bound(
    setup: JobSetup, second_database: Database
) -> None:
    await put(setup, 40)
    sides = [database for _ in range(4) for database in (setup.database, second_database)]
    taken = await asyncio.gather(*(take(setup, database, most=2) for database in sides))
    assert sum(map(len, taken)) == 5
    held = [each for batch in taken for each in batch]
    await setup.database.run(give_back_mail(held[0].hold, None, setup.clock()))
    assert len(await take(setup, second_database)) == 1


async def test_mail_that_is_slow_leaves_its_place_until_there_is_twice_as_much(
    setup: JobSetup, second_database: Database
) -> None:
    for number in range(10):
        await put(setup, 4, f"t{number}")
    assert len(await take(setup, setup.database)) == 5
    setup.clock.forward(SLOW.total_seconds() - 1)
    assert await take(setup, second_database) == []
    setup.clock.forward(1)
    assert len(await take(setup, second_database)) == 5
    setup.clock.forward(SLOW.total_seconds())
    assert await take(setup, setup.database) == [], "ten are slow: that is all the room there is"


async def test_behind_a_smart_host_no_mail_leaves_its_place(setup: JobSetup) -> None:
    await put(setup, 40)
    waits_in_turn = DeliveryBound(5)
    assert len(await take(setup, setup.database, waits_in_turn)) == 5
    setup.clock.forward(LEASE.total_seconds() / 2)
    assert await take(setup, setup.database, waits_in_turn) == []


async def test_a_process_that_died_holds_no_place(setup: JobSetup, second_database: Database) -> None:
    await put(setup, 40)
    assert len(await take(setup, setup.database)) == 5
    setup.clock.forward(LEASE.total_seconds() + 1)
    assert len(await take(setup, second_database)) == 5


async def test_what_others_deliver_counts_for_the_shares_of_tenants(setup: JobSetup, second_database: Database) -> None:
    """One tenant holds every place of another process: most of the next places go to the other tenant."""
    bound = DeliveryBound(20, SLOW)
    await put(setup, 40, "large")
    large = await take(setup, setup.database, bound, InFlight(10, room=20), most=10)
    assert len(large) == 10
    await put(setup, 40, "small")
    taken = await take(setup, second_database, bound, InFlight(10, room=20), most=10)
    by_tenant = Counter(each.tenant_id for each in taken)
    assert by_tenant[large[0].tenant_id] < 5, "without the others' mail they would have the same"
    assert by_tenant.total() == 10


@given(st.integers(1, 100), st.integers(0, 300), st.floats(0, 1), st.booleans())
def test_whatever_is_under_way_the_next_ones_stay_within_both_bounds(
    most: int, mails: int, share: float, leaves: bool
) -> None:
    slow = int(mails * share)
    bound = DeliveryBound(most, SLOW if leaves else None)
    free = bound.free(mails, slow)
    assert free >= 0
    if free:
        assert mails + free <= (2 * most if leaves else most)
        assert mails - (slow if leaves else 0) + free <= most


@pytest.mark.parametrize(("mails", "slow", "free"), [(0, 0, 5), (5, 0, 0), (5, 2, 2), (9, 9, 1), (10, 10, 0)])
def test_slow_mail_makes_room(mails: int, slow: int, free: int) -> None:
    assert BOUND.free(mails, slow) == free
