"""The limits of the lanes, which adapt to the outbound queue. `delivery_health.py` judges whether mail arrives.

The multiplier is 1, and times

    0.7   with more than 80 % of the largest queue waiting
    0.5   with a mail that waits for more than 30 minutes
    1.5   with less than 30 % of the largest queue waiting

between 0.1 and 2. A limit bounds its lane only while other lanes have mail too: capacity is never left idle.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from postroom.core.outbound.priority import SenderLane

OLD = timedelta(minutes=30)
LOWEST, HIGHEST = 0.1, 2.0
_SHARES: Mapping[SenderLane, float] = {"high": 1.5, "normal": 1.0, "low": 0.5, "throttled": 0.1}


class QueueHealth(NamedTuple):
    """The number of waiting mails, the age of the oldest, and the resulting limits."""

    queued: int
    oldest_wait: timedelta
    multiplier: float


def queue_health(queued: int, oldest_wait: timedelta, max_queue: int) -> QueueHealth:
    """Judge a queue; `max_queue` is the most that may be in delivery at the same time."""
    multiplier = 1.0
    if is_long(queued, max_queue):
        multiplier *= 0.7
    if oldest_wait > OLD:
        multiplier *= 0.5
    if 10 * queued < 3 * max_queue:
        multiplier *= 1.5
    return QueueHealth(queued, oldest_wait, max(LOWEST, min(HIGHEST, multiplier)))


def is_long(queued: int, max_queue: int) -> bool:
    return 10 * queued > 8 * max_queue


def adaptive_limits(health: QueueHealth, max_queue: int) -> dict[SenderLane, int]:
    """How many mails of each lane may be in delivery at the same time while lanes compete."""
    whole = max_queue * health.multiplier
    return {lane: max(1, int(whole * share)) for lane, share in _SHARES.items()}
