"""How many transactions one destination has at the same time, by how it takes them.

The window grows by one when as many transactions as it allows have succeeded, and is halved when the destination asks
us to slow down (421, a 4xx that says so, a refused connection); by a third less when it has become slow.
Transactions that began before a cut say nothing new, and do not cut again. A destination that refuses even a single
transaction is left alone, for twice as long each time.
"""

from dataclasses import dataclass, field
from typing import Literal

Feedback = Literal["taken", "congested", "neither"]
"""`neither`: refused for a reason of its own, such as an unknown recipient, which says nothing about the pace."""

# Before anything is known about a destination.
USUAL_S = 0.5
_SMOOTHING = 0.2


@dataclass(frozen=True, slots=True)
class PaceLimits:
    first: int = 5
    most: int = 20
    slow_s: float = 30.0
    first_rest_s: float = 1.0
    longest_rest_s: float = 300.0


@dataclass(slots=True)
class DestinationPace:
    """The window of one destination. Times are seconds of one clock."""

    limits: PaceLimits
    window: float = 0.0
    usual_s: float = USUAL_S
    cut_at: float = float("-inf")
    rest_s: float = 0.0
    rests_until: float = float("-inf")
    full_at: float = float("-inf")
    """When the window was last used up: one that is not needed does not grow."""
    running: list[float] = field(default_factory=list[float])
    """When each running transaction began."""

    def __post_init__(self) -> None:
        self.window = self.window or float(self.limits.first)

    @property
    def is_ordinary(self) -> bool:
        """Whether nothing would be lost by forgetting it."""
        return not self.running and self.rest_s == 0 and self.window >= self.limits.first

    def may_begin(self, now: float) -> bool:
        return len(self.running) < int(self.window) and now >= self.rests_until

    def begin(self, now: float) -> None:
        self.running.append(now)
        if len(self.running) >= int(self.window):
            self.full_at = now

    def end(self, began: float, now: float, feedback: Feedback) -> None:
        self.running.remove(began)
        took = now - began
        self.usual_s += _SMOOTHING * (took - self.usual_s)
        is_news = began >= self.cut_at
        match feedback:
            case "congested" if is_news:
                if self.window < 2:
                    self.rest_s = min(max(2 * self.rest_s, self.limits.first_rest_s), self.limits.longest_rest_s)
                    self.rests_until = now + self.rest_s
                self._cut(1 / 2, now)
            case "taken" if took > self.limits.slow_s:
                self.rest_s = 0.0
                if is_news:
                    self._cut(2 / 3, now)
            case "taken":
                self.rest_s = 0.0
                if self.full_at >= began:
                    self.window = min(self.window + 1 / self.window, float(self.limits.most))
            case _:
                pass

    def wait(self, ahead: int, now: float) -> float:
        """The estimated wait behind so many others, in seconds."""
        usual = self.usual_s
        if self.running:
            usual = max(usual, now - sum(self.running) / len(self.running))
        return max((ahead + 1) * usual / int(self.window), self.rests_until - now)

    def _cut(self, share: float, now: float) -> None:
        self.window = max(self.window * share, 1.0)
        self.cut_at = now
