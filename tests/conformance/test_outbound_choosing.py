"""Choosing outgoing mail: how much a batch reads and writes, and what others may do between its statements."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest

from postroom.core.outbound.fair_nodes import REGARDED, InFlight
from postroom.core.outbound.priority import Throttle
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Database, Rows, Script, Statement, Step, Transaction, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.outbound import outbound, outbound_answers, senders, tenants
from postroom.store.outbound.outbound import Capacity, LeasedMail, MailSender, NewMail, queueing_mail
from postroom.store.outbound.outbound_turns import miscounted_turns
from support.store.fault_cases_outbound import LEASE
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

T = TypeVar("T")
BATCH = 6
Owner = tuple[int, int]
"""A tenant, and one of its senders."""


@transaction
def queue_mail(mails: list[tuple[Owner, UUID]], now: datetime) -> Script[None]:
    for (tenant, user), id in mails:
        name, domain = f"u{user}@d{tenant}.example", f"d{tenant}.example"
        sender = MailSender(f"t{tenant}", domain, name, name)
        to = (Recipient("r@example.com"),)
        yield from queueing_mail(NewMail(id, None, None, sender, "submitted", to, "s", b"x\r\n"), now)


async def put(setup: JobSetup, *owners: Owner) -> list[UUID]:
    mails = [(owner, new_id()) for owner in owners]
    await setup.database.run(queue_mail(mails, setup.clock()))
    return [id for _, id in mails]


def leasing(setup: JobSetup, most: int = BATCH) -> Transaction[list[LeasedMail]]:
    now = setup.clock()
    return outbound.lease_mail(new_id(), most, now, now + LEASE, Capacity(InFlight(10**9)))


class Counted:
    """The statements of a transaction, and the rows that they were given and have found."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.rows = 0

    def of(self, transaction: Transaction[T]) -> Transaction[T]:
        return transaction._replace(begin=lambda: self._counting(transaction.begin()))

    def _counting(self, script: Script[T]) -> Script[T]:
        rows: Rows | None = None
        while True:
            try:
                step = script.send(rows)  # type: ignore[arg-type] - None is what starts a generator
            except StopIteration as end:
                return end.value
            rows = yield step
            if isinstance(step, Statement):
                self.statements.append(step.name)
                self.rows += len(rows) + (sum(map(len, step.parameters)) if step.many else 0)


async def test_a_batch_costs_the_same_however_much_waits_and_for_however_many_tenants(setup: JobSetup) -> None:
    await put(setup, (0, 0))
    await setup.database.run(leasing(setup))  # the first batch of all makes the lanes
    found: list[Counted] = []
    fewest = REGARDED + BATCH
    for tenants_now, mails in ((range(fewest), 2), (range(fewest), 4), (range(fewest, 2 * fewest), 2)):
        await put(setup, *((tenant, 0) for tenant in tenants_now for _ in range(mails)))
        found.append(Counted())
        assert len(await setup.database.run(found[-1].of(leasing(setup)))) == BATCH
    assert found[0].statements == found[1].statements == found[2].statements
    assert found[0].rows == found[1].rows == found[2].rows
    assert len(found[0].statements) < 16
    assert await setup.database.run(miscounted_turns()) == []


class Interrupted(PostgresDatabase):
    """Lets others do something right before a statement, once."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before = ""
        self.others: Callable[[], Awaitable[Any]] | None = None
        self.done = 0

    async def _execute(self, connection: Any, step: Step) -> Rows:
        if isinstance(step, Statement) and step.name == self.before and self.others is not None:
            others, self.others = self.others, None
            await others()
            self.done += 1
        return await super()._execute(connection, step)


@pytest.fixture
async def interrupted(postgres_setup: JobSetup, emptied_postgres_url: str) -> AsyncIterator[Interrupted]:
    opened = Interrupted(emptied_postgres_url)
    yield opened
    await opened.close()


BETWEEN = ("select_first_tenants", "select_first_mails", "lease_chosen", "keep_turns")
"""`keep_turns` comes after the chosen mail has left the queue: it cannot be canceled there."""


async def taken(setup: JobSetup, interrupted: Interrupted) -> list[UUID]:
    leased = await interrupted.run(leasing(setup))
    assert interrupted.done == 1
    assert await setup.database.run(miscounted_turns()) == []
    return [each.id for each in leased]


async def left(setup: JobSetup) -> set[UUID]:
    found: set[UUID] = set()
    while leased := await setup.database.run(leasing(setup)):
        found |= {each.id for each in leased}
    assert await setup.database.run(miscounted_turns()) == []
    return found


@pytest.mark.parametrize("before", BETWEEN[:3])
async def test_a_mail_that_is_canceled_meanwhile_is_not_taken(
    postgres_setup: JobSetup, interrupted: Interrupted, before: str
) -> None:
    setup = postgres_setup
    ids = await put(setup, (1, 1), (1, 1), (2, 1))
    interrupted.before = before
    interrupted.others = lambda: setup.database.run(outbound_answers.cancel_mail(ids[0], signed(), setup.clock()))
    assert set(await taken(setup, interrupted)) == set(ids[1:])
    assert await left(setup) == set()


@pytest.mark.parametrize("before", BETWEEN)
async def test_mail_that_arrives_meanwhile_at_a_sender_that_becomes_idle_is_not_forgotten(
    postgres_setup: JobSetup, interrupted: Interrupted, before: str
) -> None:
    setup = postgres_setup
    ids = await put(setup, (1, 1), (2, 1))
    interrupted.before = before
    more: list[UUID] = []

    async def arrive() -> None:
        more.extend(await put(setup, (1, 1), (1, 2), (2, 1)))

    interrupted.others = arrive
    first = await taken(setup, interrupted)
    assert set(ids) <= set(first)
    assert set(first) | await left(setup) == {*ids, *more}


@pytest.mark.parametrize("before", BETWEEN)
async def test_of_a_sender_that_is_throttled_and_a_tenant_that_is_paused_meanwhile_nothing_is_taken(
    postgres_setup: JobSetup, interrupted: Interrupted, before: str
) -> None:
    setup = postgres_setup
    ids = await put(setup, (1, 1), (1, 2), (2, 1), (3, 1))
    interrupted.before = before

    async def hold() -> None:
        until = setup.clock() + timedelta(hours=1)
        throttle = senders.throttle_sender("u1@d1.example", Throttle(until, "spam"), signed(), setup.clock())
        await setup.database.run(throttle)
        await setup.database.run(tenants.pause_tenant("t2", signed(), setup.clock()))

    interrupted.others = hold
    assert set(await taken(setup, interrupted)) == {ids[1], ids[3]}


async def test_two_processes_that_choose_at_the_same_time_share_what_waits(
    setup: JobSetup, second_database: Database
) -> None:
    ids = await put(setup, *((tenant, 0) for tenant in range(4) for _ in range(3)))
    first = await setup.database.run(leasing(setup))
    second = await second_database.run(leasing(setup))
    assert {each.id for each in first} | {each.id for each in second} == set(ids)
    assert await setup.database.run(miscounted_turns()) == []
