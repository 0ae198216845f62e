"""A page that updates itself: a document at its address, and its changing part, the board, as a stream.

A page is a module in `pages/` with a subclass of `Page`, a function `pages` that creates it, and a template for its
board.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import aclosing
from typing import ClassVar

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from postroom.core.errors import BadInput, NotFound
from postroom.interfaces.dashboard.boards import TOKEN_MARKER, Boards
from postroom.interfaces.dashboard.compression import page_response
from postroom.interfaces.dashboard.refused_forms import PROBLEM, fill_in
from postroom.interfaces.dashboard.said import forget_said, said_before
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.overview.channels import changes_on
from postroom.operations.people.form_tokens import masked_form_token
from postroom.settings.reading import Settings

log = structlog.stdlib.get_logger(__name__)

EVENTS = "/events"
"""The prefix of every stream's address."""
UNAVAILABLE = 503


class DashboardPage(ABC):
    address: ClassVar[str]
    """The path, with names in braces for its variable parts: `/mail/{message}`."""
    title: ClassVar[str]
    template: ClassVar[str]
    """The template of the board. It gets the values of `read`."""
    personal: ClassVar[bool] = False
    """Whether two people of one role see different boards."""
    has_secret: ClassVar[bool] = False
    """Whether the board shows a secret; it is not compressed then."""
    channels: ClassVar[Collection[str]] = ()
    """Where changes of what the board shows are announced."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._parts = site.parts
        self._database, self._clock = site.parts.database, site.parts.clock
        self._boards = Boards(self._board, self.changes, site.intervals, personal=self.personal, tabs_of=site.tabs_of)
        site.add(self.address, self._boards)

    @property
    def _settings(self) -> Settings:
        """Those in effect now."""
        return self._parts.settings

    @abstractmethod
    async def read(self, visit: Visit) -> Mapping[str, object]:
        """Return the current values for the template.

        Raises NotFound if there is no such page, and BadInput if a filter makes no sense.
        """

    def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then whenever something may have changed since the last value was taken.

        By default these are the changes announced on `channels`; the board is read again every few seconds anyway.
        """
        return changes_on(self._database, self.channels)

    def actions(self) -> list[Route]:
        """Return the routes of the page's forms, and of the parts that it loads later."""
        return []

    def routes(self) -> list[Route]:
        events = f"{EVENTS}{self.address.rstrip('/')}"
        return [*self.actions(), Route(events, self._stream, methods=["GET"]), Route(self.address, self._show)]

    def close(self) -> None:
        """End every stream, so that the server need not wait for tabs that stay open."""
        self._boards.close()

    async def _board(self, visit: Visit) -> str:
        values = await self.read(visit)
        shared = {"account": await self._site.account(), "waiting": await self._site.waiting(), "zone": visit.zone}
        board = self._site.render(
            "board.html", template=self.template, visit=visit, form_token=TOKEN_MARKER, **shared, **values
        )
        refused = self._site.refused.find(visit.refused)
        return fill_in(board, refused) if refused and refused.person == visit.visitor.name else board

    async def _show(self, request: Request) -> Response:
        visit = Visit.of(request, request.url.path, self._site.zone_of(request))
        try:
            board, account = await self._boards.board(visit), await self._site.account()
        except (NotFound, BadInput) as error:
            status = 404 if isinstance(error, NotFound) else 400
            return HTMLResponse(self._site.error(status, str(error)), status_code=status)
        except Exception as error:
            log.warning("dashboard.page_failed", page=self.address, error=type(error).__name__)
            raise HTTPException(UNAVAILABLE) from error
        said = said_before(request)
        is_at_field = visit.refused and PROBLEM in board
        values = {"board": board, "said": None if is_at_field else said, "events": _events(visit), "account": account}
        values |= {"back": visit.address, "form_token": masked_form_token(visit.visitor), "zone": visit.zone}
        document = self._site.render("shell.html", page=self, visit=visit, **values)
        response = HTMLResponse(document) if self.has_secret else page_response(request, document)
        return forget_said(response) if said else response

    async def _stream(self, request: Request) -> Response:
        visit = Visit.of(request, request.url.path.removeprefix(EVENTS) or "/", self._site.zone_of(request))
        if not self._boards.has_room_for(visit.visitor):
            raise HTTPException(UNAVAILABLE, headers={"Retry-After": "5"})
        if request.method == "HEAD":
            return Response(media_type=EventStream.media_type)  # without a body there is nothing to wait for
        return EventStream(self._boards.frames(visit))


def _events(visit: Visit) -> str:
    """Return the address of the visit's stream."""
    address = visit.with_filters(refused=visit.refused) if visit.refused else visit.address
    path, question, query = address.partition("?")
    return f"{EVENTS}{path.rstrip('/')}{question}{query}"


class EventStream(StreamingResponse):
    """Server-sent events. The frames are closed with the response, so a tab that leaves stops counting at once."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._frames):
            await super().__call__(scope, receive, send)
