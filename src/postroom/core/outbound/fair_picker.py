"""The fair picker of outgoing mail: lane, then tenant, then domain, then sender, start-time fair at every level.

Every node that has mail waiting has a start, the virtual time at which its next mail may begin. The child with the
smallest start goes next, and its start moves on by the cost of the mail divided by the child's weight. A parent's clock
is the start of the child that went last; a child that was idle counts from there, so idle time earns neither credit nor
debt. Within a sender, transactional mail goes before bulk mail, in the order of acceptance.

Two corrections take the work in flight into account. A lane or tenant that holds more of the slots than it is entitled
to waits while another has work, since mail to slow destinations holds its slot for longer. And a tenant that is served
in one lane moves back in the others too, by up to LEAD mails, so that nobody multiplies his share by using several.

The picker does not see the whole queue. It is given the first few children of each node, as many as a batch can reach,
and raises `Missing` before it would have to guess; nothing has changed then. So choosing costs what the batch costs,
however much waits and for however many tenants.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from math import ceil
from typing import Literal, NamedTuple

from postroom.core.outbound.lanes import Lane, LanePolicy

Level = Literal["lane", "tenant", "domain", "sender"]
LEVELS: tuple[Level, ...] = ("lane", "tenant", "domain", "sender")

LEAD = 8.0
GENEROSITY = 2.0
"""How often its part of the slots a tenant may hold while others wait: deliveries take different times."""
FIRST: tuple[float, int] = (float("-inf"), 0)
MORE = 8


class Turn(NamedTuple):
    """Where a node stands in a lane. `waiting` counts its children that wait; of a sender, its mails."""

    id: int
    start: float
    clock: float
    weight: float
    waiting: int


class WaitingMail(NamedTuple):
    """A mail as the picker sees it. `seq` is its place in the order of acceptance, `cost` the number of recipients."""

    seq: int
    cost: float
    bulk: bool = False


class Wanted(NamedTuple):
    """The next `most` children of a node, of those after `after`: a start and an id, or, for the mails of a sender,
    their class and seq."""

    lane: Lane
    level: Level
    """That of the parent."""
    parent: int
    after: tuple[float, int]
    most: int


class Missing(Exception):
    """The picker must see more before it can go on."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class Picked(NamedTuple):
    """A mail whose turn it is."""

    mail: WaitingMail
    lane: Lane
    tenant: int
    domain: int
    sender: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """The mail being delivered now, in the caller's `slots`. `limits` bound lanes while several have work."""

    slots: int
    lanes: Mapping[Lane, int] = field(default_factory=dict[Lane, int])
    tenants: Mapping[int, int] = field(default_factory=dict[int, int])
    limits: Mapping[Lane, int] = field(default_factory=dict[Lane, int])


class Moved(NamedTuple):
    """A node whose turn has changed, and where it stands now."""

    lane: Lane
    level: Level
    id: int
    start: float
    clock: float
    waiting: int


class MovedBack(NamedTuple):
    """A tenant that was served in other lanes: in this one, its start moves by `by`, but not past the lane's clock by
    more than LEAD mails."""

    tenant: int
    by: float
    known: tuple[Lane, ...]
    """The lanes in which it has been moved already, or was served."""


class _Node:
    """A node while a batch is chosen. The heap holds its known children that wait, by start."""

    __slots__ = (
        "changed", "clock", "heap", "id", "lane", "level", "mails",
        "parent", "seen", "start", "waiting", "weight", "whole",
    )  # fmt: skip

    def __init__(self, lane: Lane, level: Level, turn: Turn, parent: "_Node | None") -> None:
        self.lane: Lane = lane
        self.level: Level = level
        self.id, self.start, self.clock, self.weight, self.waiting = turn
        self.parent = parent
        self.heap: list[tuple[float, int, _Node]] = []
        self.mails: deque[WaitingMail] = deque()
        self.seen: tuple[float, int] = FIRST
        """The last child that was given, in the order of the starts that they had then."""
        self.whole = False
        """Whether all of its waiting children were given."""
        self.changed = False

    def first(self) -> "_Node | None":
        """The child whose turn it is; None when no child waits. Raises Missing when an unknown one may come before."""
        heap = self.heap
        while heap and (heap[0][0] != heap[0][2].start or not heap[0][2].waiting):
            child = heap[0][2]
            if child.waiting:
                heapreplace(heap, (child.start, child.id, child))
            else:
                heappop(heap)
        if self.whole or (heap and heap[0][:2] <= self.seen):
            return heap[0][2] if heap else None
        raise Missing(Wanted(self.lane, self.level, self.id, self.seen, max(MORE, len(heap))))

    def first_mail(self) -> WaitingMail | None:
        if self.mails:
            return self.mails[0]
        if self.whole:
            return None
        raise Missing(Wanted(self.lane, self.level, self.id, self.seen, MORE))


