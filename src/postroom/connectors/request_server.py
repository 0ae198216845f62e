"""Where a connector takes what is asked of it, does it, and answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from traceback import extract_tb
from typing import Any

import structlog

from postroom.connectors.runtime import pause
from postroom.connectors.switchboard_client import AskedRequest, RequestSource
from postroom.core.errors import BadInput, LeaseLost, PostroomError
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

WAIT = timedelta(seconds=20)
AFTER_TROUBLE = timedelta(seconds=10)
# A switchboard that is stopping, or knows nothing of waiting, says so sooner that there is nothing.
AT_ONCE_S = 1.0
LONGEST_ERROR = 500

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class RequestServer:
    """Answers requests one after another, up to `beside` more of them at once; `handlers` are what this connector can
    do, by kind. With none beside, whoever asks for little waits behind one who asks for much.
    """

    def __init__(self, source: RequestSource, handlers: Mapping[str, Handler], beside: int = 0) -> None:
        self._source = source
        self._handlers = handlers
        self._beside = beside
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event, wait: timedelta = WAIT, after_trouble: timedelta = AFTER_TROUBLE) -> None:
        """Until `stop`. A switchboard that is away is asked again after a while."""
        try:
            await self._run(stop, wait, after_trouble)
        finally:
            for task in self._answering:
                task.cancel()
            if self._answering:
                await asyncio.wait(self._answering)

    async def _run(self, stop: asyncio.Event, wait: timedelta, after_trouble: timedelta) -> None:
        loop = asyncio.get_running_loop()
        while not stop.is_set():
            began = loop.time()
            try:
                found = await self._source.requests(wait)
                for request in found:
                    await self._take_up(request)
                if not found and loop.time() - began < AT_ONCE_S:
                    await pause(stop, after_trouble)
            except (PostroomError, OSError) as error:
                log.warning("connector.requests_failed", error=masked_urls(f"{type(error).__name__}: {error}"))
                await pause(stop, after_trouble)

    async def _take_up(self, request: AskedRequest) -> None:
        if len(self._answering) >= self._beside:
            await self.answer(request)
            return
        task = asyncio.create_task(self.answer(request))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def answer(self, request: AskedRequest) -> None:
        """Does what is asked, and says what came of it. What went wrong here is the asker's to know, and ends nothing.

        What could not be told stays leased, and comes again when the lease is over.
        """
        try:
            result = await self._done(request)
            if isinstance(result, str):
                await self._source.fail(request, result)
            else:
                await self._reply(request, result)
        except LeaseLost:
            log.info("connector.request_too_late", kind=request.kind)
        except Exception as error:
            log.warning("connector.request_not_answered", kind=request.kind, error=type(error).__name__)

    async def _done(self, request: AskedRequest) -> Mapping[str, Any] | str:
        """What came of it, or in words why nothing did. Only errors of ours are quoted: others may quote mail."""
        handler = self._handlers.get(request.kind)
        if handler is None:
            return f"this connector does not know how to {request.kind}"
        try:
            return await handler(request.arguments)
        except PostroomError as error:
            return masked_urls(f"{type(error).__name__}: {error}")[:LONGEST_ERROR]
        except Exception as error:
            log.error("connector.request_broke", kind=request.kind, error=type(error).__name__, at=_place_of(error))
            return f"{type(error).__name__} in the connector; its log says where"

    async def _reply(self, request: AskedRequest, result: Mapping[str, Any]) -> None:
        try:
            await self._source.reply(request, result)
        except BadInput as error:
            await self._source.fail(request, masked_urls(f"the answer was refused: {error}")[:LONGEST_ERROR])


def _place_of(error: Exception) -> str:
    """The line that raised it; the words of an error, and of the lines above it, may hold mail."""
    frames = extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
