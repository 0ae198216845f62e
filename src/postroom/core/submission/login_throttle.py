"""Failed logins: after a few, from one address or for one user, no password is tried any more for a while.

What is refused then is refused whether the password is right or not, so that guessing tells nothing. A user's own
address, from which they have logged in before, stays open: strangers who guess cannot lock the user out.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

MOST_KEPT = 50_000


class LoginLimits(NamedTuple):
    """Failures within `window_s` after which logins are refused, until none was made for as long."""

    of_address: int = 20
    of_user: int = 10
    window_s: float = 600.0


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class LoginThrottle:
    """Counts of one process; times are monotonic seconds."""

    def __init__(self, limits: LoginLimits) -> None:
        self._limits = limits
        self._addresses: OrderedDict[str, _Failures] = OrderedDict()
        self._users: OrderedDict[str, _Failures] = OrderedDict()
        self._own: OrderedDict[tuple[str, str], None] = OrderedDict()

    def is_closed(self, user: str, address: str, now: float) -> bool:
        """Whether a login of this user from this address is refused untried."""
        if self._recent(self._addresses, address, now) >= self._limits.of_address:
            return True
        if (user, address) in self._own:
            return False
        return self._recent(self._users, user, now) >= self._limits.of_user

    def failed(self, user: str, address: str, now: float) -> None:
        for kept, name in ((self._addresses, address), (self._users, user)):
            kept[name] = _Failures(self._recent(kept, name, now) + 1, now)
            kept.move_to_end(name)
            while len(kept) > MOST_KEPT:
                kept.popitem(last=False)

    def succeeded(self, user: str, address: str) -> None:
        self._own[user, address] = None
        self._own.move_to_end((user, address))
        while len(self._own) > MOST_KEPT:
            self._own.popitem(last=False)

    def _recent(self, kept: OrderedDict[str, _Failures], name: str, now: float) -> int:
        found = kept.get(name)
        if found is None:
            return 0
        if now - found.last >= self._limits.window_s:
            del kept[name]
            return 0
        return found.count
