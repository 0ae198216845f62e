"""Forms of the sign-in pages: small, and accepted only from our own page.

Before somebody has signed in there is no token to check, so the browser's own headers are (`Sec-Fetch-Site`, `Origin`).
Afterwards the token of the session is checked as well.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.interfaces.dashboard.forms import AGAIN, FORBIDDEN, SEE_OTHER, TOO_LARGE, is_from_own_page, own_path
from postroom.interfaces.dashboard.sign_in.visits import json_of, session_of
from postroom.operations.people.form_tokens import is_form_token
from postroom.operations.people.sessions import LiveSession
from postroom.system.http_server.body import read_body

BAD_REQUEST = 400
LARGEST_FORM = 64 * 1024
MOST_FIELDS = 20


class SentAway(Exception):
    """Raised to answer with another page instead: the person must sign in, or prove again who they are."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.response: Response = RedirectResponse(to, SEE_OTHER)
        self.to = to


async def fields_of(request: Request, largest: int = LARGEST_FORM) -> Mapping[str, str]:
    """Read the fields of a form from our own page."""
    check_own_page(request)
    body = await read_body(request.receive, largest)
    if body is None:
        raise HTTPException(TOO_LARGE)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise HTTPException(BAD_REQUEST) from None


async def sent_by_script(request: Request) -> dict[str, Any]:
    """Read what the script of our own page has sent."""
    check_own_page(request)
    return await json_of(request)


def checked_session(request: Request, fields: Mapping[str, Any], *, back: str, fresh: bool = False) -> LiveSession:
    """Return the session that a form was rendered for. Raises SentAway if it has ended, or its proof is too old."""
    live = session_of(request)
    if live is None:
        raise SentAway(f"/sign-in?to={quote(back)}")
    given = fields.get("form_token")
    if not isinstance(given, str) or not is_form_token(given, live.visitor):
        raise HTTPException(FORBIDDEN, detail="this form is from an older page: open the page again")
    if fresh and not live.visitor.is_fresh:
        raise SentAway(f"{AGAIN}?to={quote(back)}")
    return live


def check_own_page(request: Request) -> None:
    if not is_from_own_page(request):
        raise HTTPException(FORBIDDEN)


def destination(address: object) -> str:
    """Return where to go after signing in: a path on this site, but no page to sign in; otherwise the first page."""
    path = own_path(address if isinstance(address, str) else "")
    return "/" if path.startswith("/sign-in") else path
