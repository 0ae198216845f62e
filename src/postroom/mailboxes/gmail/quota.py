"""Keeps one user's calls within Google's quota: decides when each call may be made, and how many run at once.

**The minute.** Google counts units per minute as calls arrive. A call takes its units when it is admitted, and returns
them a minute after its *answer*: whenever in between Google counted it, no minute of Google's ever exceeds the terms,
however long a request was in flight.

**Live, then steady, then bulk.** Within a use, first come, first served. Steady and bulk are admitted only while live
keeps its reserve free (half of it for steady, if bulk has spent the rest), and leave one of the concurrent slots free.
They spread their calls over the minute: units spent all at once come back all at once, and live that has spent its
reserve would wait for that moment; of units that come back one after the other, live takes the next. Only the first
half of a minute's allowance may steady spend at once, since few new messages are no reason to wait. So that bulk does
not wait forever beside a busy mailbox, one bulk call becomes due if none was admitted for two minutes, and then goes
first; even then bulk stays within its own allowance.

**Backing off.** The number of concurrent calls grows by one per round of answers, and is halved when Google reports a
rate limit. Then no call is made until Google's own waiting time is over, or one of ours that doubles, with jitter,
until a call succeeds. Calls already in flight at that time are not counted a second time. If the wait is longer than
`patience`, waiting callers get an error with the time in it, instead of holding a job's lease for an hour.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from random import Random
from typing import NamedTuple, Protocol, get_args

from postroom.core.errors import BadInput
from postroom.mailboxes.gmail.errors import QuotaExhausted, RateLimited
from postroom.mailboxes.gmail.terms import NEW_PROJECT, Terms, Use

MINUTE = 60.0
# Longer than the minute for which bulk waits anyway, once it has spent its allowance.
DUE_AFTER = 2 * MINUTE
START_AT_ONCE = 4.0
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 64.0
# A daily quota is checked again every hour, in case somebody has raised it.
LONGEST_HOLD = 3_600.0
JITTER = 0.1
# A timer may fire slightly too early; the next one is then set at least this far ahead.
TICK = 0.001
BY_URGENCY: tuple[Use, ...] = get_args(Use)
# When calls that go first wait, it is not known for how long.
BESIDE_OTHERS = 0.1
# Gmail limits sending separately from everything else: a user who may not send for hours may still read.
SENDING = frozenset({"messages.send", "drafts.send"})
PATIENCE = timedelta(seconds=90)


class QuotaAlarm(Protocol):
    def cancel(self) -> object: ...


@dataclass(eq=False)
class Ticket:
    """An admitted call."""

    call: str
    units: int
    use: Use
    admitted_at: float
    was_limited: bool = False
    got_through: bool = False
    """Whether part of a batch was answered."""


@dataclass(eq=False)
class _Waiter:
    call: str
    units: int
    use: Use
    since: float
    ticket: asyncio.Future[Ticket] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class _Last(NamedTuple):
    """When a use was last admitted, and for how many units."""

    at: float
    units: int


_NEVER = _Last(float("-inf"), 0)


class Spent:
    """Units of the last minute, and of calls in flight."""

    def __init__(self) -> None:
        self.total = 0
        self.by_use: dict[Use, int] = dict.fromkeys(BY_URGENCY, 0)
        self._answered: deque[tuple[float, Ticket]] = deque()

    def take(self, ticket: Ticket) -> None:
        self._add(ticket, ticket.units)

    def answered(self, ticket: Ticket, now: float) -> None:
        self._answered.append((now, ticket))

    def answered_ages(self, now: float) -> list[tuple[float, int]]:
        """How long ago each answer came, and its units."""
        return [(now - at, ticket.units) for at, ticket in self._answered]

    def of(self, uses: Iterable[Use]) -> int:
        """The units of these uses."""
        return sum(self.by_use[each] for each in uses)

    def forget_before(self, now: float) -> None:
        while self._answered and self._answered[0][0] + MINUTE <= now:
            ticket = self._answered.popleft()[1]
            self._add(ticket, -ticket.units)

    def next_return(self) -> float | None:
        """When the next units come back, as far as known."""
        return self._answered[0][0] + MINUTE if self._answered else None

    def room_at(self, uses: Collection[Use], most: int, now: float) -> float:
        """When these uses have spent at most so much, as far as is known; calls in flight may take longer."""
        total = self.of(uses)
        for at, ticket in self._answered:
            if total <= most:
                return now
            if ticket.use in uses:
                total, now = total - ticket.units, at + MINUTE
        return now if total <= most else now + BESIDE_OTHERS

    def _add(self, ticket: Ticket, units: int) -> None:
        self.total += units
        self.by_use[ticket.use] += units


class Quota:
    """One user's quota. The clock is monotonic; `call_later` is the event loop's own unless a test gives another."""

    def __init__(
        self,
        terms: Terms = NEW_PROJECT,
        *,
        rng: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], QuotaAlarm] | None = None,
        patience: timedelta = PATIENCE,
    ) -> None:
        self.terms = terms
        self._rng = rng or Random()  # noqa: S311 - jitter is no secret
        self._clock = clock
        self._call_later = call_later
        self._patience = patience.total_seconds()
        self._spent = Spent()
        self._waiting: dict[Use, deque[_Waiter]] = {use: deque() for use in BY_URGENCY}
        self._running = 0
        self._at_once = min(START_AT_ONCE, float(terms.most_at_once))
        self._held_until = 0.0
        self._hold: RateLimited | None = None
        self._slowed_at = float("-inf")
        self._troubles = 0
        self._last: dict[Use, _Last] = {}
        self._alarm: QuotaAlarm | None = None

    @property
    def at_once(self) -> int:
        """How many requests may run concurrently now."""
        return int(self._at_once)

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    def spent(self) -> int:
        """Units of the last minute, including calls in flight."""
        self._spent.forget_before(self._clock())
        return self._spent.total

    def spent_by_age(self, slot_s: float) -> list[int]:
        """The same, by how long ago the answer came: in the last so many seconds, in as many before, and so on."""
        now, slots = self._clock(), [0] * (int(MINUTE / slot_s) + 1)
        self._spent.forget_before(now)
        for age, units in self._spent.answered_ages(now):
            slots[min(int(max(age, 0.0) / slot_s), len(slots) - 1)] += units
        slots[0] += self._spent.total - sum(slots)
        return slots

    def recall(self, units: int, age: float) -> None:
        """Count units that another process spent so many seconds ago. The oldest must be given first."""
        ticket = Ticket("earlier", units, "steady", self._clock() - age)
        self._spent.take(ticket)
        self._spent.answered(ticket, ticket.admitted_at)

    def price(self, method: str) -> int:
        return self.terms.prices[method]

    @asynccontextmanager
    async def admitted(self, call: str, units: int, use: Use = "live") -> AsyncGenerator[Ticket]:
        """Wait until the call may be made; the block lasts until its answer is there.

        Raises RateLimited if Google has asked for a longer wait than `patience`.
        """
        if units > self.terms.allowance(use):
            remedy = f"ask for less at once: {use} may spend {self.terms.allowance(use)} units a minute"
            raise BadInput("units", f"{call} would cost {units}", remedy)
        ticket = await self._admission(call, units, use)
        try:
            yield ticket
        finally:
            self._finish(ticket)

    async def is_ready(self, units: int, use: Use, within_s: float) -> bool:
        """Wait until such a call would be admitted at once, at most so long; return whether it would."""
        end = self._clock() + within_s
        while (wait := self._ready_in(units, use)) > 0:
            if (left := end - self._clock()) <= 0:
                return False
            waited = asyncio.Event()
            alarm = self._later(max(min(wait, left), TICK), waited.set)
            try:
                await waited.wait()
            finally:
                alarm.cancel()
        return True

    def _ready_in(self, units: int, use: Use) -> float:
        """In how many seconds such a call would be admitted, as far as is known now; 0 if at once."""
        now = self._clock()
        self._spent.forget_before(now)
        if now < self._held_until:
            return self._held_until - now
        if self._waiting["live"] or (use != "live" and self._waiting["steady"]):
            return BESIDE_OTHERS
        if use != "live" and (left := self._next_at(use, units) - now) > 0:
            return left
        return max(self._spent.room_at(uses, most - units, now) - now for uses, most in self._limits(use))

    def limited(self, ticket: Ticket, error: RateLimited) -> None:
        """Google answered this call with a rate limit."""
        now = self._clock()
        is_news = not ticket.was_limited and ticket.admitted_at >= self._slowed_at
        ticket.was_limited = True
        if is_news:
            self._slowed_at = now
            self._at_once = max(1.0, self._at_once / 2)
            self._troubles = 1 if ticket.got_through else self._troubles + 1
        elif not error.retry_after:
            return
        self._held_until = max(self._held_until, now + self._pause(ticket.call, error))
        self._hold = error
        self._fail_long_waits(now)

    async def _admission(self, call: str, units: int, use: Use) -> Ticket:
        now = self._clock()
        if (left := self._held_until - now) > self._patience:
            raise self._wait_error(call, left)
        waiter = _Waiter(call, units, use, now)
        self._waiting[use].append(waiter)
        self._admit_all()
        try:
            return await waiter.ticket
        except asyncio.CancelledError:
            if waiter.ticket.done() and not waiter.ticket.cancelled() and waiter.ticket.exception() is None:
                self._give_back(waiter.ticket.result())
            elif waiter in self._waiting[use]:
                self._waiting[use].remove(waiter)
                self._admit_all()
            raise

    def _finish(self, ticket: Ticket) -> None:
        self._running -= 1
        self._spent.answered(ticket, self._clock())
        if not ticket.was_limited:
            self._at_once = min(float(self.terms.most_at_once), self._at_once + 1 / self._at_once)
            if ticket.admitted_at >= self._slowed_at:
                self._troubles = 0
        self._admit_all()

    def _give_back(self, ticket: Ticket) -> None:
        """Return the units of a call that was admitted but never sent."""
        self._running -= 1
        self._spent.take(replace(ticket, units=-ticket.units))
        self._admit_all()

    def _admit_all(self) -> None:
        now = self._clock()
        self._spent.forget_before(now)
        while (waiter := self._next(now)) is not None:
            self._waiting[waiter.use].popleft()
            ticket = Ticket(waiter.call, waiter.units, waiter.use, now)
            self._running += 1
            self._spent.take(ticket)
            self._last[waiter.use] = _Last(now, waiter.units)
            waiter.ticket.set_result(ticket)
        self._set_alarm(now)

    def _next(self, now: float) -> _Waiter | None:
        """The waiter to admit now. The first in line is never overtaken by one that needs less."""
        live, steady, bulk = (self._waiting[use] for use in BY_URGENCY)
        for line in (live, steady, bulk):
            while line and line[0].ticket.done():
                # Canceled, but its task has not yet left the line.
                line.popleft()
        if now < self._held_until:
            return None
        if bulk and self._is_due(bulk[0], now):
            return bulk[0] if self._has_room(bulk[0].units, "live") else None
        if live:
            return live[0] if self._has_room(live[0].units, "live") else None
        if patient := steady or bulk:
            first = patient[0]
            fits = self._has_room(first.units, first.use) and now >= self._next_at(first.use, first.units)
            return first if fits else None
        return None

    def _has_room(self, units: int, use: Use) -> bool:
        places = self.at_once if use == "live" else max(1, self.at_once - 1)
        return self._running < places and all(self._spent.of(uses) + units <= most for uses, most in self._limits(use))

    def _limits(self, use: Use) -> list[tuple[Collection[Use], int]]:
        """The most that some uses together may have spent after a call of this one."""
        per_minute, reserve = self.terms.per_minute, self.terms.reserve
        match use:
            case "live":
                return [(BY_URGENCY, per_minute)]
            case "steady":
                # Bulk that has spent all it may leaves room for steady, too.
                return [(("live", "steady"), per_minute - reserve), (BY_URGENCY, per_minute - reserve // 2)]
            case "bulk":
                return [(BY_URGENCY, per_minute - reserve)]

    def _next_at(self, use: Use, units: int) -> float:
        """When the last call of a use has used up its time, at the pace that spends in a minute what live leaves."""
        last, allowance = self._last.get(use, _NEVER), self.terms.allowance(use)
        if use == "steady" and self._spent.of(("live", "steady")) + units <= allowance // 2:
            return last.at
        before = self._spent.of(BY_URGENCY[: BY_URGENCY.index(use)])
        left = max(allowance - before, last.units, 1)
        return last.at + MINUTE * last.units / left

    def _is_due(self, waiter: _Waiter, now: float) -> bool:
        """A bulk call that has waited too long, within the allowance of bulk."""
        fits = self._spent.by_use["bulk"] + waiter.units <= self.terms.allowance("bulk")
        return fits and now >= self._due_at(waiter)

    def _due_at(self, waiter: _Waiter) -> float:
        return max(waiter.since, self._last.get("bulk", _NEVER).at) + DUE_AFTER

    def _pause(self, call: str, error: RateLimited) -> float:
        """How long to pause: Google's time and a little more, or ours, doubled with every failure in a row."""
        if error.retry_after:
            longest = LONGEST_BACKOFF if call in SENDING else LONGEST_HOLD
            return min(longest, error.retry_after.total_seconds()) * (1 + self._rng.uniform(0, JITTER))
        backoff = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(self._troubles - 1, 16))
        return backoff * self._rng.uniform(0.5, 1)

    def _fail_long_waits(self, now: float) -> None:
        left = self._held_until - now
        if left <= self._patience:
            return
        for line in self._waiting.values():
            while line:
                waiter = line.popleft()
                if not waiter.ticket.done():
                    waiter.ticket.set_exception(self._wait_error(waiter.call, left))

    def _wait_error(self, call: str, left: float) -> RateLimited:
        kind = QuotaExhausted if isinstance(self._hold, QuotaExhausted) else RateLimited
        reason = self._hold.reason if self._hold else "too many requests"
        return kind(call, reason, timedelta(seconds=left))

    def _set_alarm(self, now: float) -> None:
        """Check again when something changes by itself: a pause ends, units return, or bulk may continue or becomes
        due.
        """
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        moments = [self._held_until, self._spent.next_return()]
        for line in (self._waiting["steady"], self._waiting["bulk"]):
            moments += [self._next_at(each.use, each.units) for each in islice(line, 1)]
        moments += [self._due_at(each) for each in islice(self._waiting["bulk"], 1)]
        coming = [moment for moment in moments if moment is not None and moment > now]
        if self.waiting and coming:
            self._alarm = self._later(max(min(coming) - now, TICK), self._on_alarm)

    def _later(self, delay: float, callback: Callable[[], None]) -> QuotaAlarm:
        return (self._call_later or asyncio.get_running_loop().call_later)(delay, callback)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._admit_all()
