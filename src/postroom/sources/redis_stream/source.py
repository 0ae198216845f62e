"""Ingests the entries of a Redis stream, and acknowledges each in Redis only when the switchboard has accepted it.

From delivery to acknowledgement an entry is on Redis's pending list. So nothing is lost wherever this process dies, and
an entry that is sent a second time is recognised by the switchboard, which knows its id. Errors are handled thus:

- the switchboard, or Redis, is away or busy: wait, acknowledge nothing, and continue;
- the switchboard refuses an entry for good: move it to the stream of refused entries, with the reason;
- a single entry fails for now: it stays pending, is skipped, and is claimed again like that of a crashed consumer;
- the token is refused: wait too, since nothing is wrong with the entries.

A source is healthy once it has read from Redis, and for as long as it can.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import orjson
import structlog
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, RedisError, ResponseError

from postroom.core.errors import BadInput, IntakeRefused, PostroomError, Refused, SettingsError
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.queue.envelope import LARGEST_ENVELOPE
from postroom.sources.redis_stream.entry import Entry, Fields, place, to_envelope
from postroom.sources.redis_stream.stream import FIRST, LONGEST_BLOCK, RedisStream
from postroom.sources.runtime import ConnectorHealth, pause
from postroom.sources.switchboard_client import Receipt, SwitchboardClient

log = structlog.get_logger()

MOST_PER_CALL = 100
MOST_TEXT_PER_CALL = 8 * 1024 * 1024
# With its jitter of a quarter, the longest pause is 30 s.
BACKOFF = RetryPolicy(base=timedelta(seconds=0.25), cap=timedelta(seconds=24))


class ReadEntry(NamedTuple):
    """An entry with its envelope."""

    id: str
    fields: Fields
    envelope: dict[str, Any]
    size: int


class RedisSource:
    """One stream, read by one consumer of a group; any number of consumers may run concurrently."""

    def __init__(
        self,
        stream: RedisStream,
        switchboard: SwitchboardClient,
        health: ConnectorHealth,
        *,
        identity: str,
        clock: Callable[[], datetime],
        rng: Random,
        batch: int = MOST_PER_CALL,
        claim_after: timedelta = timedelta(seconds=60),
        backoff: RetryPolicy = BACKOFF,
    ) -> None:
        self._stream = stream
        self._switchboard = switchboard
        self._health = health
        self._identity = identity
        self._clock = clock
        self._rng = rng
        self._batch = min(batch, MOST_PER_CALL)
        self._claim_after = claim_after
        self._backoff = backoff
        self._troubles: Counter[str] = Counter()
        self._reached = FIRST
        self._connected = False
        health.await_first_read("nothing has been read from Redis yet")

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Run until `stop`; a call in progress is finished. Calls `ready` when the group exists."""
        while not stop.is_set():
            try:
                await self._stream.ensure_group()
                if not self._connected:
                    self._connected = True
                    ready()
                await self._take_up_pending(stop)
                self._end_trouble("redis")
                await self._follow(stop)
            except (RedisError, OSError) as error:
                self._raise_if_misconfigured(error)
                await self._wait_out("redis", error, stop)

    async def _take_up_pending(self, stop: asyncio.Event) -> None:
        """Process entries that were delivered before a restart or a broken connection."""
        after = FIRST
        while not stop.is_set() and (entries := await self._stream.pending(after, self._batch)):
            after = entries[-1].id
            await self._settle(entries, stop)

    async def _follow(self, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        claim_at = loop.time()
        while not stop.is_set():
            if loop.time() >= claim_at:
                await self._claim(stop)
                claim_at = loop.time() + self._claim_after.total_seconds() / 2
            block = min(LONGEST_BLOCK, timedelta(seconds=max(0.0, claim_at - loop.time())))
            entries = await self._fresh(block, stop)
            self._end_trouble("redis")
            await self._settle(entries, stop)

    async def _fresh(self, block: timedelta, stop: asyncio.Event) -> list[Entry]:
        """Wait for new entries, or until `stop`. None is lost: those delivered meanwhile are pending."""
        reading = asyncio.create_task(self._stream.fresh(self._batch, block))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else []
        finally:
            reading.cancel()
            stopping.cancel()
            await asyncio.gather(reading, stopping, return_exceptions=True)

    async def _claim(self, stop: asyncio.Event) -> None:
        """Claim entries that consumers have held for too long: they crashed, or an entry failed for now."""
        cursor = FIRST
        while not stop.is_set():
            cursor, entries = await self._stream.claim(cursor, self._claim_after, self._batch)
            if entries:
                log.info("redis.claimed", entries=len(entries))
            self._health.counters["claimed"] += len(entries)
            await self._settle(entries, stop)
            if cursor == FIRST:
                return

    async def _settle(self, entries: Sequence[Entry], stop: asyncio.Event) -> None:
        """Get each entry accepted or moved aside, and acknowledged. Deleted entries are only acknowledged."""
        self._health.counters["read"] += len(entries)
        await self._stream.ack([entry.id for entry in entries if entry.fields is None])
        converted: list[ReadEntry] = []
        for entry in entries:
            if entry.fields is None:
                continue
            try:
                converted.append(self._convert(entry.id, entry.fields))
            except BadInput as problem:
                await self._move_aside(entry.id, entry.fields, problem)
        for batch in _batches(converted):
            await self._ingest(batch, stop)

    def _convert(self, entry_id: str, fields: Fields) -> ReadEntry:
        _check_size(entry_id, sum(len(name) + len(value) for name, value in fields))
        try:
            envelope = to_envelope(entry_id, fields, stream=self._stream.name, identity=self._identity)
            size = len(orjson.dumps(envelope))
        except orjson.JSONEncodeError:
            raise BadInput("entry", f"{entry_id} contains JSON nested too deep", "nest 100 levels at most") from None
        _check_size(entry_id, size)
        return ReadEntry(entry_id, fields, envelope, size)

    async def _ingest(self, entries: Sequence[ReadEntry], stop: asyncio.Event) -> None:
        """Ingest one batch; retry until the switchboard answers."""
        while not stop.is_set():
            try:
                outcomes = await self._switchboard.ingest_batch([entry.envelope for entry in entries])
                if refused := next((each for each in outcomes if isinstance(each, Refused | IntakeRefused)), None):
                    raise refused
            except (PostroomError, OSError) as error:
                await self._wait_out("switchboard", error, stop)
            else:
                await self._conclude(entries, outcomes, stop)
                return

    async def _conclude(
        self, entries: Sequence[ReadEntry], outcomes: Sequence[Receipt | PostroomError], stop: asyncio.Event
    ) -> None:
        accepted: list[str] = []
        failure: PostroomError | None = None
        for entry, outcome in zip(entries, outcomes, strict=True):
            match outcome:
                case Receipt():
                    accepted.append(entry.id)
                    self._health.counters["duplicate" if outcome.duplicate else "accepted"] += 1
                case BadInput():
                    await self._move_aside(entry.id, entry.fields, outcome)
                case PostroomError():
                    failure = outcome
                    self._health.counters["postponed"] += 1
        await self._stream.ack(accepted)
        if accepted:
            self._reached = max(self._reached, accepted[-1], key=place)
            self._health.reach(self._reached)
            self._end_trouble("switchboard")
        elif failure is not None:
            await self._wait_out("switchboard", failure, stop)

    async def _move_aside(self, entry_id: str, fields: Fields, problem: BadInput) -> None:
        log.warning("redis.entry_refused", error=type(problem).__name__, moved_to=self._stream.refused)
        await self._stream.refuse(entry_id, fields, str(problem), self._clock())
        self._health.counters["refused"] += 1

    def _end_trouble(self, whose: str) -> None:
        del self._troubles[whose]
        if not self._troubles:
            self._health.well()

    async def _wait_out(self, whose: str, error: Exception, stop: asyncio.Event) -> None:
        """Wait for as long as the switchboard says, or back off; at most 30 s."""
        delay = self._backoff.delay(self._troubles[whose], self._rng)
        if isinstance(error, IntakeRefused):
            delay = min(max(delay, error.retry_after), self._backoff.cap)
        self._troubles[whose] += 1
        self._health.report_problem("error" if isinstance(error, Refused | ResponseError) else "degraded", error)
        log.warning("redis.waiting", whose=whose, error=self._health.error_message, seconds=delay.total_seconds())
        await pause(stop, delay)

    def _raise_if_misconfigured(self, error: Exception) -> None:
        """Raise errors that waiting cannot fix, but only at the start: later, someone may be about to fix them."""
        if self._connected:
            return
        if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
            raise SettingsError(
                f"Redis refuses access: {error}; check user and password in POSTROOM_REDIS_URL"
            ) from error
        if isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError):
            remedy = "name the authority that signed it in redis.url, as rediss://…?ssl_ca_certs=/path/ca.pem"
            raise SettingsError(f"the certificate of Redis does not verify; {remedy}") from error
        if type(error) is RedisError:
            # An error of the client library itself, raised before anything was sent.
            raise SettingsError(f"the Redis client cannot work with redis.url: {error}") from error
        if isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE"):
            raise BadInput(
                "--stream", f"{self._stream.name!r} is not a stream", "name a stream, or a new key"
            ) from error


def _check_size(entry_id: str, size: int) -> None:
    if size > LARGEST_ENVELOPE:
        remedy = f"keep entries under {LARGEST_ENVELOPE // 2**20} MiB; texts count twice, as text and as field"
        raise BadInput("entry", f"{entry_id} has {size:,} bytes", remedy)


def _batches(entries: Sequence[ReadEntry]) -> Iterator[list[ReadEntry]]:
    """Split the entries, in order, into as few batches as the limits allow."""
    batch: list[ReadEntry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) >= MOST_PER_CALL or size + entry.size > MOST_TEXT_PER_CALL):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch
