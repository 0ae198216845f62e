"""The measures of a simulation, taken while it goes on and in bounded memory.

A tenant's *fair share* is what it would have got, while its mail waited, if all slots served all tenants at the same
time by their weights (generalised processor sharing). *Jain* and *Gini* are over the part of its fair share that each
tenant got, of which more than all of it counts as all: under a fair order Jain is about 1 and Gini about 0.
The *largest share* is what one tenant got of the mail that began while others waited too. A *pause* is a time in which
a tenant's mail waits and none of it begins.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from math import log2

from postroom_simulator.arrivals import SimulatedMail, SimulatedTenant

_SHORTEST_S = 0.001
_STEPS = 32
"""Buckets for each doubling: a quantile is exact to 2 %."""


class Waits:
    """The distribution of times."""

    __slots__ = ("count", "counts", "longest")

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.count = 0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.counts[int(log2(seconds / _SHORTEST_S) * _STEPS) + 1 if seconds > _SHORTEST_S else 0] += 1
        if seconds > self.longest:
            self.longest = seconds

    def quantile(self, part: float) -> float:
        """The time within which this part of them lies; 0 if there are none."""
        wanted, seen = part * self.count, 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return min(_upper(bucket), self.longest)
        return self.longest

    def curve(self) -> list[tuple[float, float]]:
        """Times, and the part of all that lies within each."""
        points, seen = list[tuple[float, float]](), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            points.append((min(_upper(bucket), self.longest), seen / self.count))
        return points


def _upper(bucket: int) -> float:
    return _SHORTEST_S * 2 ** (bucket / _STEPS) if bucket else 0.0


class _FairShares:
    """The clock of a server that serves all tenants at once: it advances by what is served, divided by the weight of
    the tenants that this server still has mail of."""

    def __init__(self) -> None:
        self.clock = 0.0
        self._ends: dict[SimulatedTenant, float] = {}
        """When it would have served all of a tenant's mail."""
        self._order: list[tuple[float, int, SimulatedTenant]] = []
        self._weight = 0.0

    def add(self, tenant: SimulatedTenant, cost: float) -> None:
        end = self._ends.get(tenant)
        if end is None:
            end = self.clock
            self._weight += tenant.weight
            heappush(self._order, (end, tenant.id, tenant))
        self._ends[tenant] = end + cost / tenant.weight

    def remove(self, tenant: SimulatedTenant, cost: float) -> None:
        if tenant in self._ends:
            self._ends[tenant] -= cost / tenant.weight

    def serve(self, cost: float) -> None:
        order, ends = self._order, self._ends
        while order:
            known, id, tenant = order[0]
            end = ends[tenant]
            if end > known:
                heapreplace(order, (end, id, tenant))
            elif (needed := max(0.0, end - self.clock) * self._weight) > cost:
                self.clock += cost / self._weight
                return
            else:
                cost -= needed
                self.clock = max(self.clock, end)
                heappop(order)
                del ends[tenant]
                self._weight = self._weight - tenant.weight if order else 0.0
        self.clock += cost


@dataclass(slots=True)
class _TenantRecord:
    waiting: int = 0
    since: float = 0.0
    """When its mail began to wait, or when the last of it began."""
    clock: float = 0.0
    """The clock of fair shares when its mail began to wait."""
    fair: float = 0.0
    got: float = 0.0
    contended: float = 0.0
    longest_pause: float = 0.0


@dataclass(slots=True)
class GroupRecord:
    """The times of one group of tenants."""

    waits: Waits = field(default_factory=Waits)
    delivered: Waits = field(default_factory=Waits)
    longest_pause: float = 0.0


class Measures:
    """Follows the mail of one simulation."""

    def __init__(self, groups: int, tenants: Sequence[SimulatedTenant]) -> None:
        self.groups = [GroupRecord() for _ in range(groups)]
        self.retries = GroupRecord()
        self.idle_s = 0.0
        """Slots that were free while mail waited, times how long."""
        self.busy_s = 0.0
        """All slots, times how long mail waited."""
        self.refused = 0
        self._tenants = [_TenantRecord() for _ in tenants]
        self._shares = _FairShares()
        self._waiting_tenants = 0
        self._contended = 0.0

    def comes(self, mail: SimulatedMail, now: float) -> None:
        tenant = mail.sender.tenant
        record = self._tenants[tenant.id]
        record.waiting += 1
        if record.waiting == 1:
            record.since, record.clock = now, self._shares.clock
            self._waiting_tenants += 1
        self._shares.add(tenant, mail.cost)

    def leaves(self, mail: SimulatedMail) -> None:
        """A mail does not wait any more, though it has not begun: it is held."""
        self._shares.remove(mail.sender.tenant, mail.cost)
        self._less(mail.sender.tenant)

    def begins(self, mail: SimulatedMail, now: float) -> None:
        tenant = mail.sender.tenant
        record, group = self._tenants[tenant.id], self.groups[tenant.group]
        (self.retries if mail.attempt else group).waits.add(now - mail.came)
        if self._waiting_tenants > 1:
            record.contended += mail.cost
            self._contended += mail.cost
        self._shares.serve(mail.cost)
        record.got += mail.cost
        if (pause := now - record.since) > record.longest_pause:
            record.longest_pause = pause
            group.longest_pause = max(group.longest_pause, pause)
        record.since = now
        self._less(tenant)

    def ends(self, mail: SimulatedMail, now: float) -> None:
        if not mail.attempt and not mail.deferrals:
            self.groups[mail.sender.tenant.group].delivered.add(now - mail.came)

    def passes(self, seconds: float, free: int, slots: int) -> None:
        """Time has passed while mail waited."""
        self.idle_s += seconds * free
        self.busy_s += seconds * slots

    def _less(self, tenant: SimulatedTenant) -> None:
        record = self._tenants[tenant.id]
        record.waiting -= 1
        if not record.waiting:
            record.fair += tenant.weight * (self._shares.clock - record.clock)
            self._waiting_tenants -= 1

    def parts(self) -> list[float]:
        """The part of its fair share that each tenant got."""
        return [min(1.0, each.got / each.fair) if each.fair > 0 else 1.0 for each in self._tenants if each.got]

    @property
    def largest_share(self) -> float:
        most = max((each.contended for each in self._tenants), default=0.0)
        return most / self._contended if self._contended else 0.0

    @property
    def idle_share(self) -> float:
        return self.idle_s / self.busy_s if self.busy_s else 0.0
