"""Serves requests to a connector: leases them from the switchboard, handles them, and replies."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from traceback import extract_tb
from typing import Any

import structlog

from postroom.core.errors import BadInput, LeaseLost, PostroomError
from postroom.sources.runtime import pause
from postroom.sources.switchboard_client import ConnectorRequest, RequestSource
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

WAIT = timedelta(seconds=20)
AFTER_ERROR = timedelta(seconds=10)
# A switchboard that is stopping, or that does not support waiting, answers an empty poll sooner than this.
AT_ONCE_S = 1.0
LONGEST_ERROR = 500

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class RequestServer:
    """Handles requests one after another, and up to `beside` more concurrently; `handlers` are by kind of request.
    Without any beside, small requests wait behind large ones.
    """

    def __init__(self, source: RequestSource, handlers: Mapping[str, Handler], beside: int = 0) -> None:
        self._source = source
        self._handlers = handlers
        self._beside = beside
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event, wait: timedelta = WAIT, after_error: timedelta = AFTER_ERROR) -> None:
        """Serve until `stop`. If the switchboard is away, try again after a while."""
        try:
            await self._run(stop, wait, after_error)
        finally:
            for task in self._answering:
                task.cancel()
            if self._answering:
                await asyncio.wait(self._answering)

    async def _run(self, stop: asyncio.Event, wait: timedelta, after_error: timedelta) -> None:
        loop = asyncio.get_running_loop()
        while not stop.is_set():
            began = loop.time()
            try:
                found = await self._source.requests(wait)
                for request in found:
                    await self._take_up(request)
                if not found and loop.time() - began < AT_ONCE_S:
                    await pause(stop, after_error)
            except (PostroomError, OSError) as error:
                log.warning("connector.requests_failed", error=masked_urls(f"{type(error).__name__}: {error}"))
                await pause(stop, after_error)

    async def _take_up(self, request: ConnectorRequest) -> None:
        if len(self._answering) >= self._beside:
            await self.answer(request)
            return
        task = asyncio.create_task(self.answer(request))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def answer(self, request: ConnectorRequest) -> None:
        """Handle a request and reply. Errors are reported to the requester, and never raised here.

        If the reply fails, the request stays leased, and is delivered again when the lease expires.
        """
        try:
            result = await self._handle(request)
            if isinstance(result, str):
                await self._source.fail(request, result)
            else:
                await self._reply(request, result)
        except LeaseLost:
            log.info("connector.request_too_late", kind=request.kind)
        except Exception as error:
            log.warning("connector.request_not_answered", kind=request.kind, error=type(error).__name__)

    async def _handle(self, request: ConnectorRequest) -> Mapping[str, Any] | str:
        """The result, or the reason for a failure. Only our own errors are quoted: others may contain mail."""
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

    async def _reply(self, request: ConnectorRequest, result: Mapping[str, Any]) -> None:
        try:
            await self._source.reply(request, result)
        except BadInput as error:
            await self._source.fail(request, masked_urls(f"the answer was refused: {error}")[:LONGEST_ERROR])


def _place_of(error: Exception) -> str:
    """The line that raised the error, without any text, which may contain mail."""
    frames = extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
