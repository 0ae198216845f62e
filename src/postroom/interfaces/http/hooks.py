"""`POST /hooks/gmail`: Google reports that a mailbox has changed. This is only a hint to sync the mailbox.

Anyone who can reach this address could send hints, so Google signs them: the token must be issued by Google, for our
audience and, if one is set, from our service account. Google's public keys are fetched once an hour, and at most once a
minute when a token names an unknown key.
"""

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import orjson
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from postroom.core import base64url
from postroom.core.errors import PostroomError, Refused
from postroom.store.accounts import accounts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import NewRequest, ask_connector
from postroom.system.http_server.body import read_body
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

ISSUERS = ("https://accounts.google.com", "accounts.google.com")
KEYS_LIVE_S = 3600.0
REFETCH_AFTER_S = 60.0
LARGEST_BODY = 64 * 1024
LARGEST_KEYS = 256 * 1024
LEEWAY = timedelta(seconds=60)
REQUEST_EXPIRES = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class PushTerms:
    """Which tokens are accepted: the audience, and the service account (None for any)."""

    audience: str
    email: str | None


class GoogleKeys:
    """Google's published public keys."""

    def __init__(self, http: httpx2.AsyncClient, url: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        self._url = url
        self._monotonic = monotonic
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._fetched_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def key(self, key_id: str) -> Mapping[str, Any]:
        """Return the key with this id. Raise Refused if there is none."""
        async with self._fetching:
            age = self._monotonic() - self._fetched_at
            if age > KEYS_LIVE_S or (key_id not in self._keys and age > REFETCH_AFTER_S):
                await self._fetch()
        try:
            return self._keys[key_id]
        except KeyError:
            raise Refused("the token is signed with a key that Google does not publish") from None

    async def _fetch(self) -> None:
        self._fetched_at = self._monotonic()
        try:
            answer = await self._http.get(self._url, follow_redirects=False)
            answer.raise_for_status()
            if len(answer.content) > LARGEST_KEYS:
                raise ValueError("more keys than anyone needs")
            found = orjson.loads(answer.content)["keys"]
            self._keys = {str(each["kid"]): each for each in found}
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            log.warning("hook.keys_unavailable", error=type(error).__name__)


class GmailHook:
    """Check the sender, and ask the connector to sync the mailbox."""

    def __init__(self, database: Database, terms: PushTerms, keys: GoogleKeys, clock: Clock = wall_clock) -> None:
        self._database = database
        self._terms = terms
        self._keys = keys
        self._clock = clock

    async def take(self, request: Request) -> Response:
        """Answer the POST: 204 if accepted, 401 if it is not from Google, 503 if Google should retry."""
        try:
            await self._check(request.headers.get("authorization", ""))
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, 401, {"WWW-Authenticate": "Bearer"})
        email = _mailbox_in(await read_body(request.receive, LARGEST_BODY) or b"")
        try:
            if email is not None:
                await self._ask_for_sync(email)
        except PostroomError as error:
            log.warning("hook.not_taken", error=type(error).__name__)
            return JSONResponse({"error": "try again later"}, 503, {"Retry-After": "10"})
        return Response(status_code=204)

    async def _check(self, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused("a token signed by Google is needed; turn on authentication of the push subscription")
        claims = await asyncio.to_thread(self._claims, token, await self._keys.key(_key_id(token)))
        if claims.get("iss") not in ISSUERS or claims.get("aud") != self._terms.audience:
            raise Refused("the token is not from Google, or not for this address; check gmail.push_audience")
        if self._terms.email is not None and (
            claims.get("email") != self._terms.email or claims.get("email_verified") is not True
        ):
            raise Refused("the token is from another service account; check gmail.push_account")

    def _claims(self, token: str, key: Mapping[str, Any]) -> Mapping[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import RSAKey

        try:
            decoded = jwt.decode(token, RSAKey.import_key(dict(key)), ["RS256"])
            now = int(self._clock().timestamp())
            jwt.JWTClaimsRegistry(now, int(LEEWAY.total_seconds()), exp={"essential": True}).validate(decoded.claims)
            return decoded.claims
        except (JoseError, ValueError, TypeError) as error:
            raise Refused(f"the token is not valid ({type(error).__name__})") from None

    async def _ask_for_sync(self, email: str) -> None:
        """Ask the connector of the mailbox to sync. One pending request is enough for many hints."""
        now = self._clock()
        for account in await self._database.run(accounts.list_accounts()):
            if account.email.lower() == email.lower() and account.state == "active":
                request = NewRequest(new_id(), account.endpoint_identity, "sync_now", {}, now + REQUEST_EXPIRES)
                await self._database.run(ask_connector(request, now))


def _key_id(token: str) -> str:
    try:
        head = token.split(".", maxsplit=1)[0]
        return str(orjson.loads(base64url.decode(head))["kid"])
    except (ValueError, KeyError, TypeError):
        raise Refused("the token is not a JWT") from None


def _mailbox_in(body: bytes | bytearray) -> str | None:
    """Return the mailbox in a Pub/Sub push; None for a malformed push, which is accepted so that it is not resent."""
    try:
        data = base64.b64decode(orjson.loads(body)["message"]["data"])
        return str(orjson.loads(data)["emailAddress"])
    except (ValueError, KeyError, TypeError):
        return None
