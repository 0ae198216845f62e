"""When a failed job is tried again: exponential backoff with jitter, unless the server named a time."""

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
    """How often a job type is tried, and how the pauses between grow."""

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
    """The server's own Retry-After wins over our backoff; a negative one means at once."""
    if after is not None:
        return max(after, timedelta(0))
    return policy.delay(attempts, rng)


DEFAULT = RetryPolicy()
# Long enough for a provider of models that is away for an hour or two.
CLASSIFY = RetryPolicy(max_attempts=40)
# Nobody else brings snoozed mail back: after a day without success it is tried hourly, for more than a year.
WAKING = RetryPolicy(max_attempts=10_000, base=timedelta(seconds=5), cap=timedelta(hours=1))
GMAIL = RetryPolicy(max_attempts=8, base=timedelta(seconds=5), cap=timedelta(seconds=900))
