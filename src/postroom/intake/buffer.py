"""The buffer between producers and consumers: leases messages in tier order, and ends them.

Everything is in the store; this waits for signals, counts, and reports events.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import structlog

from postroom.core.errors import BadInput, LeaseLost
from postroom.core.mail.message import storable
from postroom.core.metrics import DEQUEUE_BY_TIER, LIFECYCLE_TRANSITION, MESSAGE_EVENT, PROCESS_LATENCY
from postroom.core.queue.marked_envelope import marked_envelope
from postroom.core.queue.queues import QueuePolicy, Queues
from postroom.core.tally import Tally
from postroom.core.views import Internal, Named, Shown
from postroom.store.engine.codecs import from_json
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.long_poll import LongPoll, check_wait
from postroom.store.intake import history, inbox
from postroom.store.intake.acceptance import CHANNEL
from postroom.store.intake.inbox import LeaseRef
from postroom.system.wall_clock import Clock, wall_clock
from postroom.telemetry.tracing import add_event, span

log = structlog.get_logger()

MOST_AT_ONCE = 100
POLL_S = 1.0
SWEEP_EVERY_S = 1.0
LONGEST_REASON = 500
MOST_REPORTED_SINGLY = 50


@dataclass(frozen=True, slots=True)
class Delivery:
    """A leased message: the caller's until `lease_until`. Text by strangers is under `envelope.untrusted`."""

    message_id: UUID
    lease_token: UUID
    lease_until: datetime
    queue: Internal[str]
    tier: str
    promoted_from: str | None
    members: tuple[UUID, ...]
    """Of a summary: the first messages in it."""
    member_count: int
    attempts: int
    accepted_at: Internal[datetime]
    envelope: Internal[dict[str, Any]]

    @property
    def marked(self) -> Annotated[Shown[dict[str, Any]], Named("envelope")]:
        return marked_envelope(self.envelope)


