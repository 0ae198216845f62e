"""Retries of deferred mail: when they come, when they end, and when the sender gets a delay notice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

JITTER = 0.25
SHORTEST_WAIT = timedelta(seconds=5)
"""However soon a destination asks us to come back."""
MOST_SHORT_WAITS = 5
"""After so many attempts one that asks for less than the usual wait gets that: attempts must not become a loop."""


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The wait is `first` after the first attempt and doubles up to `longest`; after `give_up` there is no other."""

    first: timedelta = timedelta(minutes=1)
    longest: timedelta = timedelta(hours=4)
    give_up: timedelta = timedelta(days=5)
    report_delay: timedelta = timedelta(hours=4)

    def next_try(
        self, attempts: int, admitted_at: datetime, now: datetime, rng: Random, asked: timedelta | None = None
    ) -> datetime | None:
        """The time of the next attempt; None if it is given up. `asked` is how long the destination wants us to wait.

        The last attempt is made when the time is over, not long before.
        """
        end = admitted_at + self.give_up
        if now >= end:
            return None
        usual = self.first * 2 ** min(max(attempts, 1) - 1, 30)
        usual = min(usual, self.longest) * rng.uniform(1 - JITTER, 1 + JITTER)
        if asked is None:
            return max(min(now + usual, end), now + self.first)
        shortest = min(self.first, SHORTEST_WAIT) if attempts <= MOST_SHORT_WAITS else usual
        return max(min(now + max(asked, shortest), end), now + min(self.first, SHORTEST_WAIT))

    def is_delayed(self, admitted_at: datetime, now: datetime) -> bool:
        return now - admitted_at >= self.report_delay
