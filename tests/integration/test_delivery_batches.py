"""Mails that are delivered at the same time share transactions, and each gets its own answer."""

import asyncio

import pytest

from postroom.core.actions.permits import DeliveryLease
from postroom.core.errors import Canceled, LeaseLost, Parked, StoreError
from postroom.outbound.queue.delivery_batches import LONGEST, DeliveryBatches
from postroom.outbound.queue.pace import Pace
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.outbound import destinations, outbound_answers
from postroom.store.outbound.outbound_recipients import Attempt, Departure, RecipientChange
from support.clocks import ManualClock
from support.smtp import CONTENT
from support.smtp_sending import LEASE, SmtpSending
from support.store.fault_cases_registry import signed

ADA, BEN = "ada@example.org", "ben@example.net"
SENT = RecipientChange(0, ADA, "sent", "250 ok")


@pytest.fixture
def sending(database: Database, clock: ManualClock) -> SmtpSending:
    return SmtpSending(database, clock)


@pytest.fixture
def batches(sending: SmtpSending) -> DeliveryBatches:
    return DeliveryBatches(sending.database, Pace(lease=LEASE), sending.clock, lambda: 7.0)


async def test_each_mail_of_a_batch_is_loaded_with_its_own_recipients_however_long_it_is(
    sending: SmtpSending, batches: DeliveryBatches
) -> None:
    long = CONTENT + b"x" * LONGEST
    ids = [await sending.put(ADA), await sending.put(BEN, ADA), await sending.put(BEN, content=long)]
    leased = {each.id: each for each in await sending.lease()}

    async def loaded(hold: DeliveryLease) -> tuple[bytes, list[str]]:
        async with batches.loaded(hold) as (mail, recipients):
            return mail.content, [each.address for each in recipients]

    stale = DeliveryLease(ids[0], new_id())
    *found, lost = await asyncio.gather(*(loaded(leased[id].hold) for id in ids), loaded(stale), return_exceptions=True)
    assert found == [(CONTENT, [ADA]), (CONTENT, [BEN, ADA]), (long, [BEN])]
    assert isinstance(lost, LeaseLost)


async def test_what_may_not_leave_stays_and_what_leaves_beside_it_leaves(
    sending: SmtpSending, batches: DeliveryBatches
) -> None:
    goes, canceled, paused, taken_over = [await sending.put(ADA) for _ in range(4)]
    leased = {each.id: each for each in await sending.lease()}
    await sending.database.run(outbound_answers.cancel_mail(canceled, signed(), sending.clock()))
    await sending.database.run(destinations.pause_destination("example.net", signed(), sending.clock()))
    departures = [Departure(leased[id].hold, [(0, ADA)]) for id in (goes, canceled)]
    departures.append(Departure(leased[paused].hold, [(0, BEN)]))
    departures.append(Departure(DeliveryLease(taken_over, new_id()), [(0, ADA)]))
    answers = await asyncio.gather(*map(batches.leave, departures), return_exceptions=True)
    assert answers[0] == 7.0
    assert [type(each) for each in answers[1:]] == [Canceled, Parked, LeaseLost]
    sending.clock.forward(LEASE.total_seconds() + 1)
    await sending.lease()
    assert [await sending.states(id) for id in (goes, paused, taken_over)] == [["unknown"], ["sending"], ["sending"]]


async def test_outcomes_that_the_database_refuses_cost_the_others_nothing(
    sending: SmtpSending, batches: DeliveryBatches
) -> None:
    ids = [await sending.put(ADA) for _ in range(3)]
    leased = {each.id: each for each in await sending.lease()}
    wrong = SENT._replace(state="nonsense")  # type: ignore[arg-type]
    attempts = [Attempt(leased[id].hold, [wrong if id == ids[1] else SENT]) for id in ids]
    answers = await asyncio.gather(*map(batches.record, attempts), return_exceptions=True)
    assert (answers[0], answers[2]) == ("sent", "sent")
    assert isinstance(answers[1], StoreError)
    assert [await sending.states(id) for id in ids] == [["sent"], ["sending"], ["sent"]]


async def test_outcomes_under_a_lease_that_another_has_taken_change_nothing(
    sending: SmtpSending, batches: DeliveryBatches
) -> None:
    id = await sending.put(ADA)
    (before,) = await sending.lease()
    sending.clock.forward(LEASE.total_seconds() + 1)
    (now,) = await sending.lease()
    old, new = await asyncio.gather(
        batches.record(Attempt(before.hold, [SENT._replace(state="bounced", reply="550 no")])),
        batches.record(Attempt(now.hold, [SENT])),
        return_exceptions=True,
    )
    assert isinstance(old, LeaseLost)
    assert new == "sent"
    assert await sending.states(id) == ["sent"]
