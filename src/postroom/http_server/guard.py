"""All connections of one listener: how many there are, from where, and which of them have waited too long.

When there is no room for a new connection, the one that has waited longest without a whole request makes way for it.
So a crowd of slow clients costs a ready client nothing: it is served, and one of the crowd is not. Only when every
connection has a request that is being answered is a new one refused.

Deadlines are checked for all connections at once, a few times within the shortest of them. While the event loop itself
stands still nobody's time runs: what has arrived by then is read before it is judged.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable
from typing import Protocol

import structlog

from postroom.http_server.limits import ConnectionLimits, Refusal

log = structlog.stdlib.get_logger(__name__)

TELL_EVERY_S = 60.0
# A refused connection is read from for this long, so that its client gets to see the answer.
LINGER_S = 2.0
MOST_LINGERING = 128


class Guarded(Protocol):
    """A connection as the guard sees it."""

    address: str

    def makes_way(self) -> tuple[int, float] | None:
        """How readily it makes way for another, the smallest first; None while its request is being answered."""
        ...

    def check_deadlines(self, now: float) -> None: ...

    def evict(self) -> None: ...

    def abort(self) -> None: ...


class ConnectionGuard:
    """Admits connections and ends overdue ones."""

    def __init__(self, limits: ConnectionLimits, on_refused: Callable[[str], None] = lambda _reason: None) -> None:
        self.limits = limits
        self._on_refused = on_refused
        self._open: set[Guarded] = set()
        self._by_address: dict[str, set[Guarded]] = {}
        self._lingering: dict[Guarded, float] = {}
        self._stood_still = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._refused: Counter[str] = Counter()
        self._told_at: float | None = None

    def __len__(self) -> int:
        return len(self._open)

    def now(self) -> float:
        """Monotonic seconds in which the event loop was running."""
        return asyncio.get_running_loop().time() - self._stood_still

    def admit(self, connection: Guarded) -> Refusal | None:
        """Counts the connection in, after another made way where that is needed; or says why it cannot come in."""
        same = self._by_address.get(connection.address, set())
        is_full = len(self._open) >= self.limits.max_connections
        if connection.address and len(same) >= self.limits.max_per_address and not self._make_room(same):
            return Refusal.CROWDED if is_full else Refusal.ADDRESS_CROWDED
        if len(self._open) >= self.limits.max_connections and not self._make_room(self._open):
            return Refusal.CROWDED
        self._open.add(connection)
        self._by_address.setdefault(connection.address, set()).add(connection)
        self._keep_checking()
        return None

    def remove(self, connection: Guarded) -> None:
        self._lingering.pop(connection, None)
        self._open.discard(connection)
        same = self._by_address.get(connection.address)
        if same is not None:
            same.discard(connection)
            if not same:
                del self._by_address[connection.address]

    def linger(self, connection: Guarded) -> None:
        """The connection was refused and no longer counts; it is aborted if it does not end soon."""
        self.remove(connection)
        self._lingering[connection] = self.now() + LINGER_S
        while len(self._lingering) > MOST_LINGERING:
            oldest = next(iter(self._lingering))
            del self._lingering[oldest]
            oldest.abort()
        self._keep_checking()

    def count(self, refusal: Refusal) -> None:
        """Counts a refusal; the log has them all, in one line a minute."""
        self._on_refused(refusal.reason)
        self._refused[refusal.reason] += 1
        now = self.now()
        if self._told_at is None or now - self._told_at >= TELL_EVERY_S:
            log.warning("http.refused", connections=len(self._open), **self._refused)
            self._refused.clear()
            self._told_at = now

    def close(self) -> None:
        """Stops checking. The server ends the connections itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_room(self, among: set[Guarded]) -> bool:
        ready = [(rank, id(each), each) for each in among if (rank := each.makes_way()) is not None]
        if not ready:
            return False
        victim = min(ready)[2]
        self.remove(victim)
        victim.evict()
        return True

    def _keep_checking(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            every = self.limits.check_every_s
            self._timer = loop.call_later(every, self._check, loop.time() + every)

    def _check(self, due: float) -> None:
        self._timer = None
        late = asyncio.get_running_loop().time() - due
        if late > self.limits.check_every_s:
            self._stood_still += late
        now = self.now()
        for each in tuple(self._open):
            each.check_deadlines(now)
        for each, until in tuple(self._lingering.items()):
            if now >= until:
                del self._lingering[each]
                each.abort()
        if self._open or self._lingering:
            self._keep_checking()


def address_key(client: tuple[str, int] | None) -> str:
    """What counts as one address: an IPv4 address, however it is spelled, or the /64 of an IPv6 one; empty for none."""
    if client is None or not client[0]:
        return ""
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return client[0]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
