"""The mail of a scenario, in the order in which it comes, made as it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import log
from typing import TYPE_CHECKING, NamedTuple, Protocol

from postroom_simulator.scenario import Destination, Scenario, TenantGroup

if TYPE_CHECKING:
    from random import Random

    from postroom.core.outbound.lanes import Lane
    from postroom_simulator.fair_queue import Path

_Z95 = 1.6448536269514722


@dataclass(slots=True, eq=False)
class SimulatedTenant:
    """A tenant, and the number of its group."""

    id: int
    group: int
    weight: float


@dataclass(slots=True, eq=False)
class SimulatedSender:
    """A sender, and the lane in which its mail waits now."""

    path: Path
    tenant: SimulatedTenant
    weights: tuple[float, float, float]
    lane: Lane
    refused: bool = False


class SimulatedMail(NamedTuple):
    """A mail, how long its delivery takes, and how often its destination defers it before."""

    seq: int
    cost: float
    bulk: bool
    came: float
    takes: float
    deferrals: int
    sender: SimulatedSender
    lane: Lane
    attempt: int = 0


class MailSource(Protocol):
    """Mail in the order in which it comes, and those who send it."""

    @property
    def groups(self) -> Sequence[str]: ...
    @property
    def tenants(self) -> Sequence[SimulatedTenant]: ...
    @property
    def senders(self) -> Sequence[Sequence[SimulatedSender]]:
        """Those of each group."""
        ...

    def __iter__(self) -> Iterator[SimulatedMail]: ...


class _Source:
    """The mail of one tenant: bursts or a steady stream. Its users take turns."""

    __slots__ = ("destination", "end", "group", "next_user", "rate", "senders")

    def __init__(
        self, group: TenantGroup, end: float, rate: float, destination: Destination, senders: list[SimulatedSender]
    ) -> None:
        self.group = group
        self.end = end
        self.rate = rate
        self.destination = destination
        self.senders = senders
        self.next_user = 0


class Arrivals:
    """All mail of a scenario. The same scenario and seed give the same mail."""

    def __init__(self, scenario: Scenario, rng: Random) -> None:
        self._rng = rng
        self.groups = tuple(group.name for group in scenario.tenants)
        self.senders: list[list[SimulatedSender]] = [[] for _ in scenario.tenants]
        self.tenants: list[SimulatedTenant] = []
        self._sources: list[tuple[float, int, _Source]] = []
        for number, group in enumerate(scenario.tenants):
            for _ in range(group.tenants):
                self._add_tenant(scenario, number, group)
        heapify(self._sources)

    def __iter__(self) -> Iterator[SimulatedMail]:
        sources, seq = self._sources, 0
        while sources:
            now, order, source = sources[0]
            if now > source.end:
                heappop(sources)
                continue
            for _ in range(1 if source.rate else source.group.burst):
                seq += 1
                yield self._mail(seq, now, source)
            following = self._following(now, source)
            heapreplace(sources, (following, order, source))

    def _add_tenant(self, scenario: Scenario, number: int, group: TenantGroup) -> None:
        tenant = SimulatedTenant(len(self.tenants), number, group.weight)
        self.tenants.append(tenant)
        senders: list[SimulatedSender] = []
        for user in range(group.users):
            for domain in range(group.domains):
                domain_id = tenant.id * group.domains + domain
                path = (tenant.id, (number << 40) + domain_id, (number << 40) + domain_id * group.users + user)
                senders.append(SimulatedSender(path, tenant, (group.weight, 1.0, 1.0), group.lane))
        self.senders[number] += senders
        end, destination = scenario.end_of(group), scenario.destination_of(group)
        if group.burst:
            self._add_source(_Source(group, end, 0.0, destination, senders), group.starts)
        if group.rate:
            first = group.starts + self._rng.expovariate(group.rate)
            self._add_source(_Source(group, end, group.rate, destination, senders), first)

    def _add_source(self, source: _Source, first: float) -> None:
        self._sources.append((first, len(self._sources), source))

    def _following(self, now: float, source: _Source) -> float:
        if source.rate:
            return now + self._rng.expovariate(source.rate)
        return now + source.group.every if source.group.every else float("inf")

    def _mail(self, seq: int, now: float, source: _Source) -> SimulatedMail:
        sender = source.senders[source.next_user]
        source.next_user = (source.next_user + 1) % len(source.senders)
        deferrals, group, destination = 0, source.group, source.destination
        while destination.deferred and self._rng.random() < destination.deferred:
            deferrals += 1
        takes = delivery_time(destination, self._rng)
        return SimulatedMail(seq, group.recipients, group.bulk, now, takes, deferrals, sender, sender.lane)


def delivery_time(destination: Destination, rng: Random) -> float:
    """A log-normal time with the destination's median and 95th percentile."""
    if destination.p95 is None:
        return destination.median
    return rng.lognormvariate(log(destination.median), log(destination.p95 / destination.median) / _Z95)
