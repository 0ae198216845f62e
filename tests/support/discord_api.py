"""A stand-in for Discord on a loopback address: the part of its HTTP API and gateway that a bot with buttons needs.

Messages are posted (once per nonce), found and edited. A test presses buttons as any user, and waits for the bot's
reply to that user. Answers have Discord's rate limit headers.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from support.discord_gateway import Gateway

BOT_ID, APPLICATION_ID, GUILD_ID, CHANNEL_ID = (
    "900000000000000001",
    "900000000000000002",
    "900000000000000003",
    "900000000000000004",
)
LIMIT = 5
MOST_CUSTOM_ID = 100
MOST_NONCE = 25

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error to answer with: status, Discord's error code, and how long to wait."""

    status: int
    code: int = 0
    retry_after: float | None = None
    after_taking: bool = False
    """Whether the request still takes effect, as when only the answer is lost."""


@dataclass(slots=True)
class Pressed:
    """A pressed button, and the bot's replies so far."""

    callbacks: list[Json] = field(default_factory=list[Json])
    said: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def is_private(self) -> bool:
        """Whether only the user who pressed sees the reply."""
        return bool(self.callbacks) and self.callbacks[0].get("data", {}).get("flags", 0) & 64 == 64


class DiscordApi:
    """One bot, and one channel of one guild."""

    def __init__(self, token: str = "sandbox-bot-token") -> None:
        self.token = token
        bot = _user(BOT_ID, "postroom", bot=True)
        self.gateway = Gateway(token, bot, APPLICATION_ID)
        self.messages: dict[str, Json] = {}
        self.edits: list[Json] = []
        self.refusals: deque[Refusal] = deque()
        self.requests: list[str] = []
        self._bot = bot
        self._nonces: dict[str, str] = {}
        self._pressed: dict[str, Pressed] = {}
        self._last_id = 910_000_000_000_000_000

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/gateway/", self.gateway.connect)
        add = app.router.add_route
        add("GET", "/api/v10/users/@me", self._me)
        add("GET", "/api/v10/oauth2/applications/@me", self._application)
        add("POST", "/api/v10/channels/{channel}/messages", self._post)
        add("GET", "/api/v10/channels/{channel}/messages", self._history)
        add("PATCH", "/api/v10/channels/{channel}/messages/{message}", self._edit)
        add("POST", "/api/v10/interactions/{id}/{token}/callback", self._callback)
        add("PATCH", "/api/v10/webhooks/{application}/{token}/messages/@original", self._original)
        return app

    def forget_nonces(self) -> None:
        """Forget nonces, as Discord does after some minutes."""
        self._nonces.clear()

    def button(self, message_id: str, label: str) -> Json:
        rows = self.messages[message_id]["components"]
        return next(each for row in rows for each in row["components"] if each["label"] == label)

    async def press(self, message_id: str, custom_id: str, user_id: str) -> Pressed:
        """Press a button of a message as a user; `said` of the result is the bot's reply."""
        id, pressed = self._new_id(), Pressed()
        token = f"interaction-{id}"
        self._pressed[token] = pressed
        await self.gateway.dispatch(
            "INTERACTION_CREATE",
            {
                "id": id,
                "application_id": APPLICATION_ID,
                "type": 3,
                "token": token,
                "version": 1,
                "guild_id": GUILD_ID,
                "channel": {"id": CHANNEL_ID, "type": 0, "name": "approvals", "position": 0},
                "channel_id": CHANNEL_ID,
                "member": {"user": _user(user_id, "somebody"), "roles": [], "joined_at": None, "flags": 0},
                "message": self.messages[message_id],
                "data": {"custom_id": custom_id, "component_type": 2},
                "entitlements": [],
                "attachment_size_limit": 10_485_760,
            },
        )
        return pressed

    async def _me(self, request: web.Request) -> web.Response:
        return self._checked(request) or self._answer(self._bot)

    async def _application(self, request: web.Request) -> web.Response:
        application = {
            "id": APPLICATION_ID,
            "name": "postroom",
            "description": "",
            "icon": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "owner": _user("900000000000000009", "owner"),
            "verify_key": "0" * 64,
            "flags": 0,
        }
        return self._checked(request) or self._answer(application)

    async def _post(self, request: web.Request) -> web.Response:
        if (refused := self._checked(request)) is not None:
            return refused
        given: Json = await request.json()
        refusal = self.refusals.popleft() if self.refusals else None
        if refusal is not None and not refusal.after_taking:
            return _refused(refusal)
        if (problem := _problem_in(given)) is not None:
            return _json({"code": 50035, "message": problem}, status=400)
        message = self._kept(given)
        return self._answer(message) if refusal is None else _refused(refusal)

    def _kept(self, given: Json) -> Json:
        nonce = given.get("nonce")
        if given.get("enforce_nonce") and nonce in self._nonces:
            return self.messages[self._nonces[nonce]]
        id = self._new_id()
        self.messages[id] = self._message(id, given)
        if nonce is not None:
            self._nonces[nonce] = id
        return self.messages[id]

    async def _history(self, request: web.Request) -> web.Response:
        if (refused := self._checked(request)) is not None:
            return refused
        newest_first = sorted(self.messages.values(), key=lambda each: -int(each["id"]))
        return self._answer(newest_first[: int(request.query.get("limit", "50"))])

    async def _edit(self, request: web.Request) -> web.Response:
        if (refused := self._checked(request)) is not None:
            return refused
        id = request.match_info["message"]
        if id not in self.messages:
            return _json({"code": 10008, "message": "Unknown Message"}, status=404)
        given = await request.json()
        self.messages[id] |= {name: given[name] for name in ("embeds", "components", "content") if name in given}
        self.edits.append(self.messages[id])
        return self._answer(self.messages[id])

    async def _callback(self, request: web.Request) -> web.Response:
        token, given = request.match_info["token"], await request.json()
        pressed = self._pressed.get(token)
        if pressed is None or pressed.callbacks:
            return _json({"code": 40060, "message": "Interaction has already been acknowledged."}, status=400)
        pressed.callbacks.append(given)
        if given["type"] == 4:
            pressed.said.set_result(given["data"]["content"])
        return self._answer({"interaction": {"id": request.match_info["id"], "type": 3}})

    async def _original(self, request: web.Request) -> web.Response:
        pressed, given = self._pressed[request.match_info["token"]], await request.json()
        if not pressed.said.done():
            pressed.said.set_result(given["content"])
        return self._answer(self._message(self._new_id(), given))

    def _message(self, id: str, given: Json) -> Json:
        return {
            "id": id,
            "channel_id": CHANNEL_ID,
            "author": self._bot,
            "content": given.get("content") or "",
            "timestamp": "2026-11-15T08:00:00+00:00",
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": given.get("embeds", []),
            "components": given.get("components", []),
            "allowed_mentions": given.get("allowed_mentions"),
            "pinned": False,
            "type": 0,
        }

    def _checked(self, request: web.Request) -> web.Response | None:
        self.requests.append(f"{request.method} {request.path}")
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return _json({"code": 0, "message": "401: Unauthorized"}, status=401)
        if request.match_info.get("channel", CHANNEL_ID) != CHANNEL_ID:
            return _json({"code": 10003, "message": "Unknown Channel"}, status=404)
        return None

    def _answer(self, body: Any) -> web.Response:
        limits = {
            "X-RateLimit-Limit": str(LIMIT),
            "X-RateLimit-Remaining": str(LIMIT - 1),
            "X-RateLimit-Reset-After": "1.0",
            "X-RateLimit-Bucket": "sandbox",
        }
        return _json(body, headers=limits)

    def _new_id(self) -> str:
        self._last_id += 1
        return str(self._last_id)


