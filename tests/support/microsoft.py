"""Microsoft's authorization server for tests, behind real HTTP: consent with PKCE, tokens, refresh tokens that rotate,
and introspection (RFC 7662), by which a mail server checks tokens. The user agrees at once.
"""

import asyncio
import base64
import contextlib
import hashlib
import secrets
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom_sandbox.server import running

CLIENT_ID = "7b1c8a52-postroom"
SCOPES = {
    "https://outlook.office.com/IMAP.AccessAsUser.All",
    "https://outlook.office.com/SMTP.Send",
    "offline_access",
}


async def nothing() -> None: ...


@dataclass
class Microsoft:
    """Everything it has issued. Stricter than the real one, a refresh token is valid once, unless it
    `keeps_refresh_tokens`.
    """

    address: str = ""
    expires_in: int = 3600
    error: tuple[int, str] | None = None
    """What the token endpoint answers instead."""
    chosen: str | None = None
    """Whom the user signs in as on the page, if not as hinted."""
    keeps_refresh_tokens: bool = False
    refreshes: int = 0
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    access: dict[str, str] = field(default_factory=dict[str, str])
    refresh: dict[str, str] = field(default_factory=dict[str, str])
    issued: list[str] = field(default_factory=list[str])
    before_refresh: Callable[[], Awaitable[None]] = nothing

    def settings(self) -> dict[str, str]:
        """As the environment gives them."""
        return {"POSTROOM_MICROSOFT_CLIENT_ID": CLIENT_ID, "POSTROOM_MICROSOFT_BASE_URL": self.address}

    def app(self) -> Starlette:
        root = "/common/oauth2/v2.0"
        return Starlette(
            routes=[
                Route(f"{root}/authorize", self._authorize, methods=["GET"]),
                Route(f"{root}/token", self._token, methods=["POST"]),
                Route("/introspect", self._introspect, methods=["GET"]),
            ]
        )

    def issue(self, user: str) -> dict[str, Any]:
        token, refresh_token = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.access[token] = self.refresh[refresh_token] = user
        self.issued += [token, refresh_token]
        answer = {"token_type": "Bearer", "scope": " ".join(sorted(SCOPES - {"offline_access"}))}
        return {**answer, "expires_in": self.expires_in, "access_token": token, "refresh_token": refresh_token}

    async def _authorize(self, request: Request) -> Response:
        query = request.query_params
        back = urlsplit(query["redirect_uri"])
        # As the app is registered: http://localhost with any port.
        assert (back.scheme, back.hostname, back.path, query["client_id"]) == ("http", "localhost", "", CLIENT_ID)
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        assert set(query["scope"].split()) == SCOPES
        code = f"0.AX.{secrets.token_urlsafe(16)}"
        self.codes[code] = dict(query)
        return RedirectResponse(f"{query['redirect_uri']}/?{urlencode({'code': code, 'state': query['state']})}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if form.get("client_id") != CLIENT_ID or "client_secret" in form:
            return JSONResponse({"error": "invalid_client", "error_description": "AADSTS700025"}, 401)
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form["redirect_uri"]:
                return JSONResponse({"error": "invalid_grant", "error_description": "AADSTS501481"}, 400)
            return JSONResponse(self.issue(self.chosen or asked["login_hint"]))
        self.refreshes += 1
        await self.before_refresh()
        if self.error is not None:
            status, word = self.error
            return JSONResponse({"error": word, "error_description": form["refresh_token"]}, status)
        user = self.refresh.get(form["refresh_token"])
        if not self.keeps_refresh_tokens:
            self.refresh.pop(form["refresh_token"], None)
        if user is None:
            return JSONResponse({"error": "invalid_grant", "error_description": "AADSTS70000"}, 400)
        return JSONResponse(self.issue(user))

    async def _introspect(self, request: Request) -> Response:
        user = self.access.get(request.query_params["token"])
        return JSONResponse({"active": True, "username": user} if user is not None else {"active": False})


@contextlib.contextmanager
def microsoft_in_a_thread() -> Generator[Microsoft]:
    """With a loop of its own: commands and mail servers ask it."""
    ready, microsoft, stop = threading.Event(), Microsoft(), list[Callable[[], object]]()

    async def serve() -> None:
        async with running(microsoft.app()) as microsoft.address:
            stopping, loop = asyncio.Event(), asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(stopping.set))
            ready.set()
            await stopping.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait(30)
    try:
        yield microsoft
    finally:
        stop[0]()
        thread.join()
