"""Sets the `Date` header of every answer by the emulator's clock: clients learn the server's time from it."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class DatedAnswers:
    """Middleware that adds a `Date` header to every answer."""

    def __init__(self, app: ASGIApp, clock: Callable[[], datetime]) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                now = format_datetime(self._clock().astimezone(UTC), usegmt=True).encode()
                message = {**message, "headers": [*message.get("headers", ()), (b"date", now)]}
            await send(message)

        await self._app(scope, receive, dated)
