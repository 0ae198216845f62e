"""Middleware for every request: strict response headers, and a check of the Host.

The Host check stops DNS rebinding: a hostile page whose name is made to point at this machine could otherwise read
the owner's mail through their own browser. It is plain ASGI, so that endless responses stream through it unchanged.
"""

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom.core.hosts import bare_name, hostname
from postroom.interfaces.dashboard.display import shown
from postroom.interfaces.http.json_api_errors import error_form, is_of_api

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "manifest-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
MISDIRECTED = 421


class SecurityHeaders:
    """Add the security headers to every response; one with a policy of its own keeps that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_secured)


class HostCheck:
    """Refuse requests to other host names. The paths in `own_doors` check that themselves, with their own errors."""

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str], own_doors: Collection[str] = ()) -> None:
        self._app = app
        self._own_doors = frozenset(own_doors)
        self._allowed = frozenset(bare_name(host) for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._own_doors or self._is_ours(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        await _refuse_host(scope)(scope, receive, send)

    def _is_ours(self, headers: Headers) -> bool:
        hosts = headers.getlist("host")
        return len(hosts) == 1 and hostname(hosts[0]) in self._allowed


def _refuse_host(scope: Scope) -> Response:
    host = shown(Headers(scope=scope).get("host") or "", 100)
    problem = f'Postroom does not answer to the host name "{host}"'
    remedy = "open it at the address it printed at start, or add this name to its allowed hosts"
    if is_of_api(scope["path"]):
        return JSONResponse(error_form("foreign_host", problem, "host", remedy), MISDIRECTED)
    return PlainTextResponse(f"{problem}.\n{remedy[:1].upper()}{remedy[1:]}.\n", MISDIRECTED)