@contextlib.asynccontextmanager
async def running_discord(api: DiscordApi) -> AsyncGenerator[tuple[str, str]]:
    """Serve the stand-in; yield the addresses of the API and of the gateway."""
    runner = web.AppRunner(api.app(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.gateway.address = f"ws://{host}:{port}/gateway/"
    try:
        yield f"http://{host}:{port}/api/v10", f"ws://{host}:{port}/gateway"
    finally:
        await api.gateway.close()
        await runner.cleanup()


def _json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON response with the plain media type that Discord sends and its library insists on."""
    every = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(body=orjson.dumps(body), status=status, headers=every)


def _user(id: str, name: str, *, bot: bool = False) -> Json:
    return {"id": id, "username": name, "discriminator": "0", "global_name": None, "avatar": None, "bot": bot}


def _problem_in(given: Json) -> str | None:
    """Why Discord would refuse a message with buttons, if it would."""
    if len(given.get("nonce") or "") > MOST_NONCE:
        return "nonce: too long"
    buttons = [each for row in given.get("components", []) for each in row["components"]]
    if any(len(each.get("custom_id") or "") > MOST_CUSTOM_ID for each in buttons):
        return "custom_id: too long"
    for embed in given.get("embeds", []):
        fields = embed.get("fields", [])
        if any(not each["value"] or len(each["value"]) > 1024 for each in fields) or len(embed.get("title", "")) > 256:
            return "embed: a field is empty or too long"
        if sum(len(each["name"]) + len(each["value"]) for each in fields) > 5500:
            return "embed: too long"
    return None


def _refused(refusal: Refusal) -> web.Response:
    body: Json = {"code": refusal.code, "message": "ordered from the sandbox"}
    # This header distinguishes Discord's own limits from those of its provider.
    headers = {"Via": "1.1 google"}
    if refusal.retry_after is not None:
        body |= {"retry_after": refusal.retry_after, "global": False}
        headers["Retry-After"] = str(refusal.retry_after)
    return _json(body, status=refusal.status, headers=headers)
