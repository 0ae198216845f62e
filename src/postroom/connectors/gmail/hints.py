"""Hints that the mailbox may have changed. They only make the next look come sooner: polling finds everything too."""

import asyncio
import base64
import binascii
import contextlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Protocol, cast

import httpx2
import orjson
import structlog

from postroom.core.errors import PostroomError
from postroom.gmail.tokens import TokenProvider

log = structlog.get_logger()

GOOGLE = "https://pubsub.googleapis.com"
MOST_MESSAGES = 100
# Google holds a pull open for a while when nothing is there.
PATIENCE_S = 100.0
AFTER_TROUBLE = timedelta(minutes=1)


class Hints(Protocol):
    async def wait(self) -> None:
        """Returns when the mailbox may have changed. Does not raise for what can go better another time."""
        ...


class NoHints:
    """Nobody tells: there is only polling."""

    async def wait(self) -> None:
        await asyncio.Event().wait()


class Waiting:
    """The pause between two rounds: ended by a hint, by whoever asks for a round at once, and by time."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._asked = asyncio.Event()
        self._hinted = asyncio.Event()

    def end(self) -> None:
        self._asked.set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Hints are listened for all the time: one that comes during a round makes the next one follow at once."""
        task = asyncio.create_task(self._listen(), name="gmail-hints")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def wait(self, longest: timedelta, stop: asyncio.Event, hurried: bool = True) -> None:
        """After trouble it is not hurried by hints, so that a mailbox in trouble is not asked ever faster."""
        ends = [stop, self._asked, *([self._hinted] if hurried else [])]
        await _first_of(ends, longest)
        self._asked.clear()
        self._hinted.clear()

    async def _listen(self) -> None:
        while True:
            await self._hints.wait()
            self._hinted.set()


async def _first_of(events: Iterable[asyncio.Event], longest: timedelta) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=longest.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)


class PubSubHints:
    """Pulls a subscription of Google's Pub/Sub, which works behind a home router. It should be this mailbox's own."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        subscription: str,
        email: str,
        tokens: TokenProvider,
        base_url: str = GOOGLE,
        after_trouble: timedelta = AFTER_TROUBLE,
    ) -> None:
        self._http = http
        self._url = f"{base_url.rstrip('/')}/v1/{subscription}"
        self._email = email.lower()
        self._tokens = tokens
        self._after_trouble = after_trouble

    async def wait(self) -> None:
        while True:
            try:
                if await self.pull():
                    return
            except (httpx2.HTTPError, httpx2.InvalidURL, PostroomError, OSError, ValueError) as error:
                log.warning("connector.no_hints", error=type(error).__name__)
                await asyncio.sleep(self._after_trouble.total_seconds())

    async def pull(self) -> bool:
        """One look: takes what is there for this mailbox, and says whether there was anything."""
        answer = await self._post("pull", {"maxMessages": MOST_MESSAGES})
        received = cast("list[dict[str, Any]]", answer.get("receivedMessages") or [])
        ours = [each for each in received if self._is_ours(each.get("message") or {})]
        if ours:
            await self._post("acknowledge", {"ackIds": [str(each.get("ackId")) for each in ours]})
        return bool(ours)

    async def _post(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        token = await self._tokens.token()
        headers = {"Authorization": f"Bearer {token}"}
        answer = await self._http.post(
            f"{self._url}:{verb}", json=body, headers=headers, timeout=PATIENCE_S, follow_redirects=False
        )
        if answer.status_code == 401:
            self._tokens.refused(token)
        answer.raise_for_status()
        content: object = orjson.loads(answer.content) if answer.content else {}
        return cast("dict[str, Any]", content) if isinstance(content, dict) else {}

    def _is_ours(self, message: dict[str, Any]) -> bool:
        """What makes no sense is taken for a hint: a look too many harms nobody."""
        with contextlib.suppress(binascii.Error, ValueError, AttributeError):
            told = orjson.loads(base64.b64decode(str(message.get("data", ""))))
            return str(told.get("emailAddress", self._email)).lower() == self._email
        return True
