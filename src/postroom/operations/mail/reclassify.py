"""Decide again about messages, with today's rules and model."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.access import OPERATE
from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.jobs.types import CATALOGUE
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_ids import message_typed_as
from postroom.operations.nouns import MAIL
from postroom.operations.operation import Argument, command
from postroom.store.actions.decisions import Undecided, enqueue_decisions, latest_generation, undecided
from postroom.store.engine.codecs import time_text
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


def again_words(messages: int, batch_id: UUID) -> str:
    """A line about messages that are decided again, and one that says how to take the results back."""
    line = f"Deciding again about {counted(messages, 'message')}."
    return f"{line}\n`postroom undo --batch {batch_id}` takes back the resulting actions." if messages else line


@MAIL.operation(OPERATE, command("reclassify {messages}", line=lambda again: again_words(*again)))
async def reclassify(
    by: Caller,
    /,
    messages: Annotated[
        Sequence[UUID], Argument("Ids of messages."), message_typed_as("MESSAGE...", "Ids of messages.")
    ] = (),
    since: Annotated[datetime | None, Argument("All messages without a decision since then.")] = None,
) -> Reclassified:
    """Decide again. Earlier actions stay done; `postroom undo` takes them back.

    The resulting actions form one batch for `postroom undo --batch`. Nothing is sent twice.
    """
    if not messages and since is None:
        raise BadInput("MESSAGE", "is missing", "name messages, or give --since")
    chosen = [await _load_undecided(by.database, id) for id in messages]
    if since is not None:
        chosen += await by.run(undecided(since, MOST))
    return await decide_all_again(by, chosen, since)


async def decide_all_again(by: Caller, chosen: Sequence[Undecided], since: datetime | None) -> Reclassified:
    """Decide again about these messages, as one batch. The time since when goes into the audit log."""
    batch, fresh = new_id(), 0
    jobs = [decide_again(CATALOGUE, account, message, generation + 1, batch) for account, message, generation in chosen]
    asked = {"messages": len(jobs), **({} if since is None else {"since": time_text(since)})}
    entry = by.signature.under("messages.reclassify", "batch", str(batch), after=asked)
    for start in range(0, len(jobs), AT_ONCE):
        first_entry = entry if start == 0 else None
        fresh += await by.run(enqueue_decisions(jobs[start : start + AT_ONCE], by.clock(), first_entry))
    return Reclassified(fresh, batch)


async def _load_undecided(database: Database, id: UUID) -> Undecided:
    message = await database.run(load_message(id))
    return Undecided(message.account_id, id, await database.run(latest_generation(id)))
