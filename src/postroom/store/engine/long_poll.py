"""Long polls: look for something in the database, wait for a signal, and look again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import structlog

from postroom.core.errors import BadInput, PostroomError
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled

log = structlog.get_logger()

LONGEST_WAIT_S = 60
LONGEST_WAIT = timedelta(seconds=LONGEST_WAIT_S)
T = TypeVar("T")
Take = Callable[[], Awaitable[list[T]]]
GiveBack = Callable[[list[T]], Awaitable[None]]


class LongPoll:
    """Waits for callers that may leave at any time. `not_given_back` is the event logged when giving back fails."""

    def __init__(self, database: Database, poll_s: float, not_given_back: str) -> None:
        self._database = database
        self._poll_s = poll_s
        self._not_given_back = not_given_back
        self._returning: set[asyncio.Task[None]] = set()

    async def lease(
        self,
        channel: str,
        signal: str,
        take: Take[T],
        give_back: GiveBack[T],
        wait: timedelta,
        left: asyncio.Event | None = None,
    ) -> list[T]:
        """Lease what `take` finds, waiting for it if needed. Nothing stays leased to a caller that has left."""
        left = left or asyncio.Event()

        async def look() -> list[T]:
            return await self._take_whole(take, give_back)

        leased = await self.find(channel, signal, look, wait, left)
        if leased and left.is_set():
            await give_back(leased)
            return []
        return leased or []

    async def find(
        self, channel: str, signal: str, look: Callable[[], Awaitable[T]], wait: timedelta, left: asyncio.Event | None
    ) -> T | None:
        """Look, and look again at each signal, until something is found, the time is over, or the caller has left."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait.total_seconds()
        left, woken = left or asyncio.Event(), asyncio.Event()
        subscription = self._database.subscribe(
            channel, lambda message: woken.set() if message in (signal, "") else None
        )
        leaving = asyncio.create_task(_set_after(left, woken))
        try:
            while True:
                woken.clear()
                if found := await look():
                    return found
                patience = deadline - loop.time()
                if patience <= 0 or left.is_set():
                    return None
                if not await signalled(woken, min(patience, self._poll_s)) and loop.time() >= deadline:
                    return None
        finally:
            leaving.cancel()
            subscription.close()

    async def close(self) -> None:
        """Wait until everything has been given back."""
        if self._returning:
            await asyncio.wait(self._returning)

    async def _take_whole(self, take: Take[T], give_back: GiveBack[T]) -> list[T]:
        """Take without being interrupted; if the caller is canceled meanwhile, give back what was taken."""
        taken = asyncio.ensure_future(take())
        try:
            return await asyncio.shield(taken)
        except asyncio.CancelledError:
            self._returning.add(returning := asyncio.create_task(self._return(taken, give_back)))
            returning.add_done_callback(self._returning.discard)
            raise

    async def _return(self, taken: "asyncio.Future[list[T]]", give_back: GiveBack[T]) -> None:
        try:
            await give_back(await taken)
        except PostroomError as error:
            log.warning(self._not_given_back, error=type(error).__name__)


def check_wait(wait: timedelta) -> None:
    if not timedelta(0) <= wait <= LONGEST_WAIT:
        longest = LONGEST_WAIT.total_seconds()
        raise BadInput("wait_s", f"is {wait.total_seconds():g}", f"wait from 0 to {longest:g} seconds")


async def _set_after(first: asyncio.Event, second: asyncio.Event) -> None:
    await first.wait()
    second.set()
