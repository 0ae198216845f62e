"""A flood of one tenant, in the database: what the small ones wait beside it, with one dispatcher and with four."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.fairness import jain
from postroom.core.outbound.lanes import LanePolicy
from postroom.core.outbound.rollout import Rollout
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database
from postroom.store.outbound import outbound
from postroom.store.outbound.outbound import Capacity, LeasedMail, MailSender, NewMail, queueing_mail
from postroom.store.outbound.outbound_turns import miscounted_turns
from postroom.store.outbound.tenants import list_tenants
from support.scale import scale
from support.store.fault_cases_outbound import LEASE, stored
from support.store.job_setup import JobSetup

FLOOD = scale(1_000, 10_000)
TENANTS, USERS = 10, 10
SLOTS = 20
FAIR, FIFO = Rollout("all"), Rollout("off")


@transaction
def queue_mail(news: Sequence[NewMail], rollout: Rollout, now: datetime) -> Script[None]:
    for new in news:
        yield from queueing_mail(new, now, rollout)


async def send(setup: JobSetup, account_id: UUID, tenant: str, users: int, count: int, rollout: Rollout) -> None:
    domain = f"{tenant}.example"
    mails: list[NewMail] = []
    for number in range(count):
        address = f"u{number % users}@{domain}"
        sender = MailSender(tenant, domain, address, address)
        mails.append(
            NewMail(new_id(), account_id, None, sender, "submitted", (Recipient("r@example.com"),), "s", b"x\r\n")
        )
    for first in range(0, count, 500):
        await setup.database.run(queue_mail(mails[first : first + 500], rollout, setup.clock()))


class Office:
    """Dispatchers with a part of the slots each. Every delivery takes a second, in virtual time."""

    def __init__(self, setup: JobSetup, dispatchers: Sequence[Database], rollout: Rollout) -> None:
        self.setup = setup
        self.dispatchers = dispatchers
        self.rollout = rollout
        self.begun: list[tuple[int, LeasedMail]] = []

    async def second(self, number: int) -> int:
        """All slots are free again: every dispatcher leases what it can deliver. Returns how many there were."""
        each = SLOTS // len(self.dispatchers)
        capacity = Capacity(InFlight(each), LanePolicy.of(fair=self.rollout.fair_share), self.rollout)
        now = self.setup.clock()
        found = await asyncio.gather(
            *(
                database.run(outbound.lease_mail(new_id(), each, now, now + LEASE, capacity))
                for database in self.dispatchers
            )
        )
        self.begun += [(number, leased) for batch in found for leased in batch]
        return sum(map(len, found))

    async def until(self, count: int, tenants: set[int]) -> list[int]:
        """Work until so many mails of these tenants have begun; return how long each of them waited."""
        number = 0
        while len(waits := [at for at, leased in self.begun if leased.tenant_id in tenants]) < count:
            assert await self.second(number) == SLOTS or len(self.begun) >= count, "a slot is idle while mail waits"
            number += 1
        return sorted(waits)

    def jain(self, until: int) -> float:
        """Of what the tenants got in the seconds in which all of them had mail waiting."""
        got: dict[int, int] = {}
        for at, leased in self.begun:
            if at < until:
                got[leased.tenant_id] = got.get(leased.tenant_id, 0) + 1
        return jain(list(got.values()))


def p95(waits: Sequence[int]) -> int:
    return waits[int(0.95 * (len(waits) - 1))]


async def waits_of_small(
    setup: JobSetup, dispatchers: Sequence[Database], account_id: UUID, round_name: str, flood: int, rollout: Rollout
) -> tuple[list[int], Office]:
    """Queue a flood, if there is to be one, then the mail of the small ones, and work until that has begun."""
    if flood:
        await send(setup, account_id, f"{round_name}-flood", 1, flood, rollout)
    for number in range(TENANTS):
        await send(setup, account_id, f"{round_name}-{number}", USERS, USERS, rollout)
    office = Office(setup, dispatchers, rollout)
    names = {f"{round_name}-{number}" for number in range(TENANTS)}
    small = {each.id for each in await setup.database.run(list_tenants()) if each.name in names}
    return await office.until(TENANTS * USERS, small), office


@pytest.fixture
async def four_dispatchers(emptied_postgres_url: str, tmp_path: Path) -> AsyncIterator[list[Database]]:
    async with AsyncExitStack() as stack:
        opened = [connect_database(tmp_path, emptied_postgres_url) for _ in range(4)]
        for each in opened:
            stack.push_async_callback(each.close)
        yield opened


async def check_flood(setup: JobSetup, dispatchers: Sequence[Database]) -> None:
    account_id = (await stored(setup)).account_id
    alone, _ = await waits_of_small(setup, dispatchers, account_id, "alone", 0, FAIR)
    beside, office = await waits_of_small(setup, dispatchers, account_id, "beside", FLOOD, FAIR)
    assert p95(beside) <= 2 * p95(alone)
    assert office.jain(until=min(p95(beside), 4)) >= 0.95
    assert await setup.database.run(miscounted_turns()) == []


async def test_small_tenants_wait_at_most_twice_as_long_beside_a_flood(setup: JobSetup) -> None:
    await check_flood(setup, [setup.database])


async def test_small_tenants_wait_at_most_twice_as_long_with_four_dispatchers(
    postgres_setup: JobSetup, four_dispatchers: list[Database]
) -> None:
    await check_flood(postgres_setup, four_dispatchers)


async def test_first_in_first_out_lets_them_wait_for_the_whole_flood(setup: JobSetup) -> None:
    account_id = (await stored(setup)).account_id
    flood = scale(200, 2_000)
    waits, _ = await waits_of_small(setup, [setup.database], account_id, "fifo", flood, FIFO)
    assert waits[0] >= flood // SLOTS
