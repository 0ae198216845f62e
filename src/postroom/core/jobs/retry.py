"""When a failed job is retried: exponential backoff with jitter, unless the server named a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from random import Random

JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a job type is tried, and how the pauses between attempts grow."""

    max_attempts: int = 5
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(seconds=300)

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise BadInput("max_attempts", f"{self.max_attempts} is not positive", "use 1 or more")

    def delay(self, attempts: int, rng: Random) -> timedelta:
        """The pause after the `attempts`-th attempt: min(cap, base · 2^attempts) ± 25 %."""
        doublings = min(attempts, 32)
        pause = min(self.cap, self.base * 2**doublings)
        return pause * rng.uniform(1 - JITTER, 1 + JITTER)


def next_delay(policy: RetryPolicy, attempts: int, after: timedelta | None, rng: Random) -> timedelta:
    """The pause before the next attempt: the server's Retry-After if given (if negative, none), else our backoff."""
    if after is not None:
        return max(after, timedelta(0))
    return policy.delay(attempts, rng)


DEFAULT = RetryPolicy()
# Enough attempts for a model provider that is down for an hour or two.
CLASSIFY = RetryPolicy(max_attempts=40)
# Nothing else brings snoozed mail back: retries soon become hourly and continue for more than a year.
WAKING = RetryPolicy(max_attempts=10_000, base=timedelta(seconds=5), cap=timedelta(hours=1))
GMAIL = RetryPolicy(max_attempts=8, base=timedelta(seconds=5), cap=timedelta(seconds=900))
