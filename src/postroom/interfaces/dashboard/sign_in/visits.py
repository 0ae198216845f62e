"""The facts in a request to the sign-in pages: its session, where it came from, and the address in the browser."""

from typing import Any, cast

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request

from postroom.core.hosts import hostname
from postroom.core.sign_in.callers import SignInCaller, browser_of
from postroom.operations.people.passkeys import SiteAddress
from postroom.operations.people.sessions import LiveSession
from postroom.system.http_server.body import read_body

SESSION = "postroom.session"
"""The key of the session in the scope of a request."""
LARGEST_ANSWER = 64 * 1024


def session_of(request: Request) -> LiveSession | None:
    return request.scope.get(SESSION)


def caller_of(request: Request) -> SignInCaller:
    address = "" if request.client is None else request.client.host
    return SignInCaller(address, browser_of(request.headers.get("user-agent", "")))


def site_of(request: Request) -> SiteAddress:
    """Where the browser sees this page. The host was checked against those that are allowed."""
    host = request.headers.get("host", "")
    return SiteAddress(hostname(host), f"{request.url.scheme}://{host}")


async def json_of(request: Request) -> dict[str, Any]:
    """Read the object that the page's script has sent."""
    body = await read_body(request.receive, LARGEST_ANSWER)
    if body is None:
        raise HTTPException(413)
    try:
        content = orjson.loads(bytes(body))
    except orjson.JSONDecodeError:
        raise HTTPException(400) from None
    if not isinstance(content, dict):
        raise HTTPException(400)
    return cast("dict[str, Any]", content)
