"""Google's quota: every method has a price in units, with limits per user, per project and per day.

Units are counted even without a limit, so that a test can check a client's use of them.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from postroom_sandbox.methods import PRICES
from postroom_sandbox.refusal import Refusal

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

_METRIC = "Quota exceeded for quota metric 'Queries' and limit '{}' of service 'gmail.googleapis.com'"


@dataclass(frozen=True)
class Limits:
    """Limits in units; None for no limit. `user_refusal` is the form of the refusal for a user's limit: 403 or
    429 with a time to retry at. Google's guide has `userRateLimitExceeded` for the first, but this is what it sends."""

    per_user_minute: int | None = None
    per_project_minute: int | None = None
    per_day: int | None = None
    concurrent: int | None = None
    user_refusal: Literal["403", "429"] = "403"
    prices: Mapping[str, int] = field(default_factory=lambda: dict(PRICES))


# The quota of projects created since May 2026.
NEW_PROJECT = Limits(per_user_minute=6_000, per_project_minute=1_200_000)


class _Spent:
    """Units spent within a sliding window."""

    def __init__(self, span: timedelta) -> None:
        self._span = span
        self._entries: deque[tuple[datetime, int]] = deque()
        self._total = 0
        self.most = 0

    def at(self, now: datetime) -> int:
        while self._entries and self._entries[0][0] <= now - self._span:
            self._total -= self._entries.popleft()[1]
        return self._total

    def add(self, now: datetime, units: int) -> None:
        self._entries.append((now, units))
        self._total += units
        self.most = max(self.most, self.at(now))

    def free_at(self, now: datetime, room: int) -> datetime:
        """When at most `room` units will be in the window."""
        total = self.at(now)
        for when, units in self._entries:
            if total <= room:
                break
            total -= units
            now = when + self._span
        return now


@dataclass
class Counters:
    """Counts since the last reset. `units` counts only calls that were charged."""

    calls: Counter[str] = field(default_factory=Counter[str])
    units: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    answers: Counter[int] = field(default_factory=Counter[int])
    batches: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": dict(self.calls),
            "units": dict(self.units),
            "refused": dict(self.refused),
            "answers": {str(code): number for code, number in self.answers.items()},
            "batches": self.batches,
            "totalCalls": self.calls.total(),
            "totalUnits": self.units.total(),
        }


class Quota:
    """Charges calls, and refuses those beyond the limits."""

    def __init__(self, clock: Callable[[], datetime], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.counters = Counters()
        self._running: Counter[str] = Counter()
        self._clock = clock
        self._users: dict[str, _Spent] = {}
        self._project = _Spent(MINUTE)
        self._day = _Spent(DAY)

    @contextmanager
    def running(self, user: str, method: str, beside: int = 0) -> Generator[None]:
        """Count a call while it runs, along with `beside` others of the same batch."""
        self.counters.calls[method] += 1
        self._running[user] += 1 + beside
        try:
            yield
        except Refusal as refusal:
            self.counters.refused[refusal.reason] += 1
            raise
        finally:
            self._running[user] -= 1 + beside

    def charge(self, user: str, method: str) -> None:
        """Charge the price of a call, or refuse it, which is free."""
        now, price = self._clock(), self.limits.prices.get(method, 1)
        self._check(user, price, now)
        self.counters.units[method] += price
        for spent in (self._of(user), self._project, self._day):
            spent.add(now, price)

    def spent(self, user: str) -> int:
        """Units spent in the last minute."""
        return self._of(user).at(self._clock())

    def most_in_a_minute(self, user: str) -> int:
        """The most units spent in any sliding minute."""
        return self._of(user).most

    def reset(self) -> None:
        self.counters = Counters()
        self._users.clear()
        self._project, self._day = _Spent(MINUTE), _Spent(DAY)

    def _of(self, user: str) -> _Spent:
        return self._users.setdefault(user, _Spent(MINUTE))

    def _check(self, user: str, price: int, now: datetime) -> None:
        limits, mine = self.limits, self._of(user)
        if limits.concurrent is not None and self._running[user] > limits.concurrent:
            raise Refusal(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", "Too many concurrent requests for user.")
        if limits.per_day is not None and self._day.at(now) + price > limits.per_day:
            raise _exceeded(403, "dailyLimitExceeded", "Queries per day")
        if limits.per_project_minute is not None and self._project.at(now) + price > limits.per_project_minute:
            raise _exceeded(429, "rateLimitExceeded", "Queries per minute")
        if limits.per_user_minute is not None and mine.at(now) + price > limits.per_user_minute:
            if limits.user_refusal == "403":
                raise _exceeded(403, "rateLimitExceeded", "Queries per minute per user")
            until = mine.free_at(now, limits.per_user_minute - price)
            moment = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            message = f"User-rate limit exceeded.  Retry after {moment}"
            raise Refusal(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", message, domain="usageLimits")


def _exceeded(code: int, reason: str, limit: str) -> Refusal:
    status = "RESOURCE_EXHAUSTED" if code == 429 else "PERMISSION_DENIED"
    message = f"{_METRIC.format(limit)} for consumer 'project_number:1'."
    return Refusal(code, status, reason, message, domain="usageLimits", detail="RATE_LIMIT_EXCEEDED")
