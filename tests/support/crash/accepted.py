"""Compare what a process was told is accepted with what is stored."""

import asyncio
from uuid import UUID

from postroom.jobs.queue import JobQueue
from support.crash.evidence import Place
from support.processes import Child


def accepted(child: Child) -> dict[str, UUID]:
    """The ids that the process was told, by the keys under which it asked."""
    told = (line.details.split() for line in child.announced("accepted"))
    return {key: UUID(id) for key, id in told}


async def check_accepted(place: Place, queue: JobQueue, told: dict[str, UUID]) -> None:
    """Every acknowledged job is there under its key, and asking again gives the same one."""
    rows = await place.rows("SELECT idempotency_key, id FROM jobs")
    kept = {key: UUID(str(id)) for key, id in rows}
    assert len(kept) == len(rows), "a key has two jobs"
    assert told.items() <= kept.items()
    again = await asyncio.gather(*(queue.enqueue("parcel", {}, key=key) for key in kept))
    assert {answer.id for answer in again} == set(kept.values())
    assert all(answer.duplicate for answer in again)
    await place.check_integrity()
