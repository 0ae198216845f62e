"""The kill switch on the page: a form that stops every change to mailboxes, and one that lets them go on.

A form is believed only when it came from our own page. Browsers say so in `Sec-Fetch-Site`, older ones in `Origin`; a
request that says neither is no browser's, and programs have the command line and MCP for this.
"""

from typing import Protocol
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

SEE_OTHER = 303
FORBIDDEN = 403


class Switch(Protocol):
    """What stops and goes on."""

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...


def switch_routes(switch: Switch) -> list[Route]:
    async def pause(request: Request) -> Response:
        _check_own_page(request)
        await switch.pause()
        return RedirectResponse("/", SEE_OTHER)

    async def resume(request: Request) -> Response:
        _check_own_page(request)
        await switch.resume()
        return RedirectResponse("/", SEE_OTHER)

    return [Route("/pause", pause, methods=["POST"]), Route("/resume", resume, methods=["POST"])]


def _check_own_page(request: Request) -> None:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_ours = site == "same-origin" if site is not None else _is_same(origin, request.headers.get("host"))
    if not is_ours:
        raise HTTPException(FORBIDDEN)


def _is_same(origin: str | None, host: str | None) -> bool:
    try:
        return origin is not None and host is not None and urlsplit(origin).netloc == host
    except ValueError:
        return False
