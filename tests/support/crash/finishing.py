"""The end of every chaos run: a healthy worker that does what is left."""

import signal

from support.crash.evidence import Place
from support.patience import PATIENCE_S
from support.processes import ProcessGroup

WORKER = "support.crash.worker_process"


async def finish_all(children: ProcessGroup, place: Place) -> None:
    """A healthy worker does what is left, takes the leases of the dead, and leaves."""
    worker = await children.start(WORKER, *place.arguments(), "--pause", "0")

    async def all_ended() -> bool:
        return await place.live_jobs() == 0 and await place.leases() == 1

    await worker.until(all_ended, patience_s=5 * PATIENCE_S)  # on a busy machine much is left
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0, worker.complaints()