class FairPicker:
    """Chooses one batch. Give it what `wanted` asks for, level by level; then `pick` until it is enough, or None."""

    def __init__(self, policy: LanePolicy, clock: float, lanes: Mapping[Lane, Turn], held: InFlight) -> None:
        """`clock` is that of all lanes. The weight of a lane is the policy's; `waiting` says whether it has work."""
        self._policy = policy
        self._held = held
        self._lanes_held = dict(held.lanes)
        self._tenants_held = dict(held.tenants)
        self._root = _Node("fifo", "lane", Turn(0, 0.0, clock, 1.0, 1), None)
        self._lanes: dict[Lane, _Node] = {name: _Node(name, "lane", turn, self._root) for name, turn in lanes.items()}
        self._nodes: dict[tuple[Lane, Level, int], _Node] = {}
        self._tenants: dict[int, list[_Node]] = {}
        self._weight_of_tenants: dict[Lane, float] = {}
        for name, lane in self._lanes.items():
            self._nodes[name, "lane", 0] = lane
            self._weight_of_tenants[name] = 0.0
        self._served: dict[int, float] = {}
        self._spent: list[_Node] = []
        """Lanes of whose tenants one has become idle: it may have been the last."""
        self._entitled: dict[Lane, int] = {}
        self._weigh()

    @property
    def clock(self) -> float:
        return self._root.clock

    def wanted(self, most: int) -> Iterator[list[Wanted]]:
        """Tell which children to load before `most` are picked, a level at a time; add each before asking for the next.

        It suffices if every mail has one recipient and nobody holds too much; otherwise `pick` asks for more.
        """
        busy = [node for node in self._lanes.values() if node.waiting]
        shares = _shared(busy, self._root.clock, most)
        for _ in LEVELS:
            yield [Wanted(node.lane, node.level, node.id, FIRST, count) for node, count in shares]
            shares = [
                share
                for node, count in shares
                for share in _shared([child for _, _, child in node.heap], node.clock, count)
            ]

    def add_turns(self, wanted: Wanted, turns: Sequence[Turn]) -> None:
        """Add the children that were asked for, in their order."""
        parent = self._nodes[wanted.lane, wanted.level, wanted.parent]
        level = LEVELS[LEVELS.index(wanted.level) + 1]
        for turn in turns:
            child = _Node(wanted.lane, level, turn, parent)
            self._nodes[wanted.lane, level, turn.id] = child
            if level == "tenant":
                self._tenants.setdefault(turn.id, []).append(child)
                self._weight_of_tenants[wanted.lane] += turn.weight
                if turn.id in self._served:
                    self._move_back(child, self._served[turn.id])
            heappush(parent.heap, (child.start, child.id, child))
        if turns:
            parent.seen = turns[-1].start, turns[-1].id
        parent.whole = len(turns) < wanted.most

    def add_mails(self, wanted: Wanted, mails: Sequence[WaitingMail]) -> None:
        """Add the mails of a sender that were asked for, in their order."""
        sender = self._nodes[wanted.lane, "sender", wanted.parent]
        sender.mails.extend(mails)
        if mails:
            sender.seen = float(mails[-1].bulk), mails[-1].seq
        sender.whole = len(mails) < wanted.most

    def pick(self) -> Picked | None:
        """Take the mail whose turn it is; None when nothing waits."""
        while (lane := self._next_lane()) is not None:
            if (tenant := self._next_tenant(lane)) is None:
                self._idle(lane)
            elif (domain := tenant.first()) is None:
                self._idle(tenant)
            elif (sender := domain.first()) is None:
                self._idle(domain)
            elif (mail := sender.first_mail()) is None:
                self._idle(sender)
            else:
                sender.mails.popleft()
                self._serve(lane, tenant, domain, sender, mail.cost)
                return Picked(mail, lane.lane, tenant.id, domain.id, sender.id)
        return None

    def moved(self) -> list[Moved]:
        """The nodes whose turn has changed since the beginning, lanes included."""
        return [
            Moved(lane, level, id, node.start, node.clock, node.waiting)
            for (lane, level, id), node in self._nodes.items()
            if node.changed
        ]

    def moved_back(self) -> list[MovedBack]:
        """The tenants that were served, for the lanes in which the picker has not seen them."""
        return [
            MovedBack(tenant, by, tuple(node.lane for node in self._tenants[tenant]))
            for tenant, by in self._served.items()
        ]

    def _weigh(self) -> None:
        """Lanes that have become idle lend their part to the others."""
        weights = self._policy.weights(name for name, lane in self._lanes.items() if lane.waiting)
        for name, weight in weights.items():
            self._lanes[name].weight = weight
            limit = self._held.limits.get(name, self._held.slots)
            self._entitled[name] = min(max(1, ceil(weight * self._held.slots)), limit)

    def _next_lane(self) -> _Node | None:
        """The lane with the smallest start: of those that hold less than they are entitled to, or else of those that
        are below their limit, or else of all."""
        for lane in self._spent:
            if lane.first() is None:
                self._idle(lane)
        self._spent.clear()
        busy = [node for node in self._lanes.values() if node.waiting]
        below = [node for node in busy if self._lanes_held.get(node.lane, 0) < self._entitled[node.lane]]
        if not below and self._held.limits:
            limits, held = self._held.limits, self._lanes_held
            below = [node for node in busy if held.get(node.lane, 0) < limits.get(node.lane, self._held.slots)]
        return min(below or busy, key=_by_start, default=None)

    def _next_tenant(self, lane: _Node) -> _Node | None:
        """The tenant with the smallest start, of those that do not hold too much if there are any."""
        above: list[tuple[float, int, _Node]] = []
        try:
            while (tenant := lane.first()) is not None and self._holds_too_much(tenant):
                above.append(heappop(lane.heap))
            return tenant or (above[0][2] if above else None)
        finally:
            for each in above:
                heappush(lane.heap, each)

    def _holds_too_much(self, tenant: _Node) -> bool:
        held = self._tenants_held.get(tenant.id, 0)
        if not held:
            return False
        part = tenant.weight / max(tenant.weight, self._weight_of_tenants[tenant.lane])
        return held >= max(1, ceil(GENEROSITY * self._lanes[tenant.lane].weight * self._held.slots * part))

    def _serve(self, lane: _Node, tenant: _Node, domain: _Node, sender: _Node, cost: float) -> None:
        for parent, child in ((self._root, lane), (lane, tenant), (tenant, domain), (domain, sender)):
            began = max(child.start, parent.clock)
            parent.clock = began
            child.start = began + cost / child.weight
            child.changed = True
        self._lanes_held[lane.lane] = self._lanes_held.get(lane.lane, 0) + 1
        self._tenants_held[tenant.id] = self._tenants_held.get(tenant.id, 0) + 1
        by = cost / tenant.weight
        self._served[tenant.id] = self._served.get(tenant.id, 0.0) + by
        for other in self._tenants[tenant.id]:
            if other is not tenant and other.waiting:
                self._move_back(other, by)
        sender.waiting -= 1
        if not sender.waiting:
            self._idle(sender)

    def _move_back(self, tenant: _Node, by: float) -> None:
        """The tenant was served in another lane."""
        latest = self._lanes[tenant.lane].clock + LEAD / tenant.weight
        tenant.start = max(tenant.start, min(tenant.start + by, latest))
        tenant.changed = True

    def _idle(self, node: _Node) -> None:
        """Nothing waits in the node any more, nor in those above it that have no other child waiting."""
        node.waiting = 0
        node.changed = True
        if node.level == "tenant":
            self._weight_of_tenants[node.lane] -= node.weight
            self._spent = [self._lanes[node.lane]]
        if node.level == "lane":
            self._weigh()
        elif node.parent is not None and node.parent.level != "lane":
            node.parent.waiting -= 1
            if node.parent.waiting <= 0:
                self._idle(node.parent)


def _by_start(node: _Node) -> float:
    return node.start


def _shared(nodes: Sequence[_Node], clock: float, count: int) -> list[tuple[_Node, int]]:
    """How many of the next `count` mails of one recipient each node would get, if each had enough of them."""
    if len(nodes) == 1:
        return [(nodes[0], count)]
    heap = [(node.start, node.id, place) for place, node in enumerate(nodes)]
    heapify(heap)
    got = [0] * len(nodes)
    for _ in range(count if nodes else 0):
        start, id, place = heap[0]
        node = nodes[place]
        clock = max(start, clock)
        got[place] += 1
        if node.level == "sender" and got[place] >= node.waiting:
            heappop(heap)
            if not heap:
                break
        else:
            heapreplace(heap, (clock + 1 / node.weight, id, place))
    return [(node, taken) for node, taken in zip(nodes, got, strict=True) if taken]
