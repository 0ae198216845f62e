"""Periodic maintenance of decisions and actions, so that none waits for ever: small tasks, each a transaction."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog

from postroom.core.errors import StoreError
from postroom.store.actions.actions import end_orphans, release_capped
from postroom.store.actions.approvals import ask_to_close, expire_approvals
from postroom.store.actions.decisions import CHANNEL
from postroom.store.actions.model_calls import fail_left_calls
from postroom.store.backfill.backfill_spend import release_undecided
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.mail.search_backlog import index_older_mail
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

EVERY = timedelta(seconds=5)
# When nothing was found, and no action or decision changes meanwhile.
IDLE = timedelta(minutes=1)

Chore = Callable[[datetime], Transaction[int]]
"""A transaction that returns how many rows it handled."""


def maintenance_tasks(hourly_cap: int) -> dict[str, Chore]:
    """Return the tasks by the names under which they are logged."""
    return {
        "actions.orphans_ended": end_orphans,
        "approvals.expired": expire_approvals,
        "approvals.notices_to_close": lambda now: ask_to_close(new_id(), now),
        "actions.capped_released": lambda now: release_capped(hourly_cap, now),
        "model.calls_left": fail_left_calls,
        "backfill.undecided_released": release_undecided,
        "search.older_mail_indexed": lambda _now: index_older_mail(),
    }


async def run_maintenance(
    database: Database, chores: Mapping[str, Chore], every: timedelta = EVERY, clock: Clock = wall_clock
) -> None:
    """Run until canceled. Any number of processes may do this at once."""
    changed = asyncio.Event()
    subscription = database.subscribe(CHANNEL, lambda _message: changed.set())
    try:
        while True:
            changed.clear()
            found = await _run_chores(database, chores, clock)
            await asyncio.sleep(every.total_seconds())
            if not found:
                await signalled(changed, max(timedelta(0), IDLE - every).total_seconds())
    finally:
        subscription.close()


async def _run_chores(database: Database, chores: Mapping[str, Chore], clock: Clock) -> int:
    """Return how many rows were handled; 1 for a failure, so that it is tried again soon."""
    found = 0
    for name, chore in chores.items():
        try:
            if count := await database.run(chore(clock())):
                log.info(name, count=count)
                found += count
        except StoreError as error:
            log.warning("actions.chore_failed", chore=name, error=type(error).__name__)
            found += 1
    return found
