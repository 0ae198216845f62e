"""The web application: the live page, its event stream, static files, and error pages."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from datetime import datetime

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from postroom.dashboard.assets import load_assets
from postroom.dashboard.broadcast import Broadcast, UpdateIntervals
from postroom.dashboard.feed import Feed
from postroom.dashboard.pages import Pages
from postroom.dashboard.switch import Switch, switch_routes
from postroom.web.security import SECURITY_HEADERS, HostCheck, SecurityHeaders

log = structlog.stdlib.get_logger(__name__)

A_YEAR = "public, max-age=31536000, immutable"


def create_dashboard(
    feed: Feed,
    *,
    allowed_hosts: Collection[str],
    account: str,
    started_at: datetime,
    rhythm: UpdateIntervals | None = None,
    routes: Sequence[BaseRoute] = (),
    own_doors: Sequence[str] = (),
    switch: Switch | None = None,
    may_resume: bool = False,
) -> FastAPI:
    """Create the application: the dashboard and the other routes of the product.

    `allowed_hosts` are names without port. Any other Host is refused; the routes in `own_doors` check that themselves.
    """
    assets = load_assets()
    pages = Pages(assets, account, started_at)
    broadcast = Broadcast(feed, pages.board, rhythm or UpdateIntervals())
    app = FastAPI(
        title="Postroom",
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(HostCheck, allowed_hosts=allowed_hosts, own_doors=own_doors),
        ],
    )
    app.state.broadcast = broadcast

    async def overview(request: Request) -> Response:
        try:
            board = await broadcast.board()
        except Exception as error:
            log.warning("dashboard.page_failed", error=type(error).__name__)
            raise HTTPException(503) from error
        return HTMLResponse(pages.overview(board))

    async def events(request: Request) -> Response:
        if not broadcast.has_room:
            raise HTTPException(503, headers={"Retry-After": "5"})
        return EventStream(broadcast.frames())

    async def static(request: Request) -> Response:
        asset = assets.get(request.path_params["name"])
        if asset is None or asset.digest != request.path_params["digest"]:
            raise HTTPException(404)
        return Response(asset.body, media_type=asset.media_type, headers={"Cache-Control": A_YEAR})

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    app.add_route("/", overview)
    app.add_route("/events", events, methods=["GET"])
    app.add_route("/static/{digest}/{name:path}", static)
    app.add_route("/healthz", healthz)
    app.router.routes.extend(routes)
    if switch is not None:
        app.router.routes.extend(switch_routes(switch, may_resume, broadcast.look_again))
    _answer_errors_plainly(app, pages)
    return app


class EventStream(StreamingResponse):
    """Server-sent events. The frames are closed with the response, so a closed tab no longer counts at once."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._frames):
            await super().__call__(scope, receive, send)


def _answer_errors_plainly(app: FastAPI, pages: Pages) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
        return HTMLResponse(pages.error(status), status_code=status, headers=headers)

    async def broken(request: Request, error: Exception) -> Response:
        # Starlette sends this response outside of all middleware, so the headers are set here.
        return HTMLResponse(pages.error(500), status_code=500, headers=SECURITY_HEADERS)

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, broken)
