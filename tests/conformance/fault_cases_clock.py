"""For each verb that undoes what a clock ahead has stored: a database in which it has something to do."""

from datetime import timedelta
from typing import Any

from conformance.desk import Desk
from conformance.fault_cases_contacts import ENDPOINT, asked
from conformance.fault_cases_jobs import Case
from conformance.inbox_desk import event
from postroom.core.queue.queues import Queues
from postroom.store.connector_requests import ask_connector, lease_requests
from postroom.store.engine import clock_jumps
from postroom.store.engine.clock_jumps import Longest
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.switchboard.buffer import Buffer
from postroom.switchboard.intake import Intake

HOUR = timedelta(hours=1)


async def shorten_worker_leases(desk: Desk) -> Transaction[Any]:
    for _ in range(2):
        await desk.open_lease()
    return clock_jumps.shorten_worker_leases(desk.clock() - HOUR)


async def shorten_other_leases(desk: Desk) -> Transaction[Any]:
    await leased_message(desk)
    await desk.database.run(ask_connector(asked(desk), desk.clock()))
    await desk.database.run(lease_requests(ENDPOINT, 1, new_id(), timedelta(minutes=2), desk.clock()))
    return clock_jumps.shorten_other_leases(Longest(), desk.clock() - HOUR)


async def end_waits_ahead(desk: Desk) -> Transaction[Any]:
    await desk.retry_later(await desk.claimed())
    return clock_jumps.end_waits_ahead(desk.clock() - HOUR)


async def leased_message(desk: Desk, number: int = 1) -> Buffer:
    """A gateway event, handed out; its text counts as said."""
    queues = Queues()
    await Intake(desk.database, None, desk.clock, queues=queues).ingest(event(number))
    buffer = Buffer(desk.database, queues, desk.clock)
    assert await buffer.next("gateway", 1)
    return buffer


CASES: list[Case] = [shorten_worker_leases, shorten_other_leases, end_waits_ahead]
