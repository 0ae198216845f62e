"""One sentence for the next page: what a form did, or why it did not, shown once.

It travels in a cookie, so that it survives the redirect after a form and needs no memory on the server. Whoever could
forge it could show a sentence, escaped, on a page of the person's own.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import orjson
from starlette.requests import Request
from starlette.responses import Response

from postroom.interfaces.dashboard.display import shown

COOKIE = "postroom-said"
LONGEST = 400
SECONDS = 60
MOST_REJECTED = 50
"""As many actions as stand on a page; the ids of more would not fit into a cookie."""
_BYTES = 16
Mood = Literal["good", "bad"]


@dataclass(frozen=True, slots=True)
class Said:
    sentence: str
    mood: Mood = "good"
    action: str = ""
    """The id of an action whose message a link beside the sentence opens."""
    is_undoable: bool = False
    """Whether a button beside the sentence undoes the action."""
    rejected: Sequence[UUID] = ()
    """The actions whose rejection a button beside the sentence takes back."""


def say(response: Response, said: Said) -> Response:
    ids = said.rejected if len(said.rejected) <= MOST_REJECTED else ()
    rejected = base64.urlsafe_b64encode(b"".join(each.bytes for each in ids)).decode()
    content = orjson.dumps([shown(said.sentence, LONGEST), said.mood, said.action, said.is_undoable, rejected])
    value = base64.urlsafe_b64encode(content).decode()
    response.set_cookie(COOKIE, value, max_age=SECONDS, httponly=True, samesite="strict")
    return response


def said_before(request: Request) -> Said | None:
    """Return what the last form said; None without one, or if the cookie is not ours."""
    try:
        match orjson.loads(base64.urlsafe_b64decode(request.cookies.get(COOKIE, ""))):
            case [str(sentence), "good" | "bad" as mood, str(action), bool(is_undoable), str(rejected)]:
                # Only an id: the address of the form beside the sentence is made of it.
                id = str(UUID(action)) if action else ""
                return Said(shown(sentence, LONGEST), mood, id, is_undoable, _read_ids(rejected))
            case _:
                return None
    except (ValueError, binascii.Error):
        return None


def _read_ids(text: str) -> Sequence[UUID]:
    """Read ids that `say` has written. Raises ValueError."""
    found = base64.urlsafe_b64decode(text)
    return [UUID(bytes=found[at : at + _BYTES]) for at in range(0, len(found), _BYTES)]


def forget_said(response: Response) -> Response:
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
