"""uvicorn's HTTP protocol, with limits that hold before a request is complete.

      START ──byte──► HEAD ──headers complete──► BODY ──complete──► DONE
                        ▲                                             │
                        └───────────── next request ──────────────────┘

Each stage has a time limit (START `first_byte_s`, HEAD `headers_s`, BODY `body_s`; uvicorn itself closes idle
connections after `keep_alive_s`). Time in which we do not read does not count against the client. A client that does
not read its answer holds the connection for `answer_s` at most, even if the answer is endless (server-sent events).

Bytes are counted as the parser reports them. Bytes that it has consumed and not yet reported (half a header, the
trailer of a body, chunk extensions) are counted by what arrived since its last report, so nothing grows unseen.
"""

import asyncio
from enum import Enum
from typing import Any, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from postroom.system.http_server.guard import ConnectionGuard, address_key
from postroom.system.http_server.limits import MIB, ConnectionLimits, Refusal

# After a refusal, or an early answer, up to this much of what the client still sends is read and discarded.
MOST_DISCARDED = MIB
HEADER_OVERHEAD = 4


class Stage(Enum):
    """How much of the current request has been received."""

    START = 1
    HEAD = 2
    BODY = 3
    DONE = 4


class GuardedConfig(uvicorn.Config):
    """A configuration whose connections share one guard. Protocol upgrades would bypass it, so they are off."""

    def __init__(self, app: Any, guard: ConnectionGuard, protocol: type[asyncio.Protocol], **more: Any) -> None:
        super().__init__(
            app,
            http=protocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            **more,
        )
        self.guard = guard


