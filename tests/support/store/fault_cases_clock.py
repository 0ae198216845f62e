"""For each verb that undoes what a clock ahead has stored: a database in which it has something to do."""

from datetime import timedelta
from typing import Any

from postroom.core.queue.queues import Queues
from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.store.engine import clock_jumps
from postroom.store.engine.clock_jumps import Longest
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import ask_connector, lease_requests
from support.store.fault_cases_approvals import pending
from support.store.fault_cases_contacts import ENDPOINT, asked
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_people import opened
from support.store.fault_cases_senders import added, throttle_for_score
from support.store.fault_cases_submissions import submission, submitted
from support.store.inbox_setup import event
from support.store.job_setup import JobSetup

HOUR = timedelta(hours=1)


async def shorten_worker_leases(setup: JobSetup) -> Transaction[Any]:
    for _ in range(2):
        await setup.open_lease()
    return clock_jumps.shorten_worker_leases(setup.clock() - HOUR)


async def shorten_other_leases(setup: JobSetup) -> Transaction[Any]:
    await leased_message(setup)
    await setup.database.run(ask_connector(asked(setup), setup.clock()))
    await setup.database.run(lease_requests(ENDPOINT, 1, new_id(), timedelta(minutes=2), setup.clock()))
    return clock_jumps.shorten_other_leases(Longest(), setup.clock() - HOUR)


async def end_waits_ahead(setup: JobSetup) -> Transaction[Any]:
    await setup.retry_later(await setup.claimed())
    return clock_jumps.end_waits_ahead(setup.clock() - HOUR)


async def release_mail_ahead(setup: JobSetup) -> Transaction[Any]:
    ada = await added(setup)
    await submitted(setup, submission(ada.id))
    return clock_jumps.release_mail_ahead(setup.clock() - HOUR)


async def move_deadlines_ahead(setup: JobSetup) -> Transaction[Any]:
    await pending(setup)
    await setup.database.run(ask_connector(asked(setup), setup.clock()))
    await opened(setup.database, setup.clock)
    await setup.database.run(await throttle_for_score(setup))
    return clock_jumps.move_deadlines_ahead(setup.clock() - HOUR)


async def leased_message(setup: JobSetup, number: int = 1) -> Buffer:
    """A gateway event, handed out; its text counts as said."""
    queues = Queues()
    await Intake(setup.database, None, setup.clock, queues=queues).ingest(event(number))
    buffer = Buffer(setup.database, queues, setup.clock)
    assert await buffer.next("gateway", 1)
    return buffer


CASES: list[Case] = [
    shorten_worker_leases,
    shorten_other_leases,
    end_waits_ahead,
    release_mail_ahead,
    move_deadlines_ahead,
]
