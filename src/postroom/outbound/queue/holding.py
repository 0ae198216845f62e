"""Keeps the lease on a mail while it is being sent: it is renewed every 20 seconds, and the work ends when it is lost.

So the lease can be short: the mail of a killed sender is leased again within a minute, however long one mail may take.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from postroom.core.errors import StoreError
from postroom.outbound.queue.pace import Pace


async def while_renewed(
    work: Coroutine[Any, Any, None],
    renew: Callable[[], Awaitable[None]],
    pace: Pace,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Do the work. When another sender has taken over, end the work and raise LeaseLost.

    A renewal that the database did not answer is repeated; once the lease must have run out, its error is raised.
    """
    working = asyncio.ensure_future(work)
    beating = asyncio.ensure_future(_beat(renew, pace, sleep))
    try:
        await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await _cancel(working)
            beating.result()
    finally:
        await _cancel(working, beating)
    working.result()


async def _beat(renew: Callable[[], Awaitable[None]], pace: Pace, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Renew until the lease is lost; never return."""
    missed = 0
    while True:
        await sleep(pace.renew.total_seconds())
        try:
            await renew()
            missed = 0
        except StoreError:
            missed += 1
            if missed * pace.renew >= pace.lease:
                raise


async def _cancel(*tasks: "asyncio.Future[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        # Retrieved, so that asyncio does not report an error that came too late to matter.
        _ = task.cancelled() or task.exception()
