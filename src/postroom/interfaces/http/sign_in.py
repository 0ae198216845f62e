"""The middleware that asks who looks: pages, streams and forms are for people with a session.

It lets through what anyone may see (the sign-in pages, files, health) and the doors that check callers themselves. It
is plain ASGI, so that endless responses stream through it unchanged; a stream ends with its session or token, and when
its person's role changes.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Collection
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom.core.access import READS_METRICS, SEES_ALL
from postroom.core.errors import PostroomError, StoreError
from postroom.core.roles import Role
from postroom.core.visitors import PersonRole, Visitor
from postroom.interfaces.dashboard.page import EVENTS
from postroom.interfaces.dashboard.said import Said, say
from postroom.interfaces.dashboard.sign_in.cookies import PREFIX, session_cookie, set_session_cookie
from postroom.interfaces.dashboard.sign_in.visits import SESSION
from postroom.interfaces.dashboard.visiting import VISITOR
from postroom.interfaces.http.door import ASK_FOR_TOKEN, bearer, values_of
from postroom.interfaces.http.json_api_errors import error_form, is_of_api
from postroom.interfaces.http.token_check import TokenCheck, TokenRefused
from postroom.operations.people.sessions import LiveSession, Sessions
from postroom.operations.problems import RETRY_AFTER_S, UNAVAILABLE

log = structlog.get_logger()

OPEN = ("/sign-in", "/static/", "/healthz", "/readyz")
"""The paths that anyone may see. One that ends in a slash stands for all below it."""

METRICS = "/metrics"
LOOK_EVERY_S = 15.0


class OwnerGate:
    """Where sign-in is off, everyone is this visitor."""

    def __init__(self, app: ASGIApp, owner: Visitor) -> None:
        self._app = app
        self._owner = owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, VISITOR: self._owner} if scope["type"] == "http" else scope, receive, send)


class SignInGate:
    """Ask for a session. `doors` are paths that check their callers themselves, with all below them.

    Below `guests`, callers without a session are let through as well, and asked there for what else they have.
    """

    def __init__(
        self,
        app: ASGIApp,
        sessions: Sessions,
        tokens: TokenCheck,
        doors: Collection[str] = (),
        guests: Collection[str] = (),
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._tokens = tokens
        self._doors = tuple(doors)
        self._guests = tuple(guests)
        self._look_every_s = look_every_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_below(scope["path"], self._doors):
            await self._app(scope, receive, send)
            return
        try:
            live = await self._session(scope)
            visitor = await self._token_visitor(scope) if live is None else live.visitor
        except StoreError as error:
            log.warning("sign_in.unavailable", error=type(error).__name__)
            await _unavailable(scope)(scope, receive, send)
            return
        if visitor is None and not _is_below(scope["path"], (*OPEN, *self._guests)):
            await _refusal(scope)(scope, receive, send)
            return
        known = scope if visitor is None else {**scope, VISITOR: visitor}
        known = known if live is None else {**known, SESSION: live}
        if visitor is not None and _is_stream(scope):
            await self._stream(known, receive, send)
        else:
            await self._app(known, receive, send if live is None else _with_cookie(scope, live, send))

    async def _session(self, scope: Scope) -> LiveSession | None:
        if scope["path"].startswith("/static/"):
            return None
        cookie = session_cookie(HTTPConnection(scope))
        if not cookie:
            return None
        return await self._sessions.find(cookie, is_click=not _is_stream(scope) and scope["path"] != METRICS)

    async def _token_visitor(self, scope: Scope) -> Visitor | None:
        """Return the visitor of a request with a token; None without a right one. Only what is read takes tokens."""
        if not (_is_stream(scope) or scope["path"] == METRICS):
            return None
        try:
            principal = await self._tokens.check(bearer(values_of(scope["headers"], b"authorization")))
        except TokenRefused:
            return None
        if principal.role not in _roles_for(scope):
            return None
        return Visitor(principal.actor, "viewer", secrets.token_urlsafe(24), is_fresh=False)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the stream until it ends by itself, or the right to see it does."""
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        running = asyncio.ensure_future(self._app(scope, receive, noted))
        watching = asyncio.create_task(self._until_ended(scope), name="postroom-session-watch")
        try:
            await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
                return
            await _cancel(running)
            if begun:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await _cancel(running)
            await _cancel(watching)

    async def _until_ended(self, scope: Scope) -> None:
        """Return when the session has ended or its person has another role, or when the token counts no more."""
        while True:
            await asyncio.sleep(self._look_every_s)
            try:
                if await self._role_now(scope) != scope[VISITOR].role:
                    return
            except PostroomError as error:
                log.warning("sign_in.session_not_read", error=type(error).__name__)

    async def _role_now(self, scope: Scope) -> PersonRole | None:
        if SESSION not in scope:
            visitor = await self._token_visitor(scope)
            return None if visitor is None else visitor.role
        # The cookie of a stream grows old while others replace it, so only its key counts here.
        return await self._sessions.role_of(session_cookie(HTTPConnection(scope)))


