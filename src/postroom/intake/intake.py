"""Intake: validates envelopes, recognises duplicates, stores, and only then acknowledges.

Envelopes that arrive during a commit go into the next one, so that under load many messages share a commit.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from postroom.core.errors import (
    AccountUnusable,
    BadInput,
    Conflict,
    ConstraintBroken,
    DatabaseFull,
    DatabaseReplaced,
    IntakeRefused,
    PostroomError,
    Refused,
    StoreError,
)
from postroom.core.metrics import (
    ACCEPT_LATENCY,
    LIFECYCLE_TRANSITION,
    MESSAGE_DEDUPLICATED,
    MESSAGE_EVENT,
    MESSAGE_RECEIVED,
    MESSAGE_REFUSED,
)
from postroom.core.queue.content_hash import content_hash
from postroom.core.queue.envelope import Envelope, envelope_text, parse_envelope
from postroom.core.queue.queues import Queues
from postroom.core.tally import Tally
from postroom.core.traceparent import is_traceparent
from postroom.intake.disk import RETRY_AFTER, DiskReserve
from postroom.store.engine.batcher import Batcher
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.acceptance import Accepted, Outcome, RoutedEnvelope, accept_many
from postroom.system.wall_clock import Clock, wall_clock
from postroom.telemetry.tracing import add_event, current_traceparent, span

LARGEST_BATCH = 100
AT_ONCE = 500
HEAVIEST = 16 * 1024 * 1024


class Intake:
    """Accepts envelopes from all connectors and producers."""

    def __init__(
        self,
        database: Database,
        reserve: DiskReserve | None,
        clock: Clock = wall_clock,
        *,
        queues: Queues | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._database = database
        self._reserve = reserve
        self._clock = clock
        self._queues = queues or Queues()
        self._tally = tally or Tally()
        self._accept = Batcher(self._flush, AT_ONCE, lambda item: len(item.text), HEAVIEST)

    async def ingest(self, data: object, bound_to: str | None = None) -> Accepted:
        """Accept one envelope. It is on disk when this returns."""
        started = time.perf_counter()
        try:
            self._check_room()
            incoming = self._check(data, bound_to)
            with span("ingest", incoming.traceparent):
                return self._result_of(incoming, await self._accept(self._with_trace(incoming)), started)
        except PostroomError as error:
            raise self._counted_refusal(error) from error.__cause__

    async def ingest_batch(
        self, items: Sequence[object], bound_to: str | None = None
    ) -> list[Accepted | PostroomError]:
        """Accept up to a hundred envelopes; for each, in order, its receipt or its error."""
        if not 1 <= len(items) <= LARGEST_BATCH:
            raise BadInput("items", f"has {len(items)} entries", f"send 1 to {LARGEST_BATCH} at a time")
        started = time.perf_counter()
        try:
            self._check_room()
        except IntakeRefused as error:
            raise self._counted_refusal(error) from error.__cause__
        results: list[Accepted | PostroomError] = []
        good: list[tuple[int, RoutedEnvelope]] = []
        for item in items:
            try:
                good.append((len(results), self._check(item, bound_to)))
                results.append(Refused("not decided yet"))
            except PostroomError as error:
                results.append(self._counted_refusal(error))
        if good:
            await self._accept_all(good, results, started)
        return results

    async def _accept_all(
        self, good: Sequence[tuple[int, RoutedEnvelope]], results: list[Accepted | PostroomError], started: float
    ) -> None:
        with span("ingest.batch"):
            accepting = [self._accept(each if each.traceparent else self._with_trace(each)) for _, each in good]
            outcomes = await asyncio.gather(*accepting, return_exceptions=True)
            for (place, incoming), outcome in zip(good, outcomes, strict=True):
                match outcome:
                    case Accepted():
                        results[place] = self._result_of(incoming, outcome, started)
                    case PostroomError():
                        results[place] = self._counted_refusal(outcome)
                    case BaseException():
                        raise outcome
        if not any(isinstance(each, Accepted) for each in results):
            self._raise_for_all(results)

    def _raise_for_all(self, results: Sequence[Accepted | PostroomError]) -> None:
        """If nothing was accepted, raise the first temporary error, so that the caller retries the whole batch."""
        for error in results:
            if isinstance(error, IntakeRefused | StoreError):
                raise error

    def _check_room(self) -> None:
        if self._reserve is not None:
            self._reserve.check()

    def _check(self, data: object, bound_to: str | None) -> RoutedEnvelope:
        envelope = parse_envelope(data)
        if bound_to is not None and envelope.source.endpoint_identity != bound_to:
            raise Refused(
                f"source.endpoint_identity: this token is for {bound_to!r}; ingest for that endpoint, or use its token"
            )
        policy, text = self._queues.of(envelope), envelope_text(envelope)
        content = None if policy.same_text_within is None else content_hash(envelope, policy.same_text_ignores)
        return RoutedEnvelope(
            new_id(), envelope, text, policy, policy.tier_of(envelope), _traceparent(envelope), content
        )

    def _with_trace(self, incoming: RoutedEnvelope) -> RoutedEnvelope:
        """The envelope with the current span as the parent of everything that follows."""
        current = current_traceparent()
        if current is None or current == incoming.traceparent:
            return incoming
        return replace(incoming, traceparent=current)

    async def _flush(self, items: list[RoutedEnvelope]) -> list[Outcome | PostroomError]:
        try:
            return list(await self._database.run(accept_many(items, self._clock())))
        except (DatabaseFull, DatabaseReplaced) as error:
            raise IntakeRefused(f"nothing can be accepted: {error}", RETRY_AFTER) from error
        except ConstraintBroken:
            if len(items) == 1:
                return [
                    BadInput("envelope", "contains data that the database cannot store", "see docs/reference/ingest.md")
                ]
        # One of them violates a constraint: it must not affect the others in its batch.
        return [outcome for item in items for outcome in await self._flush([item])]

    def _result_of(self, incoming: RoutedEnvelope, outcome: Outcome | PostroomError, started: float) -> Accepted:
        if not isinstance(outcome, Accepted):
            raise outcome
        queue, tally = incoming.policy.queue, self._tally
        tally.observe(ACCEPT_LATENCY, time.perf_counter() - started, queue)
        if outcome.duplicate:
            tally.count(MESSAGE_DEDUPLICATED, queue, outcome.known_by or "event")
        if not outcome.duplicate or outcome.known_by == "upgrade":
            tally.count(MESSAGE_RECEIVED, incoming.envelope.source.channel, queue, incoming.tier)
            tally.count(LIFECYCLE_TRANSITION, queue, "new", "waiting")
            tally.count(MESSAGE_EVENT, "message.queued", queue, incoming.tier)
            add_event("message.queued", priority=incoming.tier, queue=queue, wait_ms=0.0)
        return outcome

    def _counted_refusal(self, error: PostroomError) -> PostroomError:
        match error:
            case Conflict():
                self._tally.count(MESSAGE_REFUSED, "conflict")
            case BadInput():
                self._tally.count(MESSAGE_REFUSED, "bad_input")
            case AccountUnusable():
                self._tally.count(MESSAGE_REFUSED, "no_account")
            case IntakeRefused():
                self._tally.count(MESSAGE_REFUSED, "no_room")
            case _:
                pass
        return error


def _traceparent(envelope: Envelope) -> str | None:
    """The traceparent of the envelope. A malformed one is dropped, never a reason to refuse the envelope."""
    given = (envelope.control.trace_context or {}).get("traceparent", "")
    return given if is_traceparent(given) else None
