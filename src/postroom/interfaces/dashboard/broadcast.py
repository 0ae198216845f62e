"""One reader for all open tabs of a page: it renders the board once, and every tab gets the same text.

Why not one read per tab: ten tabs would be ten times the queries, all with the same result. So the first tab starts a
reader and the last one to leave stops it; an unwatched dashboard reads nothing.

Tabs keep no queue. Each remembers the number of the last update it sent, and sends the current one when the number has
changed, so a slow phone skips what it missed and costs no memory. An update is the whole board, not a difference: if
one is lost, the next corrects it, and the browser changes only what differs.

A failure to read the board is an update too: the page says that it is not being updated, instead of looking quiet.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

log = structlog.stdlib.get_logger(__name__)

REST = 4
"""For how many times as long as a read took, the reader rests afterwards."""
PULSE = b": still here\nevent: pulse\ndata: 1\n\n"
STALLED = b"event: stalled\ndata: 1\n\n"


@dataclass(frozen=True, slots=True)
class UpdateIntervals:
    """How often things happen, in seconds."""

    between_updates: float = 1.0
    """The first change is shown at once; those inside this time after it become one update. A message changes several
    times on its way, within a second.
    """
    reread: float = 5.0
    """Read again after this long, even if no change was announced: another process may have made one."""
    pulse: float = 15.0
    """The interval of keep-alives on a quiet stream; the page takes silence for a lost connection."""
    after_failure: float = 1.0


@dataclass(frozen=True, slots=True)
class BoardUpdate:
    """The content that every tab should show now; `board` is None if it could not be read."""

    number: int
    board: str | None
    frame: bytes


class Broadcast:
    """`read` renders the board. `changes` yields at once, and whenever something may have changed since.

    The board is also read every few seconds, since changes by other processes may go unannounced.
    """

    def __init__(
        self,
        read: Callable[[], Coroutine[Any, Any, str]],
        changes: Callable[[], AsyncIterator[None]],
        intervals: UpdateIntervals,
    ) -> None:
        self._read = read
        self._changes = changes
        self._intervals = intervals
        self._update: BoardUpdate | None = None
        self._news = asyncio.Event()
        self._tabs = 0
        self._reader: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[str] | None = None
        self._closed = False
        self._is_old = False

    @property
    def tabs(self) -> int:
        """The number of tabs that show this board."""
        return self._tabs

    @property
    def is_idle(self) -> bool:
        """Whether nobody watches the board or waits for it."""
        return self._tabs == 0 and self._reading is None

    async def board(self) -> str:
        """Return the board for a page that is being opened: the running reader's, or read now, once for all who ask."""
        if self._is_old:
            self._is_old = False
            board = await asyncio.shield(self._start_reading())
            if self._reader is not None:
                self._publish(board)
            return board
        if self._reader is not None and self._update is not None and self._update.board is not None:
            return self._update.board
        return await asyncio.shield(self._reading or self._start_reading())

    def look_again(self) -> None:
        """Read again after a change through the page itself, so that the next visitor sees it."""
        self._is_old = True

    async def frames(self) -> AsyncGenerator[bytes]:
        """Yield the event stream of one tab, until the tab leaves (the generator is closed) or the dashboard closes."""
        self._join()
        sent = 0
        try:
            while not self._closed:
                update = self._update
                if update is not None and update.number != sent:
                    sent = update.number
                    yield update.frame
                elif not await _wait_for(self._news, self._intervals.pulse):
                    yield PULSE
        finally:
            self._leave()

    def close(self) -> None:
        """End every stream now, so that the server need not wait for tabs that stay open."""
        self._closed = True
        self._announce()

    def _join(self) -> None:
        self._tabs += 1
        if self._reader is None:
            self._update = None
            self._reader = asyncio.create_task(self._read_on(), name="dashboard-reader")

    def _leave(self) -> None:
        self._tabs -= 1
        if self._tabs == 0 and self._reader is not None:
            self._reader.cancel()
            self._reader = None

    async def _read_on(self) -> None:
        while True:
            try:
                await self._follow()
            except Exception as error:
                self._stall(error)
            await asyncio.sleep(self._intervals.after_failure)

    async def _follow(self) -> None:
        """Publish after every change, until the changes end or fail."""
        loop = asyncio.get_running_loop()
        changes = aiter(self._changes())
        change = asyncio.ensure_future(anext(changes))
        try:
            while True:
                await asyncio.wait({change}, timeout=self._intervals.reread)
                if change.done():
                    change.result()
                    change = asyncio.ensure_future(anext(changes))
                # Always a new read: one already in progress may have started before the change.
                started = loop.time()
                self._publish(await asyncio.shield(self._start_reading()))
                # A board that is slow to read is read less often, so that watching never costs most of a core.
                await asyncio.sleep(max(self._intervals.between_updates, REST * (loop.time() - started)))
        except StopAsyncIteration:
            return
        finally:
            change.cancel()
            await asyncio.gather(change, return_exceptions=True)

    def _start_reading(self) -> asyncio.Task[str]:
        """Start a task that others may join and that outlives a tab that leaves early."""
        self._reading = asyncio.create_task(self._read(), name="dashboard-read")
        self._reading.add_done_callback(self._finish_reading)
        return self._reading

    def _finish_reading(self, reading: asyncio.Task[str]) -> None:
        if self._reading is reading:
            self._reading = None
        if not reading.cancelled():
            reading.exception()  # retrieved, even if everyone who waited has gone

    def _stall(self, error: Exception) -> None:
        if self._update is None or self._update.board is not None:
            # Only the type of the error: its text could contain mail, or the database's address.
            log.warning("dashboard.stalled", error=type(error).__name__)
        self._publish(None)

    def _publish(self, board: str | None) -> None:
        """Announce the board, unless it has not changed."""
        last = self._update
        if last is not None and last.board == board:
            return
        frame = STALLED if board is None else as_message(board)
        self._update = BoardUpdate(last.number + 1 if last else 1, board, frame)
        self._announce()

    def _announce(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def as_message(text: str) -> bytes:
    """Return the text as one unnamed server-sent event, which htmx swaps into the page."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"


async def _wait_for(event: asyncio.Event, within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
            return True
    return False
