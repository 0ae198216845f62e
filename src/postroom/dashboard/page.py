"""A page that keeps itself up to date: a document at its address, and its changing part, the board, as a stream.

A page is a module in `pages/` with a subclass of `Page` and a function that makes it, and a template of its board.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import ClassVar

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from postroom.dashboard.broadcast import Broadcast
from postroom.dashboard.site import Link, Site

log = structlog.stdlib.get_logger(__name__)

UNAVAILABLE = 503


class Page(ABC):
    address: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str]
    """Of the board. It gets the values of `read`."""
    main: ClassVar[str]
    """What the page is mostly about, in a word; its board has an element of this id."""

    def __init__(self, site: Site) -> None:
        self._site = site
        site.links.append(Link(self.address, self.title))
        self._broadcast = Broadcast(self._board, self.changes, site.intervals)

    @abstractmethod
    async def read(self) -> Mapping[str, object]:
        """The values of the template, as they are now."""

    @abstractmethod
    def changes(self) -> AsyncIterator[None]:
        """Yields at once, and then whenever something may have changed since the last value was taken."""

    def actions(self) -> list[Route]:
        """The forms of the page."""
        return []

    def routes(self) -> list[Route]:
        return [Route(self.address, self._show), Route(self.events, self._stream, methods=["GET"]), *self.actions()]

    @property
    def events(self) -> str:
        """The address of the stream."""
        return f"{self.address.rstrip('/')}/events"

    def look_again(self) -> None:
        """Something was changed through the page itself: whoever opens it next sees that."""
        self._broadcast.look_again()

    def close(self) -> None:
        """Ends every stream, so that the server need not wait for tabs that would stay open for ever."""
        self._broadcast.close()

    async def _board(self) -> str:
        return self._site.render(self.template, **await self.read())

    async def _show(self, _request: Request) -> Response:
        try:
            board = await self._broadcast.board()
        except Exception as error:
            log.warning("dashboard.page_failed", error=type(error).__name__)
            raise HTTPException(UNAVAILABLE) from error
        return HTMLResponse(self._site.render("live.html", page=self, board=board))

    async def _stream(self, _request: Request) -> Response:
        if not self._broadcast.has_room:
            raise HTTPException(UNAVAILABLE, headers={"Retry-After": "5"})
        return EventStream(self._broadcast.frames())


class EventStream(StreamingResponse):
    """Server-sent events. The frames are closed with the answer, so a tab that leaves is counted out at once."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._frames):
            await super().__call__(scope, receive, send)