async def _cancel(task: "asyncio.Future[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


def is_open(path: str) -> bool:
    """Whether anyone may see what is at this path."""
    return _is_below(path, OPEN)


def _is_below(path: str, places: Collection[str]) -> bool:
    return any(path == each or path.startswith(each if each.endswith("/") else f"{each}/") for each in places)


def _roles_for(scope: Scope) -> Collection[Role]:
    """The roles of tokens that may read this."""
    return READS_METRICS if scope["path"] == METRICS else SEES_ALL


def _is_stream(scope: Scope) -> bool:
    return scope["method"] in ("GET", "HEAD") and _is_below(scope["path"], (EVENTS,))


def _with_cookie(scope: Scope, live: LiveSession, send: Send) -> Send:
    """Add the cookie with the new secret to the answer, unless the answer sets its own."""
    cookie = live.cookie
    if cookie is None:
        return send

    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if not any(
                name == b"set-cookie" and value.startswith(PREFIX.encode()) for name, value in message["headers"]
            ):
                set_session_cookie(HTTPConnection(scope), headers, cookie)
        await send(message)

    return send_with_cookie


def _unavailable(scope: Scope) -> Response:
    retry = {"Retry-After": str(RETRY_AFTER_S)}
    if is_of_api(scope["path"]):
        form = UNAVAILABLE.form
        return JSONResponse(error_form(form["code"], form["problem"], form["field"], form["remedy"]), 503, retry)
    return PlainTextResponse("Postroom cannot read its data at the moment. Try again soon.\n", 503, retry)


def _refusal(scope: Scope) -> Response:
    """Return the answer for somebody without a session: people are sent to the sign-in page, programs are told."""
    if scope["path"] == METRICS or _is_stream(scope):
        name, value = (part.decode() for part in ASK_FOR_TOKEN)
        roles = " or ".join(sorted(_roles_for(scope)))
        return PlainTextResponse(f"Sign in, or send a token of the role {roles}.\n", 401, {name: value})
    headers = Headers(scope=scope)
    words = "You are signed out. Sign in again, then repeat what you did.\n"
    if scope["method"] not in ("GET", "HEAD"):
        if "text/html" not in headers.get("accept", "") or "hx-request" in headers:
            return PlainTextResponse(words, 401)  # scripts send what somebody is writing, which leaving would lose
        return say(RedirectResponse("/sign-in", 303), Said(f"Nothing was done. {words}", "bad"))
    if "hx-request" in headers:
        return PlainTextResponse(words, 401, {"HX-Redirect": "/sign-in"})
    query = scope["query_string"].decode("latin-1")
    path = f"{scope['path']}?{query}" if query else scope["path"]
    return RedirectResponse("/sign-in" if path == "/" else f"/sign-in?to={quote(path, safe='/')}", 303)
