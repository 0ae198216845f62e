"""The dispatcher: dispatches while few jobs are outstanding, in tier order, and never waits for waiting jobs."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from postroom.core.errors import ConstraintBroken, DatabaseFull, DatabaseUnavailable, StoreError
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.queues import Queues
from postroom.intake.buffer import Buffer
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.operations.caller import Caller
from postroom.operations.jobs.queues import replay
from postroom.operations.mail.mail_ids import find_message
from postroom.operations.people.audit import signature
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake import history
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from support.arrived import arrived_mail
from support.backfills import NAMED, open_backfill
from support.clocks import ManualClock
from support.product import ENDPOINT, OWNER, envelope
from support.store.inbox_setup import look, select
from support.store.running_worker import HookedDatabase, until


async def _set_up(database: Database, clock: ManualClock, most: int) -> tuple[Intake, Dispatcher]:
    await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, clock()))
    buffer = Buffer(database, clock=clock)
    return Intake(database, None, clock), Dispatcher(database, CATALOGUE, buffer, most_outstanding=most, clock=clock)


def _mail(event_id: str, tier: str = "default", **control: Any) -> dict[str, Any]:
    return {**envelope(event_id, {}), "control": {"policy_tier": tier, **control}}


async def _claimed(database: Database, clock: ManualClock) -> Job:
    token = new_id()
    await database.run(jobs.open_lease(token, "worker", clock(), clock() + timedelta(seconds=60)))
    (job,) = await database.run(jobs.claim(token, 1, clock()))
    return job


async def test_no_more_is_handed_over_than_may_be_outstanding(database: Database, clock: ManualClock) -> None:
    intake, dispatcher = await _set_up(database, clock, most=2)
    for n in range(3):
        await intake.ingest(_mail(f"m{n}"))
    assert await dispatcher.tick() == 2
    assert await dispatcher.tick() == 0
    await database.run(jobs.fail(await _claimed(database, clock), "given up", clock()))
    assert await dispatcher.tick() == 1


async def test_urgent_mail_that_comes_later_is_handed_over_before_what_still_waits(
    database: Database, clock: ManualClock
) -> None:
    intake, dispatcher = await _set_up(database, clock, most=1)
    for n in range(3):
        await intake.ingest(_mail(f"m{n}"))
    assert await dispatcher.tick() == 1
    await intake.ingest(_mail("urgent", "high_priority"))
    await database.run(jobs.fail(await _claimed(database, clock), "given up", clock()))
    assert await dispatcher.tick() == 1
    states = await database.run(history.count_states("email"))
    assert states == {("default", "done"): 1, ("default", "waiting"): 2, ("high_priority", "done"): 1}


async def test_a_job_that_sleeps_until_its_retry_keeps_nobody_waiting(database: Database, clock: ManualClock) -> None:
    intake, dispatcher = await _set_up(database, clock, most=1)
    await intake.ingest(_mail("troubled"))
    assert await dispatcher.tick() == 1
    job = await _claimed(database, clock)
    await database.run(jobs.retry_later(job.claim, clock() + timedelta(minutes=5), "no answer", clock()))
    await intake.ingest(_mail("urgent", "high_priority"))
    assert await dispatcher.tick() == 1


async def test_mail_known_by_its_metadata_is_handed_over_like_all_mail(database: Database, clock: ManualClock) -> None:
    intake, dispatcher = await _set_up(database, clock, most=1)
    reference = _mail("reference", ingestion_tier="metadata")
    reference["payload"]["raw"] = None
    await intake.ingest(reference)
    assert await dispatcher.tick() == 1
    assert await database.run(history.count_states("email")) == {("default", "done"): 1}
    (job,) = await database.run(jobs.list_jobs(limit=10))
    assert job.type == "classify"
    assert await dispatcher.tick() == 0


async def test_old_mail_of_a_backfill_takes_two_places_at_most(database: Database, clock: ManualClock) -> None:
    intake, dispatcher = await _set_up(database, clock, most=10)
    await open_backfill(database, ENDPOINT, clock())
    for n in range(5):
        await intake.ingest(_mail(f"old{n}", **NAMED))
    assert await dispatcher.tick() == 2
    for n in range(3):
        await intake.ingest(_mail(f"new{n}"))
    assert await dispatcher.tick() == 3
    assert await dispatcher.tick() == 0
    states = await database.run(history.count_states("email"))
    assert states == {("default", "done"): 3, ("history", "done"): 2, ("history", "waiting"): 3}
    await database.run(jobs.fail(await _claimed(database, clock), "given up", clock()))
    assert await dispatcher.tick() == 1


async def test_a_message_is_stored_with_its_categories(database: Database, clock: ManualClock) -> None:
    intake, dispatcher = await _set_up(database, clock, most=10)
    headers = [["From", "billing@shop.example"], ["Subject", "Your invoice 4711"], ["To", OWNER]]
    payload = {"raw": {"headers": headers}, "normalized_text": "Invoice 4711: 12.00 EUR"}
    await intake.ingest({**_mail("bill"), "payload": payload})
    assert await dispatcher.tick() == 1
    kept = await select(database, "SELECT category FROM message_categories")
    assert ("finance",) in kept


# One message's trouble is its own.


def _from(event_id: str, address: str) -> dict[str, Any]:
    """Incompressible, so that no database makes it small before it looks at its length."""
    headers = [["From", address], ["Subject", event_id]]
    return {**_mail(event_id), "payload": {"raw": {"headers": headers}, "normalized_text": event_id}}


async def test_an_address_of_kilobytes_is_none_and_its_mail_is_handed_over_with_all_others(
    database: Database, clock: ManualClock
) -> None:
    intake, dispatcher = await _set_up(database, clock, most=5)
    endless = "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(800)) + "@example.com"
    for n, address in enumerate(["ann@example.org", endless, "ben@example.org"]):
        await intake.ingest(_from(f"m{n}", address))
    assert await dispatcher.tick() == 3
    assert await database.run(history.count_states("email")) == {("default", "done"): 3}
    kept = await select(database, "SELECT sender FROM messages")
    named_by_the_envelope = _from("m", endless)["sender"]["identity"]
    assert {sender for (sender,) in kept} == {"ann@example.org", named_by_the_envelope, "ben@example.org"}


class Refusing:
    """A real database, but for the second message that is stored: with that one it has the given trouble.

    Storing all of them together fails with something that one of them is to blame for.
    """

    def __init__(self, database: Database, trouble: Exception) -> None:
        self._database = database
        self._troubles = {1: ConstraintBroken("one of them"), 3: trouble}
        self._stored = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def run(self, transaction: Transaction[Any]) -> Any:
        self._stored += transaction.name == "store_messages"
        if transaction.name == "store_messages" and self._stored in self._troubles:
            raise self._troubles[self._stored]
        return await self._database.run(transaction)


@pytest.mark.parametrize("trouble", [ConstraintBroken("too long"), ValueError("odd")], ids=repr)
async def test_a_message_that_the_database_refuses_fails_alone(
    database: Database, clock: ManualClock, trouble: Exception
) -> None:
    intake, _ = await _set_up(database, clock, most=5)
    refusing: Any = Refusing(database, trouble)
    dispatcher = Dispatcher(refusing, CATALOGUE, Buffer(database, clock=clock), clock=clock)
    ids = [(await intake.ingest(_mail(f"m{n}"))).request_id for n in range(4)]
    assert await dispatcher.tick() == 4
    rows = {row.id: row for row in await look(database)}
    assert [rows[id].state for id in ids] == ["done", "failed", "done", "done"]
    assert rows[ids[1]].reason
    assert len(await database.run(jobs.list_jobs(limit=10))) == 3


@pytest.mark.parametrize("trouble", [DatabaseUnavailable("away"), DatabaseFull("full")], ids=repr)
async def test_a_database_that_is_away_makes_no_message_fail(
    database: Database, clock: ManualClock, trouble: StoreError
) -> None:
    intake, _ = await _set_up(database, clock, most=5)
    refusing: Any = Refusing(database, trouble)
    dispatcher = Dispatcher(refusing, CATALOGUE, Buffer(database, clock=clock), clock=clock)
    for n in range(3):
        await intake.ingest(_mail(f"m{n}"))
    with pytest.raises(type(trouble)):
        await dispatcher.tick()
    assert [row.state for row in await look(database)] == ["done", "leased", "leased"]
    clock.forward(61)
    await Buffer(database, clock=clock).sweep()
    assert await dispatcher.tick() == 2
    assert [row.state for row in await look(database)] == ["done"] * 3


async def test_mail_waits_no_poll_after_a_moment_without_the_database(database: Database, clock: ManualClock) -> None:
    """It was announced while the database was away, and nothing announces it again."""
    intake, _ = await _set_up(database, clock, most=5)
    meddler = HookedDatabase(database)

    async def fail() -> None:
        raise DatabaseUnavailable("away for a moment")

    await intake.ingest(_mail("announced"))
    meddler.before["lease"] = fail
    buffer = Buffer(meddler, clock=clock)
    running = asyncio.create_task(Dispatcher(meddler, CATALOGUE, buffer, poll=timedelta(hours=1), clock=clock).run())

    async def is_done() -> bool:
        return [row.state for row in await look(database)] == ["done"]

    await until(is_done)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


# The live page.


async def test_mail_that_was_upgraded_or_replayed_is_one_line_on_the_live_page(
    database: Database, clock: ManualClock
) -> None:
    intake, dispatcher = await _set_up(database, clock, most=9)
    reference = _mail("upgraded", ingestion_tier="metadata")
    reference["payload"] = {"raw": None, "normalized_text": "hello"}
    first = await intake.ingest(reference)
    await dispatcher.tick()
    await intake.ingest(_mail("upgraded"))
    plain = await intake.ingest(_mail("plain"))
    await dispatcher.tick()
    began = clock()
    clock.forward(60)
    signed = signature("cli", "admin")
    copies = await replay(Caller(database, signed, clock), Queues(), "email", since=began, ids=[plain.request_id])
    await dispatcher.tick()
    assert len(copies) == 1
    assert len(await look(database)) == 4
    shown = await arrived_mail(database)
    expected = [await find_message(database, str(each.request_id)) for each in (plain, first)]
    assert [line.id for line in shown] == expected
    assert [line.state for line in shown] == ["done", "done"]
