"""The dispatcher: it hands over while few are outstanding, in tier order, and never waits for what sleeps."""

from datetime import timedelta
from typing import Any

from conftest import ManualClock
from integration.product import ENDPOINT, OWNER, envelope
from postroom.core.job_types import CATALOGUE
from postroom.core.jobs import Job
from postroom.store import history, jobs, mail
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.switchboard.buffer import Buffer
from postroom.switchboard.dispatcher import Dispatcher
from postroom.switchboard.intake import Intake


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


async def test_mail_known_by_its_metadata_is_stored_and_not_classified(database: Database, clock: ManualClock) -> None:
    intake, dispatcher = await _set_up(database, clock, most=1)
    reference = _mail("reference", ingestion_tier="metadata")
    reference["payload"]["raw"] = None
    await intake.ingest(reference)
    assert await dispatcher.tick() == 1
    assert await database.run(history.count_states("email")) == {("default", "done"): 1}
    assert await database.run(jobs.list_jobs(limit=10)) == []
