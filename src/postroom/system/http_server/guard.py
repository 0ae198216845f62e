"""The connections of one listener: admits, counts and evicts them, and enforces their deadlines.

When there is no room for a new connection, the one that has waited longest without a complete request is evicted. So
any number of slow clients cannot keep out a client that sends its request at once. A new connection is refused only
when every open one has a request that is being answered.

One timer checks the deadlines of all connections, several times within the shortest deadline. Time in which the event
loop was blocked does not count: data that has arrived by then is read first.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable
from typing import Protocol

import structlog

from postroom.system.http_server.limits import ConnectionLimits, Refusal

log = structlog.stdlib.get_logger(__name__)

LOG_EVERY_S = 60.0
# Keep reading from a refused connection for this long, so that its client can read the answer.
LINGER_S = 2.0
MOST_LINGERING = 128


class Guarded(Protocol):
    """A connection as the guard sees it."""

    address: str

    def eviction_rank(self) -> tuple[int, float] | None:
        """The rank for eviction, the smallest first; None while its request is being answered."""
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
        self._blocked_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._refused: Counter[str] = Counter()
        self._logged_at: float | None = None

    def __len__(self) -> int:
        return len(self._open)

    def now(self) -> float:
        """Monotonic seconds, without the time in which the event loop was blocked."""
        return asyncio.get_running_loop().time() - self._blocked_s

    def admit(self, connection: Guarded) -> Refusal | None:
        """Admit the connection, evicting another if needed; or return why it is refused."""
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
        """Stop counting a refused connection, and abort it if it does not close soon."""
        self.remove(connection)
        self._lingering[connection] = self.now() + LINGER_S
        while len(self._lingering) > MOST_LINGERING:
            oldest = next(iter(self._lingering))
            del self._lingering[oldest]
            oldest.abort()
        self._keep_checking()

    def count(self, refusal: Refusal) -> None:
        """Count a refusal. They are logged in one line a minute."""
        self._on_refused(refusal.reason)
        self._refused[refusal.reason] += 1
        now = self.now()
        if self._logged_at is None or now - self._logged_at >= LOG_EVERY_S:
            log.warning("http.refused", connections=len(self._open), **self._refused)
            self._refused.clear()
            self._logged_at = now

    def close(self) -> None:
        """Stop checking. The server closes the connections itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_room(self, among: set[Guarded]) -> bool:
        candidates = [(rank, id(each), each) for each in among if (rank := each.eviction_rank()) is not None]
        if not candidates:
            return False
        victim = min(candidates)[2]
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
            self._blocked_s += late
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
    """The key under which connections are counted: the IPv4 address or the IPv6 /64; empty if unknown."""
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
