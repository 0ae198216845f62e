"""A provider's token endpoint: a code is exchanged for tokens, and a refresh token for a new access token."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, cast

import orjson

from postroom.mailboxes.oauth.consent import WORD, App, Authority, ConsentRequest
from postroom.mailboxes.oauth.errors import GrantEnded

if TYPE_CHECKING:
    import httpx2

LARGEST_ANSWER = 65_536
USUAL_LIFE = timedelta(hours=1)
LONGEST_LIFE = timedelta(days=1)


@dataclass(frozen=True)
class Grant:
    """The issued tokens. `dies_in` is how long the consent itself lasts, if the provider says so."""

    access_token: str = field(repr=False)
    expires_in: timedelta
    scopes: frozenset[str]
    refresh_token: str | None = field(default=None, repr=False)
    dies_in: timedelta | None = None


async def exchange(http: httpx2.AsyncClient, app: App, request: ConsentRequest, code: str) -> Grant:
    """Exchange the code for tokens; it is valid once, for some minutes."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
        **app.form,
    }
    authority = app.authority
    status, answer = await ask_endpoint(http, authority, app.token_url, form)
    if answer.get("error") == "invalid_grant":
        raise authority.consent_refused(
            f"{authority.name} does not know the code (invalid_grant): it was used, is too old, or is cut off"
        )
    return grant_in(authority, answer, request.scopes) if status == 200 else refuse(authority, status, answer)


async def refresh(http: httpx2.AsyncClient, app: App, refresh_token: str) -> Grant:
    """A new access token. Raises GrantEnded, or the errors of the app's authority."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, **app.form}
    status, answer = await ask_endpoint(http, app.authority, app.token_url, form)
    if (word := answer.get("error")) in app.authority.ended:
        raise GrantEnded(app.authority.name, str(word))
    return grant_in(app.authority, answer) if status == 200 else refuse(app.authority, status, answer)


async def revoke(http: httpx2.AsyncClient, authority: Authority, url: str, token: str) -> bool:
    """Revoke the consent behind a token, with all its tokens. False if the provider no longer knew it."""
    status, answer = await ask_endpoint(http, authority, url, {"token": token})
    if status != 200 and answer.get("error") not in ("invalid_token", "invalid_grant"):
        refuse(authority, status, answer)
    return status == 200


async def ask_endpoint(
    http: httpx2.AsyncClient, authority: Authority, url: str, form: Mapping[str, str]
) -> tuple[int, dict[str, Any]]:
    """The status and fields of a token endpoint's answer. Raises the authority's `unavailable` if there was none."""
    import httpx2  # only when it is needed: most commands about accounts make no request

    # Decompressed, an answer could have any size; so it is requested and accepted only uncompressed.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    try:
        async with http.stream("POST", url, data=dict(form), headers=headers) as response:
            status = response.status_code
            packed = response.headers.get("content-encoding", "identity") != "identity"
            async for piece in response.aiter_bytes() if not packed else _nothing():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    break
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        # Only the type of the failure, and no cause: a protocol error can quote what was sent.
        failure = type(error).__name__
    else:
        return status, fields_in(bytes(body)) if len(body) <= LARGEST_ANSWER else {}
    raise authority.unavailable(f"no answer from {authority.name}'s token endpoint ({failure})")


def grant_in(authority: Authority, answer: Mapping[str, Any], asked: Collection[str] = ()) -> Grant:
    """The issued tokens. If the provider does not name the scopes, they are the requested ones."""
    token, refresh_token, scope = answer.get("access_token"), answer.get("refresh_token"), answer.get("scope")
    if not isinstance(token, str) or not token:
        raise authority.unavailable(f"{authority.name}'s answer contains none")
    return Grant(
        token,
        min(_seconds(answer.get("expires_in")) or USUAL_LIFE, LONGEST_LIFE),
        frozenset(scope.split() if isinstance(scope, str) else asked),
        refresh_token if isinstance(refresh_token, str) and refresh_token else None,
        _seconds(answer.get("refresh_token_expires_in")),
    )


def refuse(authority: Authority, status: int, answer: Mapping[str, Any]) -> NoReturn:
    """Raise the error that a token endpoint's refusal means."""
    error = str(answer.get("error", ""))
    if error in authority.app_errors:
        raise authority.app_refused(error)
    word = error if WORD.fullmatch(error) else "no reason given"
    raise authority.unavailable(f"{authority.name}'s token endpoint answered {status} ({word})")


def fields_in(content: bytes) -> dict[str, Any]:
    """The fields of a JSON object; none if it is something else."""
    try:
        answer: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}


def _seconds(value: object) -> timedelta | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return timedelta(seconds=float(value)) if float(value) >= 0 else None
    except (ValueError, OverflowError):
        return None


async def _nothing() -> AsyncGenerator[bytes]:
    return
    yield b""
