"""Forms on a page: submitted only from our own page, which is then shown again.

Browsers name the origin of a form in `Sec-Fetch-Site`, older ones in `Origin`. A program on this machine can write
these headers too, and the pages have no sign-in.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

SEE_OTHER = 303
FORBIDDEN = 403


def form_route(address: str, submit: Callable[[Request], Awaitable[None]], page: str) -> Route:
    """Return the route that accepts the form at this address and then shows the page."""

    async def submitted(request: Request) -> Response:
        if not _is_from_own_page(request):
            raise HTTPException(FORBIDDEN)
        await submit(request)
        return RedirectResponse(page, SEE_OTHER)

    return Route(address, submitted, methods=["POST"])


def _is_from_own_page(request: Request) -> bool:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    return site == "same-origin" if site is not None else _is_same(origin, request.headers.get("host"))


def _is_same(origin: str | None, host: str | None) -> bool:
    try:
        return origin is not None and host is not None and urlsplit(origin).netloc == host
    except ValueError:
        return False