class _TooMuch(Exception):
    """Raised inside a callback of the parser, to stop it."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.guard = cast("GuardedConfig", config).guard
        self.limits: ConnectionLimits = self.guard.limits
        self.address = ""
        self.stage = Stage.START
        self._since = 0.0
        self._unfinished_since = 0.0
        self._refusal: Refusal | None = None
        self._refused = False
        self._write_blocked_since: float | None = None
        self._closing_since: float | None = None
        self._reports = 0
        self._unreported_bytes = 0
        self._head_bytes = 0
        self._header_count = 0
        self._body_bytes = 0
        self._discarded_bytes = 0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_key(self.client)
        self._since = self._unfinished_since = self.guard.now()
        refusal = self.guard.admit(self)
        if refusal is not None:
            self.refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.remove(self)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._discard(len(data))
            return
        if self.stage in (Stage.START, Stage.DONE):
            self._enter(Stage.HEAD)
        reports = self._reports
        self._unset_keepalive_if_required()
        self._feed(data)
        self._unreported_bytes = 0 if self._reports != reports else self._unreported_bytes + len(data)
        if self._head_bytes + self._unreported_bytes > self.limits.max_header_bytes and not self._refused:
            self.refuse(Refusal.HEADERS_TOO_LARGE)

    def _feed(self, data: bytes) -> None:
        """Feed the parser as uvicorn does, but do not log malformed requests: anyone could fill the log with them."""
        try:
            cast("httptools.HttpRequestParser", self.parser).feed_data(data)
        except httptools.HttpParserUpgrade:
            return
        except httptools.HttpParserError:
            self.refuse(self._refusal or Refusal.BAD_REQUEST)

    def pause_writing(self) -> None:
        self._write_blocked_since = self.guard.now()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._write_blocked_since = None
        super().resume_writing()

    # What the parser reports

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reports += 1
        self._head_bytes = self._header_count = self._body_bytes = self._discarded_bytes = 0
        self._enter(Stage.HEAD)

    def on_url(self, url: bytes) -> None:
        self._reports += 1
        self._head_bytes += len(url)
        if self._head_bytes > self.limits.max_header_bytes:
            self._stop(Refusal.URL_TOO_LONG)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._reports += 1
        self._header_count += 1
        self._head_bytes += len(name) + len(value) + HEADER_OVERHEAD
        if self._head_bytes > self.limits.max_header_bytes or self._header_count > self.limits.max_headers:
            self._stop(Refusal.HEADERS_TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._reports += 1
        super().on_headers_complete()
        if len(self.pipeline) > self.limits.max_pipelined:
            self._stop(Refusal.PIPELINED)
        self._enter(Stage.BODY)

    def on_body(self, body: bytes) -> None:
        self._reports += 1
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._discard(len(body))
        elif self._body_bytes > self.limits.max_body_bytes:
            self._stop(Refusal.BODY_TOO_LARGE)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._reports += 1
        super().on_message_complete()
        self._enter(Stage.DONE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = self.guard.now()

    # Refusing

    def refuse(self, refusal: Refusal) -> None:
        """Answer if that is still possible, and close the connection."""
        if self._refused:
            return
        self.guard.count(refusal)
        if not refusal.answer or not self._can_answer():
            self.abort()
            return
        self._end_request()
        self.transport.write(refusal.answer)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.guard.linger(self)

    def eviction_rank(self) -> tuple[int, float] | None:
        """Idle and answered connections go first, then the oldest unfinished request. Among those only age counts: if
        unfinished headers went before unfinished bodies, slow bodies would soon hold every connection."""
        if self.transport.is_closing():
            return (0, self._since)
        if self._is_answering() and (self.stage is not Stage.BODY or self.cycle.response_started or self.pipeline):
            return None
        if self.stage in (Stage.START, Stage.HEAD) or self._is_answering():
            return (1, self._unfinished_since)
        return (0, self._since)

    def evict(self) -> None:
        if self.stage in (Stage.HEAD, Stage.BODY) and not self.transport.is_closing():
            self.refuse(Refusal.CROWDED)
        else:
            self.guard.count(Refusal.CROWDED)
            self.abort()

    def abort(self) -> None:
        self._end_request()
        self.guard.remove(self)
        self.transport.abort()

    def check_deadlines(self, now: float) -> None:
        if self.transport.is_closing():
            self._closing_since = now if self._closing_since is None else self._closing_since
            if now - self._closing_since > self.limits.answer_s:
                self.refuse(Refusal.SLOW_READER)
        elif self._write_blocked_since is not None and now - self._write_blocked_since > self.limits.answer_s:
            self.refuse(Refusal.SLOW_READER)
        elif self.flow.read_paused or (self.stage is Stage.HEAD and self._is_answering()):
            self._since = now
        elif (refusal := self._overdue(now - self._since)) is not None:
            self.refuse(refusal)

    def _overdue(self, waited: float) -> Refusal | None:
        match self.stage:
            case Stage.START if waited > self.limits.first_byte_s:
                return Refusal.SILENT
            case Stage.HEAD if waited > self.limits.headers_s:
                return Refusal.HEADERS_TOO_LATE
            case Stage.BODY if waited > self.limits.body_s:
                return Refusal.BODY_TOO_LATE
            case _:
                return None

    def _enter(self, stage: Stage) -> None:
        if stage is self.stage:
            return
        self._since = self.guard.now()
        if self.stage is Stage.DONE:
            self._unfinished_since = self._since
        self.stage = stage

    def _stop(self, refusal: Refusal) -> None:
        self._refusal = refusal
        raise _TooMuch(refusal.reason)

    def _discard(self, count: int) -> None:
        self._discarded_bytes += count
        if self._discarded_bytes > MOST_DISCARDED:
            self.abort()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _can_answer(self) -> bool:
        """Whether an answer would neither interrupt another nor be taken for the answer to an earlier request."""
        if self.transport.is_closing():
            return False
        if self.stage is Stage.BODY:
            return not self.cycle.response_started and not self.pipeline
        return not self._is_answering()

    def _end_request(self) -> None:
        """Tell the application that the client is gone."""
        self._refused = True
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        if self._is_answering():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
