"""The simulator: mail comes, takes slots in the order of a discipline, is delivered, and frees them, in virtual time.

    Arrivals ──accept──► Discipline ──take──► slots ──its time is over──► delivered
                   ▲                                      │ deferred
                   └───────── a while later, as a retry ──┘

Nothing is measured by the clock of the machine, so the same scenario and seed give the same result everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Literal, Protocol

from postroom.core.outbound.fairness import gini, jain
from postroom_simulator.arrivals import Arrivals, MailSource, SimulatedMail, SimulatedSender
from postroom_simulator.disciplines import Discipline, DisciplineName, discipline_of
from postroom_simulator.measures import Measures

if TYPE_CHECKING:
    from postroom_simulator.scenario import Scenario, TenantGroup

Progress = Callable[[str, int], None]
"""Called now and then with the discipline, and how many mails have begun."""

FIRST_RETRY_S, LONGEST_RETRY_S = 60.0, 4 * 3600.0
REPORT_EVERY = 8192
NEVER = float("inf")
ALONE = "alone"

ThrottleStep = Literal["held", "drains", "restored"]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The waits of one group of tenants, in seconds: until the delivery of a mail begins, at the first attempt.
    `delivered_p95` counts until its end."""

    name: str
    mails: int
    p50: float
    p95: float
    p99: float
    longest: float
    delivered_p95: float
    longest_pause: float
    curve: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a scenario under one discipline."""

    discipline: str
    groups: tuple[GroupResult, ...]
    jain: float
    gini: float
    largest_share: float
    idle_share: float
    """The part of the slots that were free while mail waited."""
    most_waiting: int
    ended_s: float
    """When the last mail was delivered."""
    refused: int


class Simulator:
    """One run of one discipline."""

    def __init__(self, slots: int, arrivals: MailSource, queue: Discipline, pass_every: float | None = None) -> None:
        """`pass_every` is the time between two passes, if mail is not taken as soon as a slot is free."""
        self._slots = self._free = slots
        self._arrivals = arrivals
        self._queue = queue
        self._pass_every = pass_every
        self._next_pass = 0.0
        self.now = 0.0
        self._order = 0
        self._deliveries: list[tuple[float, int, SimulatedMail]] = []
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._held: dict[SimulatedSender, list[SimulatedMail]] = {}
        self.measures = Measures(len(arrivals.groups), arrivals.tenants)
        self.most_waiting = 0
        self.ended = 0.0

    def run(self, progress: Callable[[int], None] | None = None, every: int = REPORT_EVERY) -> None:
        """Run until all mail is delivered. `progress` is told how much has begun."""
        mails = iter(self._arrivals)
        coming = next(mails, None)
        begun, reported = 0, 0
        while True:
            now = self._next_moment(NEVER if coming is None else coming.came)
            if now == NEVER:
                return
            if len(self._queue) and now > self.now:
                self.measures.passes(now - self.now, self._free, self._slots)
            self.now = now
            self._end_deliveries()
            while self._later and self._later[0][0] <= now:
                heappop(self._later)[2]()
            while coming is not None and coming.came <= now:
                self._accept(coming)
                coming = next(mails, None)
            begun += self._begin_deliveries()
            if progress is not None and begun - reported >= every:
                reported = begun
                progress(begun)

    def throttle(self, group: TenantGroup, number: int) -> None:
        """Have the senders of a group throttled as it says."""
        if (throttle := group.throttle) is None:
            return
        over = throttle.at + throttle.lasts
        for sender in self._arrivals.senders[number]:
            self._at(throttle.at, sender, "held", sender.lane)
            self._at(over, sender, "drains", sender.lane)
            self._at(over + throttle.restored_after, sender, "restored", sender.lane)

    def _next_moment(self, comes: float) -> float:
        now = min(comes, self._later[0][0]) if self._later else comes
        if self._deliveries and self._deliveries[0][0] < now:
            now = self._deliveries[0][0]
        if self._pass_every is not None and self._free and len(self._queue):
            now = min(now, max(self._next_pass, self.now))
        return now

    def _begin_deliveries(self) -> int:
        queue = self._queue
        waiting = len(queue)
        if waiting > self.most_waiting:
            self.most_waiting = waiting
        if not self._free or not waiting or (self._pass_every is not None and self.now < self._next_pass):
            return 0
        if self._pass_every is not None:
            self._next_pass = self.now + self._pass_every
        begun = 0
        for mail in queue.take(self._free):
            begun += 1
            self.measures.begins(mail, self.now)
            self._order += 1
            heappush(self._deliveries, (self.now + mail.takes, self._order, mail))
        self._free -= begun
        return begun

    def _end_deliveries(self) -> None:
        deliveries = self._deliveries
        while deliveries and deliveries[0][0] <= self.now:
            self.ended, _, mail = heappop(deliveries)
            self._free += 1
            self._queue.release(mail)
            self.measures.ends(mail, self.ended)
            if mail.deferrals:
                self._defer(mail)

    def _defer(self, mail: SimulatedMail) -> None:
        due = self.now + min(FIRST_RETRY_S * 2**mail.attempt, LONGEST_RETRY_S)
        again = mail._replace(came=due, deferrals=mail.deferrals - 1, attempt=mail.attempt + 1, lane="retry")
        self._order += 1
        heappush(self._later, (due, self._order, lambda: self._put(again)))

    def _accept(self, mail: SimulatedMail) -> None:
        sender = mail.sender
        if sender.refused:
            self.measures.refused += 1
        else:
            self._put(mail if mail.lane == sender.lane else mail._replace(lane=sender.lane))

    def _put(self, mail: SimulatedMail) -> None:
        self._queue.put(mail)
        self.measures.comes(mail, self.now)

    def _at(self, time: float, sender: SimulatedSender, step: ThrottleStep, former: str) -> None:
        self._order += 1
        heappush(self._later, (time, self._order, lambda: self._throttle(sender, step, former)))

    def _throttle(self, sender: SimulatedSender, step: ThrottleStep, former: str) -> None:
        waiting = self._queue.withdraw(sender)
        for mail in waiting:
            self.measures.leaves(mail)
        waiting = self._held.pop(sender, []) + waiting
        sender.refused = step == "held"
        if step == "held":
            self._held[sender] = waiting
            return
        sender.lane = "throttled" if step == "drains" else former  # type: ignore[assignment]
        for mail in waiting:
            self._put(mail._replace(lane=sender.lane))


class Workload(Protocol):
    """Mail to be simulated, and the capacity for it."""

    @property
    def slots(self) -> int: ...
    @property
    def pass_every(self) -> float: ...
    @property
    def groups(self) -> int:
        """How many groups of tenants there are."""
        ...

    def alone(self, place: int) -> Workload:
        """The same with the mail of one group."""
        ...

    def arrivals(self) -> MailSource:
        """The mail, from its beginning; each time the same."""
        ...

    def prepare(self, run: Simulator) -> None:
        """Plan what else happens, such as throttles."""
        ...


def simulate(
    work: Workload, name: DisciplineName, progress: Progress | None = None, *, shown_as: str | None = None
) -> Result:
    """Run mail through a discipline."""
    arrivals = work.arrivals()
    single = work.pass_every if name == "single-pass" else None
    run = Simulator(work.slots, arrivals, discipline_of(name, work.slots), single)
    work.prepare(run)
    run.run(None if progress is None else lambda begun: progress(shown_as or name, begun))
    return result_of(name, run, arrivals.groups)


def compare(work: Workload, names: Iterable[DisciplineName], progress: Progress | None = None) -> list[Result]:
    """Run the same mail through several disciplines; and first the mail of each group alone through the fair queue."""
    alone = [simulate(work.alone(place), "fair", progress, shown_as=ALONE) for place in range(work.groups)]
    groups = tuple(group for result in alone for group in result.groups if group.mails)
    ended = max(result.ended_s for result in alone)
    most = max(result.most_waiting for result in alone)
    first = Result(ALONE, groups, 1.0, 0.0, 0.0, 0.0, most, ended, 0)
    return [first, *(simulate(work, name, progress) for name in names)]


class ScenarioWorkload:
    """The mail of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.slots = scenario.slots
        self.pass_every = scenario.pass_every
        self.groups = len(scenario.tenants)

    def alone(self, place: int) -> ScenarioWorkload:
        return ScenarioWorkload(self._scenario.only(self._scenario.tenants[place]))

    def arrivals(self) -> Arrivals:
        return Arrivals(self._scenario, Random(self._scenario.seed))  # noqa: S311 - a simulation, no secret

    def prepare(self, run: Simulator) -> None:
        for number, group in enumerate(self._scenario.tenants):
            run.throttle(group, number)


def result_of(name: str, run: Simulator, groups: Iterable[str]) -> Result:
    measures = run.measures
    parts = measures.parts()
    return Result(
        name,
        tuple(_of_group(group, measures, place) for place, group in enumerate(groups)),
        jain(parts),
        gini(parts),
        measures.largest_share,
        measures.idle_share,
        run.most_waiting,
        run.ended,
        measures.refused,
    )


def _of_group(name: str, measures: Measures, place: int) -> GroupResult:
    record = measures.groups[place]
    waits = record.waits
    p50, p95, p99 = (waits.quantile(part) for part in (0.5, 0.95, 0.99))
    delivered = record.delivered.quantile(0.95)
    curve = tuple(waits.curve())
    return GroupResult(name, waits.count, p50, p95, p99, waits.longest, delivered, record.longest_pause, curve)
