"""The orders in which mail can leave: the fair queue, and three that it is compared with.

fair         lane, tenant, domain and sender in turn: the picker that dispatchers use
fifo         in the order of acceptance
priority     the highest lane first, and within a lane in the order of acceptance
single-pass  every so often one pass over the domains, those with the least mail first: each gets an equal part of the
             free slots, rounded down, until the slots are used up
"""

from collections import deque
from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Literal, Protocol, cast, get_args

from postroom.core.outbound.lanes import LanePolicy
from postroom.core.outbound.priority import SenderLane
from postroom_simulator.arrivals import SimulatedMail, SimulatedSender
from postroom_simulator.fair_queue import FairQueue

DisciplineName = Literal["fair", "fifo", "priority", "single-pass"]
DISCIPLINES: tuple[DisciplineName, ...] = get_args(DisciplineName)
PRIORITIES: tuple[SenderLane, ...] = get_args(SenderLane)
"""The highest first."""


class Discipline(Protocol):
    """A queue that says which mail goes next."""

    def __len__(self) -> int: ...

    def put(self, mail: SimulatedMail) -> None:
        """Let a mail wait."""
        ...

    def take(self, free: int) -> Iterable[SimulatedMail]:
        """Take mail for the free slots."""
        ...

    def release(self, mail: SimulatedMail) -> None:
        """The delivery of this mail has ended."""
        ...

    def withdraw(self, sender: SimulatedSender) -> list[SimulatedMail]:
        """Take out all new mail of a sender, in its order."""
        ...


class Fair:
    """The fair queue."""

    def __init__(self, slots: int, policy: LanePolicy | None = None) -> None:
        self._queue = FairQueue(policy or LanePolicy.of(), slots)
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def put(self, mail: SimulatedMail) -> None:
        self._waiting += 1
        self._queue.put(mail.lane, mail.sender.path, mail, mail.sender.weights)

    def take(self, free: int) -> list[SimulatedMail]:
        taken = [cast("SimulatedMail", picked.mail) for picked in self._queue.take(free)]
        self._waiting -= len(taken)
        return taken

    def release(self, mail: SimulatedMail) -> None:
        self._queue.release(mail.lane, mail.sender.tenant.id)

    def withdraw(self, sender: SimulatedSender) -> list[SimulatedMail]:
        taken = [cast("SimulatedMail", mail) for mail in self._queue.withdraw(sender.lane, sender.path[2])]
        self._waiting -= len(taken)
        return taken


class Fifo:
    """First in, first out."""

    def __init__(self) -> None:
        self._mails: deque[SimulatedMail] = deque()

    def __len__(self) -> int:
        return len(self._mails)

    def put(self, mail: SimulatedMail) -> None:
        self._mails.append(mail)

    def take(self, free: int) -> list[SimulatedMail]:
        mails = self._mails
        return [mails.popleft() for _ in range(min(free, len(mails)))]

    def release(self, mail: SimulatedMail) -> None:
        pass

    def withdraw(self, sender: SimulatedSender) -> list[SimulatedMail]:
        taken = [mail for mail in self._mails if mail.sender is sender and not mail.attempt]
        if taken:
            self._mails = deque(mail for mail in self._mails if mail.sender is not sender or mail.attempt)
        return taken


class StrictPriority:
    """The highest lane first. A retry has the priority of its sender."""

    def __init__(self) -> None:
        self._lanes = {lane: Fifo() for lane in PRIORITIES}

    def __len__(self) -> int:
        return sum(len(lane) for lane in self._lanes.values())

    def put(self, mail: SimulatedMail) -> None:
        self._lanes[cast("SenderLane", mail.sender.lane)].put(mail)

    def take(self, free: int) -> list[SimulatedMail]:
        taken: list[SimulatedMail] = []
        for lane in self._lanes.values():
            if len(taken) == free:
                break
            taken += lane.take(free - len(taken))
        return taken

    def release(self, mail: SimulatedMail) -> None:
        pass

    def withdraw(self, sender: SimulatedSender) -> list[SimulatedMail]:
        return [mail for lane in self._lanes.values() for mail in lane.withdraw(sender)]


class SinglePass:
    """One pass over the domains, those with the least mail first. What a domain leaves of its part stays unused."""

    def __init__(self) -> None:
        self._domains: dict[int, StrictPriority] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def put(self, mail: SimulatedMail) -> None:
        self._waiting += 1
        domain = mail.sender.path[1]
        if domain not in self._domains:
            self._domains[domain] = StrictPriority()
        self._domains[domain].put(mail)

    def take(self, free: int) -> list[SimulatedMail]:
        each = max(1, free // max(1, len(self._domains)))
        taken: list[SimulatedMail] = []
        for id, domain in nsmallest(free, self._domains.items(), key=lambda item: len(item[1])):
            if len(taken) >= free:
                break
            taken += domain.take(each)
            if not len(domain):
                del self._domains[id]
        self._waiting -= len(taken)
        return taken

    def release(self, mail: SimulatedMail) -> None:
        pass

    def withdraw(self, sender: SimulatedSender) -> list[SimulatedMail]:
        domain = self._domains.get(sender.path[1])
        taken = domain.withdraw(sender) if domain is not None else []
        if domain is not None and not len(domain):
            del self._domains[sender.path[1]]
        self._waiting -= len(taken)
        return taken


def discipline_of(name: DisciplineName, slots: int) -> Discipline:
    made: dict[DisciplineName, Callable[[], Discipline]] = {
        "fair": lambda: Fair(slots),
        "fifo": Fifo,
        "priority": StrictPriority,
        "single-pass": SinglePass,
    }
    return made[name]()
