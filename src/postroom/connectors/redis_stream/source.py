"""Hands in what a Redis stream brings, and acknowledges it in Redis only when the switchboard has accepted it.

An entry is ours from the moment Redis gives it to us until we acknowledge it; in between it stays on Redis's list of
the pending. So nothing is lost wherever this process dies, and what is handed in a second time is recognised by the
switchboard, which knows the entry's id. Four kinds of trouble, four answers:

- the switchboard, or Redis, is away or busy: wait, acknowledge nothing, go on where we were;
- the switchboard refuses an entry for good: it is moved to the stream of the refused, with the reason;
- a single entry fails for now: it stays pending, is passed over, and is claimed again like a crashed consumer's;
- the token is refused: wait as well, since nothing is wrong with the entries.

A source is healthy once it has read from Redis, and only for as long as it can.
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

from postroom.connectors.redis_stream.entry import Entry, Fields, place, to_envelope
from postroom.connectors.redis_stream.stream import FIRST, LONGEST_BLOCK, RedisStream
from postroom.connectors.runtime import ConnectorHealth, pause
from postroom.connectors.switchboard_client import Receipt, SwitchboardClient
from postroom.core.errors import BadInput, IntakeRefused, PostroomError, Refused, SettingsError
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.queue.envelope import LARGEST_ENVELOPE

log = structlog.get_logger()

MOST_PER_CALL = 100
MOST_TEXT_PER_CALL = 8 * 1024 * 1024
# With its jitter of a quarter, the longest pause is 30 s.
BACKOFF = RetryPolicy(base=timedelta(seconds=0.25), cap=timedelta(seconds=24))


class ReadEntry(NamedTuple):
    """An entry with the envelope made of it."""

    id: str
    fields: Fields
    envelope: dict[str, Any]
    size: int


class RedisSource:
    """One stream, read by one consumer of a group; any number of them may run beside each other."""

    def __init__(
        self,
        stream: RedisStream,
        switchboard: SwitchboardClient,
        vitals: ConnectorHealth,
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
        self._vitals = vitals
        self._identity = identity
        self._clock = clock
        self._rng = rng
        self._batch = min(batch, MOST_PER_CALL)
        self._claim_after = claim_after
        self._backoff = backoff
        self._troubles: Counter[str] = Counter()
        self._reached = FIRST
        self._connected = False
        vitals.await_first_read("nothing was read from Redis yet")

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Until `stop`, which lets a hand-in that is under way end. Calls `ready` when it first has its place."""
        while not stop.is_set():
            try:
                await self._stream.ensure_group()
                if not self._connected:
                    self._connected = True
                    ready()
                await self._take_up_pending(stop)
                self._recovered("redis")
                await self._follow(stop)
            except (RedisError, OSError) as error:
                self._raise_if_misconfigured(error)
                await self._wait_out("redis", error, stop)

    async def _take_up_pending(self, stop: asyncio.Event) -> None:
        """What this consumer was given before it was restarted, or before its connection broke."""
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
            self._recovered("redis")
            await self._settle(entries, stop)

    async def _fresh(self, block: timedelta, stop: asyncio.Event) -> list[Entry]:
        """New entries. Giving up the wait loses none: what Redis has handed out meanwhile is pending."""
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
        """Takes over what consumers have held for too long: they crashed, or an entry failed for now."""
        cursor = FIRST
        while not stop.is_set():
            cursor, entries = await self._stream.claim(cursor, self._claim_after, self._batch)
            if entries:
                log.info("redis.claimed", entries=len(entries))
            self._vitals.counters["claimed"] += len(entries)
            await self._settle(entries, stop)
            if cursor == FIRST:
                return

    async def _settle(self, entries: Sequence[Entry], stop: asyncio.Event) -> None:
        """Sees to it that each is accepted or moved aside, and acknowledged; what was deleted has nothing to give."""
        self._vitals.counters["read"] += len(entries)
        await self._stream.ack([entry.id for entry in entries if entry.fields is None])
        letters: list[ReadEntry] = []
        for entry in entries:
            if entry.fields is None:
                continue
            try:
                letters.append(self._letter(entry.id, entry.fields))
            except BadInput as problem:
                await self._move_aside(entry.id, entry.fields, problem)
        for call in _calls(letters):
            await self._hand_in(call, stop)

    def _letter(self, entry_id: str, fields: Fields) -> ReadEntry:
        _check_size(entry_id, sum(len(name) + len(value) for name, value in fields))
        try:
            envelope = to_envelope(entry_id, fields, stream=self._stream.name, identity=self._identity)
            size = len(orjson.dumps(envelope))
        except orjson.JSONEncodeError:
            raise BadInput("entry", f"{entry_id} holds JSON nested too deep", "nest 100 levels at most") from None
        _check_size(entry_id, size)
        return ReadEntry(entry_id, fields, envelope, size)

    async def _hand_in(self, letters: Sequence[ReadEntry], stop: asyncio.Event) -> None:
        """One call, made again until the switchboard answers it."""
        while not stop.is_set():
            try:
                outcomes = await self._switchboard.ingest_batch([letter.envelope for letter in letters])
                if refused := next((each for each in outcomes if isinstance(each, Refused | IntakeRefused)), None):
                    raise refused
            except (PostroomError, OSError) as error:
                await self._wait_out("switchboard", error, stop)
            else:
                await self._conclude(letters, outcomes, stop)
                return

    async def _conclude(
        self, letters: Sequence[ReadEntry], outcomes: Sequence[Receipt | PostroomError], stop: asyncio.Event
    ) -> None:
        accepted: list[str] = []
        failure: PostroomError | None = None
        for letter, outcome in zip(letters, outcomes, strict=True):
            match outcome:
                case Receipt():
                    accepted.append(letter.id)
                    self._vitals.counters["duplicate" if outcome.duplicate else "accepted"] += 1
                case BadInput():
                    await self._move_aside(letter.id, letter.fields, outcome)
                case PostroomError():
                    failure = outcome
                    self._vitals.counters["postponed"] += 1
        await self._stream.ack(accepted)
        if accepted:
            self._reached = max(self._reached, accepted[-1], key=place)
            self._vitals.reach(self._reached)
            self._recovered("switchboard")
        elif failure is not None:
            await self._wait_out("switchboard", failure, stop)

    async def _move_aside(self, entry_id: str, fields: Fields, problem: BadInput) -> None:
        log.warning("redis.entry_refused", error=type(problem).__name__, moved_to=self._stream.refused)
        await self._stream.refuse(entry_id, fields, str(problem), self._clock())
        self._vitals.counters["refused"] += 1

    def _recovered(self, whose: str) -> None:
        del self._troubles[whose]
        if not self._troubles:
            self._vitals.well()

    async def _wait_out(self, whose: str, error: Exception, stop: asyncio.Event) -> None:
        """The switchboard says when to come back, or we back off; either way 30 s at most."""
        delay = self._backoff.delay(self._troubles[whose], self._rng)
        if isinstance(error, IntakeRefused):
            delay = min(max(delay, error.retry_after), self._backoff.cap)
        self._troubles[whose] += 1
        self._vitals.report_problem("error" if isinstance(error, Refused | ResponseError) else "degraded", error)
        log.warning("redis.waiting", whose=whose, error=self._vitals.error_message, seconds=delay.total_seconds())
        await pause(stop, delay)

    def _raise_if_misconfigured(self, error: Exception) -> None:
        """What waiting cannot mend is told at the start. Later, someone may be about to mend it."""
        if self._connected:
            return
        if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
            raise SettingsError(f"Redis refuses us: {error}; check user and password in POSTROOM_REDIS_URL") from error
        if isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError):
            remedy = "name the authority that signed it in redis.url, as rediss://…?ssl_ca_certs=/path/ca.pem"
            raise SettingsError(f"the certificate of Redis does not verify; {remedy}") from error
        if type(error) is RedisError:
            # The client's own complaint, made before anything was sent.
            raise SettingsError(f"the Redis client cannot work with redis.url: {error}") from error
        if isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE"):
            raise BadInput("--stream", f"{self._stream.name!r} is no stream", "name a stream, or a new key") from error


def _check_size(entry_id: str, size: int) -> None:
    if size > LARGEST_ENVELOPE:
        remedy = f"keep entries under {LARGEST_ENVELOPE // 2**20} MiB; texts count twice, as text and as field"
        raise BadInput("entry", f"{entry_id} has {size:,} bytes", remedy)


def _calls(letters: Sequence[ReadEntry]) -> Iterator[list[ReadEntry]]:
    """In order, as few calls as their limits allow."""
    call: list[ReadEntry] = []
    size = 0
    for letter in letters:
        if call and (len(call) >= MOST_PER_CALL or size + letter.size > MOST_TEXT_PER_CALL):
            yield call
            call, size = [], 0
        call.append(letter)
        size += letter.size
    if call:
        yield call
