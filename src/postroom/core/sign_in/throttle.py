"""Waits after failed sign-ins, per name and per address: of people on the pages, and of senders over SMTP.

A few tries are free. Then each failure doubles the wait, up to the longest, and while it lasts no password is tried,
right or wrong, so that guessing tells nothing. It makes no difference whether there is anybody of that name. From an
address that has signed in with a name before, only the count of that address matters: strangers cannot lock them out.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple, Self

MOST_KEPT = 50_000


class SignInLimits(NamedTuple):
    """Failures before the first wait, the first and the longest wait, and after how long all is forgotten."""

    of_name: int = 5
    of_address: int = 20
    first_wait_s: float = 60.0
    longest_wait_s: float = 3600.0
    forget_s: float = 86_400.0

    @classmethod
    def of_window(cls, of_name: int, of_address: int, window_s: float) -> Self:
        """Return limits without growth: after so many failures, wait until there was none for the window."""
        return cls(of_name, of_address, window_s, window_s, window_s)


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class SignInThrottle:
    """Counts of one process; times are monotonic seconds."""

    def __init__(self, limits: SignInLimits | None = None) -> None:
        self._limits = limits or SignInLimits()
        self._addresses: OrderedDict[str, _Failures] = OrderedDict()
        self._names: OrderedDict[str, _Failures] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait_s(self, name: str, address: str, now: float) -> float:
        """How long no sign-in of this name is tried from this address; 0 if one may be tried now."""
        waits = [self._wait(self._addresses, address, self._limits.of_address, now)]
        if (name, address) not in self._known:
            waits.append(self._wait(self._names, name, self._limits.of_name, now))
        return max(waits)

    def tries_left(self, name: str, address: str, now: float) -> int:
        """How many more failures there may be before the next wait."""
        left = [self._limits.of_address - self._count(self._addresses, address, now)]
        if (name, address) not in self._known:
            left.append(self._limits.of_name - self._count(self._names, name, now))
        return max(0, min(left))

    def tries(self, name: str, address: str, now: float) -> None:
        """Count a try as failed: before it is made, if many at the same time must not get around the limits."""
        for kept, key in ((self._addresses, address), (self._names, name)):
            kept[key] = _Failures(self._count(kept, key, now) + 1, now)
            kept.move_to_end(key)
            while len(kept) > MOST_KEPT:
                kept.popitem(last=False)

    def succeeded(self, name: str, address: str) -> None:
        """Forget the failures of the name. Those of the address stay, but for this try: a guesser may be known too."""
        self._names.pop(name, None)
        if (failures := self._addresses.get(address)) is not None:
            failures.count -= 1
        self.recognise(name, address)

    def recognise(self, name: str, address: str) -> None:
        """Remember that the name has signed in from the address. Its failures elsewhere stay counted."""
        self._known[name, address] = None
        self._known.move_to_end((name, address))
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)

    def _wait(self, kept: OrderedDict[str, _Failures], key: str, free: int, now: float) -> float:
        over = self._count(kept, key, now) - free
        if over < 0:
            return 0.0
        # Bounded before it is raised: the count may be large.
        wait = min(self._limits.longest_wait_s, self._limits.first_wait_s * 2.0 ** min(over, 30))
        return max(0.0, kept[key].last + wait - now)

    def _count(self, kept: OrderedDict[str, _Failures], key: str, now: float) -> int:
        found = kept.get(key)
        if found is None:
            return 0
        if now - found.last >= self._limits.forget_s:
            del kept[key]
            return 0
        return found.count
