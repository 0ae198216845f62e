"""Decide again about messages, with today's rules and model."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.jobs.types import CATALOGUE
from postroom.operations.caller import Caller
from postroom.store.actions.decisions import Undecided, enqueue_decisions, latest_generation, undecided
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs.job_builders import decide_again
from postroom.store.mail.mail import load_message

MOST = 100_000
AT_ONCE = 500


class Reclassified(NamedTuple):
    """How many messages are newly queued to be decided again, and the batch of the resulting actions."""

    messages: int
    batch_id: UUID


async def reclassify(
    by: Caller, messages: Sequence[UUID], since: datetime | None, *, since_as_given: str | None = None
) -> Reclassified:
    """Decide again about the named messages, and about those since a time that have no decision.

    `since_as_given` is the time in the user's words, for the audit log.
    """
    chosen = [await _load_undecided(by.database, id) for id in messages]
    if since is not None:
        chosen += await by.run(undecided(since, MOST))
    return await decide_all_again(by, chosen, since_as_given=since_as_given)


async def decide_all_again(
    by: Caller, chosen: Sequence[Undecided], *, since_as_given: str | None = None
) -> Reclassified:
    """Decide again about these messages, as one batch."""
    batch, fresh = new_id(), 0
    jobs = [decide_again(CATALOGUE, account, message, generation + 1, batch) for account, message, generation in chosen]
    asked = {"messages": len(jobs), **({} if since_as_given is None else {"since": since_as_given})}
    entry = by.signature.under("messages.reclassify", "batch", str(batch), after=asked)
    for start in range(0, len(jobs), AT_ONCE):
        first_entry = entry if start == 0 else None
        fresh += await by.run(enqueue_decisions(jobs[start : start + AT_ONCE], by.clock(), first_entry))
    return Reclassified(fresh, batch)


async def _load_undecided(database: Database, id: UUID) -> Undecided:
    message = await database.run(load_message(id))
    return Undecided(message.account_id, id, await database.run(latest_generation(id)))
