"""A page that updates itself: a document at its address, and its changing part, the board, as a stream.

A page is a module in `pages/` with a subclass of `Page`, a function that creates it, and a template for its board.
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
    """The template of the board. It gets the values of `read`."""
    main: ClassVar[str]
    """The main subject of the page, in one word; its board has an element with this id."""

    def __init__(self, site: Site) -> None:
        self._site = site
        site.links.append(Link(self.address, self.title))
        self._broadcast = Broadcast(self._board, self.changes, site.intervals)

    @abstractmethod
    async def read(self) -> Mapping[str, object]:
        """Return the current values for the template."""

    @abstractmethod
    def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then whenever something may have changed since the last value was taken."""

    def actions(self) -> list[Route]:
        """Return the routes of the page's forms."""
        return []

    def routes(self) -> list[Route]:
        return [Route(self.address, self._show), Route(self.events, self._stream, methods=["GET"]), *self.actions()]

    @property
    def events(self) -> str:
        """Return the address of the stream."""
        return f"{self.address.rstrip('/')}/events"

    def look_again(self) -> None:
        """Read again after a change through the page itself, so that the next visitor sees it."""
        self._broadcast.look_again()

    def close(self) -> None:
        """End every stream, so that the server need not wait for tabs that stay open."""
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
    """Server-sent events. The frames are closed with the response, so a tab that leaves stops counting at once."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._frames):
            await super().__call__(scope, receive, send)
