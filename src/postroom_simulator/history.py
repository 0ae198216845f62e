"""Mail of the past that is simulated again: who sent it and when, in a few bytes each.

How long deliveries took is not recorded; they take what the caller says. Tenants are grouped by how much they sent.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from postroom.store.outbound.outbound_history import list_sent_mail
from postroom_simulator.arrivals import SimulatedMail, SimulatedSender, SimulatedTenant, delivery_time

if TYPE_CHECKING:
    from datetime import datetime

    from postroom.core.outbound.lanes import Lane
    from postroom.store.engine.database import Database
    from postroom.store.outbound.outbound_history import SentMail
    from postroom_simulator.fair_queue import Path
    from postroom_simulator.scenario import Destination
    from postroom_simulator.simulator import Simulator

SIZES = (10, 100, 1000)
SIZE_NAMES = ("1 to 10 mails", "11 to 100 mails", "101 to 1,000 mails", "over 1,000 mails")
FLOOD = "flood"
PAGE = 10_000


class History:
    """Mail in the order of acceptance. Times begin with the first."""

    def __init__(self) -> None:
        self._seconds = array("d")
        self._sender = array("L")
        self._recipients = array("L")
        self._bulk = array("b")
        self._senders: list[tuple[Path, tuple[float, float, float], Lane]] = []
        self._places: dict[int, int] = {}
        self._sent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._seconds)

    def add(self, mail: SentMail) -> None:
        place = self._places.get(mail.path[2])
        if place is None:
            place = self._places[mail.path[2]] = len(self._senders)
            self._senders.append((mail.path, mail.weights, mail.lane))
        # A clock that was set back does not change the order.
        self._seconds.append(max(mail.seconds, self._seconds[-1]) if self._seconds else mail.seconds)
        self._sender.append(place)
        self._recipients.append(mail.recipients)
        self._bulk.append(mail.bulk)
        self._sent[mail.path[0]] = self._sent.get(mail.path[0], 0) + 1

    def sizes(self) -> dict[int, int]:
        """The group of each tenant, by how much it sent."""
        return {tenant: bisect_left(SIZES, sent) for tenant, sent in self._sent.items()}

    def senders(self) -> list[tuple[Path, tuple[float, float, float], Lane]]:
        return self._senders

    def mails(self) -> Iterator[tuple[float, int, int, bool]]:
        """The time, the place of the sender, the number of recipients and the class of each."""
        first = self._seconds[0] if self._seconds else 0.0
        for seconds, sender, recipients, bulk in zip(
            self._seconds, self._sender, self._recipients, self._bulk, strict=True
        ):
            yield seconds - first, sender, recipients, bool(bulk)

    def middle(self) -> float:
        """When half of the mail had come."""
        return self._seconds[len(self) // 2] - self._seconds[0] if len(self) else 0.0


async def load_history(database: Database, since: datetime, most: int) -> History:
    """Load the first `most` mails that were accepted since then."""
    history, after = History(), 0
    while len(history) < most:
        mails, after = await database.run(list_sent_mail(since, after, min(PAGE, most - len(history))))
        for mail in mails:
            history.add(mail)
        if not mails:
            break
    return history


@dataclass(frozen=True)
class HistoryWorkload:
    """The mail of a history, and a flood of one more tenant when half of it has come, if there is to be one."""

    history: History
    slots: int
    destination: Destination
    seed: int
    flood: int = 0
    pass_every: float = 1.0
    only: int | None = None

    @property
    def groups(self) -> int:
        return len(SIZE_NAMES) + bool(self.flood)

    def alone(self, place: int) -> HistoryWorkload:
        return replace(self, only=place)

    def arrivals(self) -> HistoryArrivals:
        return HistoryArrivals(self, Random(self.seed))  # noqa: S311 - a simulation, no secret

    def prepare(self, run: Simulator) -> None:
        """Nothing else happens: what throttles did to this mail is part of its history."""


class HistoryArrivals:
    """The mail of a history as it comes."""

    def __init__(self, work: HistoryWorkload, rng: Random) -> None:
        self._work = work
        self._rng = rng
        self.groups = (*SIZE_NAMES, FLOOD) if work.flood else SIZE_NAMES
        self.tenants: list[SimulatedTenant] = []
        self.senders: list[list[SimulatedSender]] = [[] for _ in self.groups]
        self._senders: list[SimulatedSender] = []
        tenants: dict[int, SimulatedTenant] = {}
        sizes = work.history.sizes()
        for (tenant, domain, sender), weights, lane in work.history.senders():
            if tenant not in tenants:
                tenants[tenant] = self._add_tenant(sizes[tenant], weights[0])
            known = tenants[tenant]
            self._senders.append(SimulatedSender((known.id, domain, sender), known, weights, lane))
            self.senders[known.group].append(self._senders[-1])
        self._flooding = SimulatedSender((-1, -1, -1), SimulatedTenant(-1, 0, 1.0), (1.0, 1.0, 1.0), "normal")
        if work.flood:
            tenant = self._add_tenant(len(SIZE_NAMES), 1.0)
            self._flooding = replace(self._flooding, path=(tenant.id, -1, -1), tenant=tenant)

    def __iter__(self) -> Iterator[SimulatedMail]:
        flood, middle, seq = self._work.flood, self._work.history.middle(), 0
        for seconds, place, recipients, bulk in self._work.history.mails():
            if seconds >= middle:
                for _ in range(flood):
                    seq += 1
                    yield from self._mail(seq, self._flooding, middle, 1, bulk=True)
                flood = 0
            seq += 1
            yield from self._mail(seq, self._senders[place], seconds, recipients, bulk=bulk)

    def _mail(
        self, seq: int, sender: SimulatedSender, came: float, recipients: int, *, bulk: bool
    ) -> Iterator[SimulatedMail]:
        """The mail, unless it is of a group that is left out. It takes as long whoever is left out."""
        takes = delivery_time(self._work.destination, self._rng)
        if self._work.only in (None, sender.tenant.group):
            yield SimulatedMail(seq, recipients, bulk, came, takes, 0, sender, sender.lane)

    def _add_tenant(self, group: int, weight: float) -> SimulatedTenant:
        self.tenants.append(SimulatedTenant(len(self.tenants), group, weight))
        return self.tenants[-1]