class Buffer:
    """All queues as consumers see them."""

    def __init__(
        self,
        database: Database,
        queues: Queues | None = None,
        clock: Clock = wall_clock,
        *,
        tally: Tally | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._database = database
        self._queues = queues or Queues()
        self._clock = clock
        self._tally = tally or Tally()
        self._long_poll = LongPoll(database, poll_s, not_given_back="queue.not_given_back")
        self._swept_at = float("-inf")
        self._looking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._found_empty: set[str] = set()

    async def next(
        self, queue: str, most: int = 1, wait: timedelta = timedelta(0), left: asyncio.Event | None = None
    ) -> list[Delivery]:
        """Lease up to `most` messages; if there are none, wait for up to `wait`.

        `left` is set when nobody waits for the answer any more: then messages that were just leased are given back.
        """
        policy = self._queues[queue]
        if not 1 <= most <= MOST_AT_ONCE:
            raise BadInput("max", f"is {most}", f"ask for 1 to {MOST_AT_ONCE} messages")
        check_wait(wait)
        leased = await self._long_poll.lease(
            CHANNEL, queue, lambda: self._look(policy, most), self._give_back, wait, left
        )
        return [_delivery(each) for each in leased]

    async def _look(self, policy: QueuePolicy, most: int) -> list[inbox.LeasedMessage]:
        """Lease what waits. Callers waiting for the same queue take turns; while it is empty they only read."""
        async with self._looking[policy.queue]:
            await self.return_expired_periodically()
            if policy.queue in self._found_empty and not await self._database.run(history.any_waiting(policy.queue)):
                return []
            leased = await self.lease(policy, most)
            (self._found_empty.discard if leased else self._found_empty.add)(policy.queue)
            return leased

    async def _give_back(self, leased: Sequence[inbox.LeasedMessage]) -> None:
        """Return messages that nobody saw, as if they had never been leased."""
        if leased:
            refs = [LeaseRef(each.id, each.token) for each in leased]
            await self._database.run(inbox.give_back(refs, self._clock()))
            for each in leased:
                self._tally.count(LIFECYCLE_TRANSITION, each.queue, "leased", "waiting")

    async def close(self) -> None:
        """Wait until everything has been given back."""
        await self._long_poll.close()

    async def lease(
        self, policy: QueuePolicy, most: int, limits: Mapping[str, int] = inbox.NO_LIMITS
    ) -> list[inbox.LeasedMessage]:
        """Lease up to `most` waiting messages now; of some tiers only as many as `limits` says."""
        now = self._clock()
        messages, passed = await self._database.run(inbox.lease(policy, most, new_id(), now, new_id(), limits))
        if messages or passed:
            with span("queue.next", queue=policy.queue):
                for each in messages:
                    self._count_lease(each, now)
                self._count_passed(passed, now)
        return messages

    async def ack(self, refs: Sequence[LeaseRef]) -> list[LeaseLost | None]:
        """Finish messages. For each, in order, None or the error that its lease was lost."""
        _check_refs(refs)
        now = self._clock()
        done = await self._database.run(inbox.ack(refs, now))
        self.count_ends(done.values(), now)
        return [None if ref in done else _lease_lost(ref) for ref in refs]

    async def nack(self, refs: Sequence[LeaseRef], reason: str) -> list[LeaseLost | None]:
        """Return messages to the heads of their tiers, or fail those that were delivered too often."""
        _check_refs(refs)
        if not reason.strip():
            raise BadInput("reason", "is empty", "say in a few words why the message comes back")
        kept = storable(" ".join(reason.split())[:LONGEST_REASON])
        now = self._clock()
        back = await self._database.run(inbox.nack(refs, kept, self._most_deliveries(), now))
        for each in back.values():
            self._tally.count(LIFECYCLE_TRANSITION, each.queue, "leased", each.state)
        return [None if ref in back else _lease_lost(ref) for ref in refs]

    async def sweep(self) -> None:
        """Return messages whose leases expired; end those that waited too long."""
        now = self._clock()
        for queue, state in await self._database.run(inbox.return_expired(self._most_deliveries(), now)):
            self._tally.count(LIFECYCLE_TRANSITION, queue, "leased", state)
        for name in self._queues.names:
            policy = self._queues[name]
            while policy.auto_ack_after and (passed := await self._database.run(inbox.sweep(policy, now))):
                with span("queue.sweep", queue=name):
                    self._count_passed(passed, now)

    async def return_expired_periodically(self) -> None:
        if time.monotonic() - self._swept_at >= SWEEP_EVERY_S:
            self._swept_at = time.monotonic()
            await self.sweep()

    def _most_deliveries(self) -> dict[str, int]:
        return {name: self._queues[name].most_deliveries for name in self._queues.names}

    def _count_lease(self, leased: inbox.LeasedMessage, now: datetime) -> None:
        override = "true" if leased.starvation_override else "false"
        self._tally.count(DEQUEUE_BY_TIER, leased.tier, leased.queue, override)
        self._tally.count(LIFECYCLE_TRANSITION, leased.queue, "waiting", "leased")
        if leased.counted != leased.tier:
            self._report("message.promoted", leased.queue, leased.tier, now - leased.accepted_at)

    def _count_passed(self, passed: Iterable[inbox.EndedMessage], now: datetime) -> None:
        """Report a few messages singly; of the thousands that a summary may have, only the longest wait."""
        groups: defaultdict[tuple[str, str, str], list[timedelta]] = defaultdict(list)
        for each in passed:
            groups[each.queue, each.tier, each.state].append(now - each.accepted_at)
        for (queue, tier, state), waits in groups.items():
            self._tally.count(LIFECYCLE_TRANSITION, queue, "waiting", state, by=len(waits))
            if len(waits) > MOST_REPORTED_SINGLY:
                self._report(f"message.{state}", queue, tier, max(waits), len(waits))
                continue
            for wait in waits:
                self._report(f"message.{state}", queue, tier, wait)

    def count_ends(self, ends: Iterable[inbox.EndedMessage], now: datetime) -> None:
        for each in ends:
            self._tally.count(LIFECYCLE_TRANSITION, each.queue, "leased", each.state)
            self._tally.observe(PROCESS_LATENCY, _milliseconds(now - each.accepted_at), each.queue, each.tier)

    def _report(self, event: str, queue: str, tier: str, wait: timedelta, count: int = 1) -> None:
        self._tally.count(MESSAGE_EVENT, event, queue, tier, by=count)
        add_event(event, priority=tier, queue=queue, wait_ms=_milliseconds(wait), count=count)
        log.debug(event, queue=queue, priority=tier, wait_ms=_milliseconds(wait), count=count)


def _delivery(leased: inbox.LeasedMessage) -> Delivery:
    return Delivery(
        leased.id,
        leased.token,
        leased.until,
        leased.queue,
        leased.counted,
        leased.tier if leased.counted != leased.tier else None,
        leased.members,
        leased.member_count,
        leased.attempts,
        leased.accepted_at,
        from_json(leased.text),
    )


def _check_refs(refs: Sequence[LeaseRef]) -> None:
    if not 1 <= len(refs) <= MOST_AT_ONCE:
        raise BadInput("items", f"has {len(refs)} entries", f"name 1 to {MOST_AT_ONCE} messages")


def _lease_lost(ref: LeaseRef) -> LeaseLost:
    return LeaseLost(
        f"message {ref.message_id} is not held under this lease: it ended, the lease ran out, or it is someone else's; "
        "take it again with queue.next, and change nothing until then"
    )


def _milliseconds(span: timedelta) -> float:
    return max(0.0, span / timedelta(milliseconds=1))
