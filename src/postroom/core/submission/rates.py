"""How fast a sender may submit: a bucket for each, which holds a minute's worth and fills as time passes."""

from collections import OrderedDict

MOST_KEPT = 50_000


class Rates:
    """Buckets of one process; times are monotonic seconds."""

    def __init__(self, per_minute: int) -> None:
        self._most = float(per_minute)
        self._buckets: OrderedDict[int, tuple[float, float]] = OrderedDict()

    def take(self, sender_id: int, now: float) -> float:
        """Take one message out of the bucket: 0, or how many seconds are to be waited if it is empty."""
        level, then = self._buckets.get(sender_id, (self._most, now))
        level = min(self._most, level + max(0.0, now - then) * self._most / 60)
        if level < 1:
            return (1 - level) * 60 / self._most
        self._buckets[sender_id] = level - 1, now
        self._buckets.move_to_end(sender_id)
        while len(self._buckets) > MOST_KEPT:
            self._buckets.popitem(last=False)
        return 0.0
