"""The lanes of outgoing mail, and the share of the capacity that each of them has at a moment.

A sender's priority is a lane; mail that was tried before has one of its own, with a reserved share, so that new mail
cannot strand it. `fifo` holds the mail of tenants that are not on the fair queue yet. A share is a lane's part while
all lanes have work. The shares of idle lanes are lent to the others, by multipliers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Lane = Literal["high", "normal", "low", "throttled", "retry", "fifo"]
LANES: tuple[Lane, ...] = get_args(Lane)

PRIORITY_SHARES: Mapping[Lane, float] = {"high": 0.40, "normal": 0.40, "low": 0.15, "throttled": 0.05}
RETRY_SHARE = 0.10
DEFAULT_MULTIPLIERS = (2.0, 1.0, 0.5, 0.1)
LEAST = 0.01
"""The share of a lane that has none of its own: mail that was queued before the shares were changed."""


@dataclass(frozen=True, slots=True)
class LanePolicy:
    """Shares add up to 1. Multipliers say who gets more of what idle lanes leave."""

    shares: Mapping[Lane, float]
    multipliers: Mapping[Lane, float]

    @classmethod
    def of(cls, multipliers: tuple[float, ...] = DEFAULT_MULTIPLIERS, fair: float = 1.0) -> "LanePolicy":
        """`multipliers` are those of high, normal, low and throttled; `fair` is the part of the tenants that are on the
        fair queue. Retries are lent to like normal mail."""
        shares: dict[Lane, float] = {lane: share * (1 - RETRY_SHARE) * fair for lane, share in PRIORITY_SHARES.items()}
        shares["retry"] = RETRY_SHARE * fair
        shares["fifo"] = 1 - fair
        lent: dict[Lane, float] = dict(zip(PRIORITY_SHARES, multipliers, strict=True))
        return cls(shares, {**lent, "retry": lent["normal"], "fifo": lent["normal"]})

    def weights(self, busy: Iterable[Lane]) -> dict[Lane, float]:
        """The weight of each busy lane: its share, and its part of the unused shares. Together about 1."""
        lanes = tuple(busy)
        idle = 1 - sum(self.shares[lane] for lane in lanes)
        lent = sum(self.multipliers[lane] for lane in lanes)
        return {lane: max(LEAST, self.shares[lane] + idle * self.multipliers[lane] / lent) for lane in lanes}
