"""The kill switch on the page: a form that stops every change to mailboxes, and one that lets them go on.

A form is believed only when it came from our own page: browsers say so in `Sec-Fetch-Site`, older ones in `Origin`. A
program on this machine can write these headers too, and the page has no sign-in. Stopping is safe in anybody's hands;
so that nobody else lets things go on, the page does that only where it is served to this machine alone.
"""

from collections.abc import Callable
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


def switch_routes(switch: Switch, may_resume: bool, turned: Callable[[], None]) -> list[Route]:
    """`turned` is called before the page is shown again."""

    async def pause(request: Request) -> Response:
        _check_own_page(request)
        await switch.pause()
        turned()
        return RedirectResponse("/", SEE_OTHER)

    async def resume(request: Request) -> Response:
        _check_own_page(request)
        await switch.resume()
        turned()
        return RedirectResponse("/", SEE_OTHER)

    routes = [Route("/pause", pause, methods=["POST"])]
    return [*routes, Route("/resume", resume, methods=["POST"])] if may_resume else routes


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
