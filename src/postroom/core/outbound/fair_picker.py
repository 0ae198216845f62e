"""The fair picker of outgoing mail: lane, then tenant, then domain, then sender, start-time fair at every level.

Every node that has mail waiting has a start, the virtual time at which its next mail may begin. The child with the
smallest start goes next, and its start moves on by the cost of the mail divided by the child's weight. A parent's clock
is the start of the child that went last; a child that was idle counts from there, so idle time earns neither credit nor
debt. Within a sender, transactional mail goes before bulk mail, in the order of acceptance.

A domain or sender without a busy sibling has nobody to be ordered against: its start stays, and the parent's clock
moves past its mail instead. From there both count as soon as a sibling becomes busy. Most tenants have one busy domain,
and most domains one busy sender; their turns then need not be sorted in again for each mail.

Two corrections take the work in flight into account. A lane or tenant that holds more of the slots than it is entitled
to waits while another has work, since mail to slow destinations holds its slot for longer. And a tenant that is served
in one lane moves back in the others too, by up to LEAD mails, so that nobody multiplies his share by using several.

The picker does not see the whole queue. It is given the first few children of each node, as many as a batch can reach,
and raises `Missing` before it would have to guess; nothing has changed then. So choosing costs what the batch costs,
however much waits and for however many tenants.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol

from postroom.core.outbound.lanes import Lane, LanePolicy

Level = Literal["lane", "tenant", "domain", "sender"]
LEVELS: tuple[Level, ...] = ("lane", "tenant", "domain", "sender")
BELOW: Mapping[Level, Level] = dict(pairwise(LEVELS))

LEAD = 8.0
GENEROSITY = 2.0
"""How often its part of the slots a tenant may hold while others wait: deliveries take different times."""
FIRST: tuple[float, int] = (float("-inf"), 0)
REGARDED = 32
"""How many tenants of a lane are weighed against one of them: with more, each may hold as much as with this many."""
MORE = 8


class Turn(NamedTuple):
    """Where a node stands in a lane. `waiting` counts its children that wait; of a sender, its mails."""

    id: int
    start: float
    clock: float
    weight: float
    waiting: int


TurnRow = Sequence[Any]
"""A turn as the database gives it: the values of a Turn, in their order."""


class Mail(Protocol):
    """A mail as the picker sees it. `seq` is its place in the order of acceptance, `cost` the number of recipients."""

    @property
    def seq(self) -> int: ...
    @property
    def cost(self) -> float: ...
    @property
    def bulk(self) -> bool: ...


class WaitingMail(NamedTuple):
    """A mail that the store has found."""

    seq: int
    cost: float
    bulk: bool = False


class Wanted(NamedTuple):
    """The next `most` children of a node, of those after `after`: a start and an id, or, for the mails of a sender,
    their class and seq."""

    node: "Node"
    after: tuple[float, int]
    most: int

    @property
    def lane(self) -> Lane:
        return self.node.lane

    @property
    def level(self) -> Level:
        """That of the parent."""
        return self.node.level

    @property
    def parent(self) -> int:
        return self.node.id


class Missing(Exception):
    """The picker must see more before it can go on."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class Picked(NamedTuple):
    """A mail whose turn it is."""

    mail: Mail
    lane: Lane
    tenant: int
    domain: int
    sender: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """The mail being delivered now, in the caller's `slots`. `limits` bound lanes while several have work.

    Mail to slow destinations may be delivered beyond the slots, up to `room`: then nobody gets more than half of what
    the other tenants leave of it, whether they have work or not, so that there is always a slot for the next one.
    """

    slots: int
    lanes: Mapping[Lane, int] = field(default_factory=dict[Lane, int])
    tenants: Mapping[int, int] = field(default_factory=dict[int, int])
    limits: Mapping[Lane, int] = field(default_factory=dict[Lane, int])
    room: int | None = None


Moved = tuple[Lane, Level, int, float, float, int]
"""A node that has changed: its lane, level and id, and its start, clock and number of waiting children now."""


class MovedBack(NamedTuple):
    """A tenant that was served in other lanes: in this one, its start moves by `by`, but not past the lane's clock by
    more than LEAD mails."""

    tenant: int
    by: float
    known: tuple[Lane, ...]
    """The lanes in which it has been moved already, or was served."""


NO_CHILDREN: "list[tuple[float, int, Node]]" = []
"""Stays empty: a node gets a heap of its own with its first children. Most nodes are senders, who have none."""


class Node:
    """A node while a batch is chosen. The heap holds its known children that wait, by start."""

    __slots__ = (
        "changed", "clock", "heap", "id", "lane", "level", "listed", "mails",
        "moved", "parent", "seen", "start", "waiting", "weight", "whole",
    )  # fmt: skip

    def __init__(self, lane: Lane, level: Level, turn: TurnRow, parent: "Node | None") -> None:
        self.lane: Lane = lane
        self.level: Level = level
        self.id, self.start, self.clock, self.weight, self.waiting = turn
        self.parent = parent
        self.heap: list[tuple[float, int, Node]] = NO_CHILDREN
        self.mails: list[Mail] | None = None
        """The next one last."""
        self.seen: tuple[float, int] = FIRST
        """The last child that was given, in the order of the starts that they had then."""
        self.whole = False
        """Whether all of its waiting children were given."""
        self.changed = False
        self.moved = False
        """Whether its place among its siblings has changed: its start, or that it waits."""
        self.listed = True
        """Whether the parent's heap holds it."""

    def first(self) -> "Node | None":
        """The child whose turn it is; None when no child waits. Raises Missing when an unknown one may come before."""
        heap = self.heap
        while heap:
            start, id, child = heap[0]
            if not child.waiting:
                heappop(heap)
                child.listed = False
            elif child.start != start:
                heapreplace(heap, (child.start, id, child))
            elif self.whole or (start, id) <= self.seen:
                return child
            else:
                break
        if self.whole:
            return None
        raise Missing(Wanted(self, self.seen, max(MORE, len(heap))))

    def next_mail(self) -> Mail | None:
        """Take the sender's next mail."""
        if self.mails:
            return self.mails.pop()
        if self.whole:
            return None
        raise Missing(Wanted(self, self.seen, MORE))


class LaneNode(Node):
    """A lane, with the slots that its mail holds and those that it is entitled to while others have work."""

    __slots__ = ("entitled", "held", "weight_of_tenants")

    def __init__(self, lane: Lane, turn: Turn, root: Node) -> None:
        super().__init__(lane, "lane", turn, root)
        self.heap = []
        self.weight_of_tenants = turn.weight
        self.held = 0
        self.entitled = 0


class FairPicker:
    """Chooses one batch. Give it what `wanted` asks for, level by level; then `pick` until it is enough, or None."""

    def __init__(self, policy: LanePolicy, clock: float, lanes: Mapping[Lane, Turn], held: InFlight) -> None:
        """`clock` is that of all lanes. Of a lane, `waiting` says whether it has work, and `weight` is that of its
        first REGARDED tenants together: its own weight is the policy's."""
        self._policy = policy
        self._held = held
        self._tenants_held = dict(held.tenants)
        self._all_held = sum(held.tenants.values())
        self._root = Node("fifo", "lane", Turn(0, 0.0, clock, 1.0, 1), None)
        self._lanes: dict[Lane, LaneNode] = {name: LaneNode(name, turn, self._root) for name, turn in lanes.items()}
        for name, lane in self._lanes.items():
            lane.held = held.lanes.get(name, 0)
        self._nodes: list[Node] = list(self._lanes.values())
        self._tenants: dict[int, list[Node]] = {}
        self._served: dict[int, float] = {}
        self._busy: list[LaneNode] = []
        self._full: set[Lane] = set()
        """Lanes in which nobody waits but tenants that get no more slots: they stay as they are."""
        self._spent: LaneNode | None = None
        """A lane of whose tenants one has become idle: it may have been the last."""
        self._weigh()

    @property
    def clock(self) -> float:
        return self._root.clock

    def wanted(self, most: int) -> Iterator[list[Wanted]]:
        """Tell which children to load before `most` are picked, a level at a time; add each before asking for the next.

        It suffices if every mail has one recipient and nobody holds too much; otherwise `pick` asks for more. For a
        tenant of whom one is wanted, the whole way down may be added at once.
        """
        shares = _shared(self._busy, self._root.clock, most)
        for _ in LEVELS:
            yield [Wanted(node, FIRST, count) for node, count in shares]
            below: list[tuple[Node, int]] = []
            for node, count in shares:
                heap = node.heap
                if heap and (count == 1 or len(heap) == 1):
                    if not heap[0][2].heap:
                        below.append((heap[0][2], count))
                else:
                    below += _shared([child for _, _, child in heap], node.clock, count)
            shares = below

    def add_turns(self, wanted: Wanted, turns: Sequence[TurnRow]) -> None:
        """Add the children that were asked for, in their order."""
        parent = wanted.node
        children = [Node(parent.lane, BELOW[parent.level], turn, parent) for turn in turns]
        self._nodes += children
        if parent.level == "lane":
            for child in children:
                self._tenants.setdefault(child.id, []).append(child)
                if child.id in self._served:
                    self._move_back(child, self._served[child.id])
        entries = [(child.start, child.id, child) for child in children]
        if parent.heap:
            for entry in entries:
                heappush(parent.heap, entry)
        else:
            heapify(entries)
            parent.heap = entries
        if turns:
            id, start, *_ = turns[-1]
            parent.seen = start, id
        parent.whole = len(turns) < wanted.most

    def add_way(self, wanted: Wanted, domain: TurnRow, sender: TurnRow, mail: Mail) -> None:
        """Add the first domain of a tenant, its first sender and the first mail of that."""
        tenant = wanted.node
        first = Node(tenant.lane, "domain", domain, tenant)
        second = Node(tenant.lane, "sender", sender, first)
        for parent, child in ((tenant, first), (first, second)):
            parent.heap = [(child.start, child.id, child)]
            parent.seen = child.start, child.id
            # Of domains and senders the number of those that wait is known.
            parent.whole = parent.waiting == 1
        second.mails = [mail]
        second.seen = float(mail.bulk), mail.seq
        second.whole = second.waiting == 1
        self._nodes += (first, second)

    def add_mails(self, wanted: Wanted, mails: Sequence[Mail]) -> None:
        """Add the mails of a sender that were asked for, in their order."""
        sender = wanted.node
        if mails:
            sender.mails = list(reversed(mails))
            sender.seen = float(mails[-1].bulk), mails[-1].seq
        sender.whole = len(mails) < wanted.most

    def pick(self) -> Picked | None:
        """Take the mail whose turn it is; None when nothing waits."""
        while (lane := self._next_lane()) is not None:
            if (tenant := self._next_tenant(lane)) is None:
                self._leave_out(lane)
            elif (domain := tenant.first()) is None:
                self._idle(tenant)
            elif (sender := domain.first()) is None:
                self._idle(domain)
            elif (mail := sender.next_mail()) is None:
                self._idle(sender)
            else:
                self._serve(lane, tenant, domain, sender, mail.cost)
                return Picked(mail, lane.lane, tenant.id, domain.id, sender.id)
        return None

    def moved(self) -> list[Moved]:
        """The nodes whose place among their siblings has changed since the beginning, lanes included."""
        return [
            (node.lane, node.level, node.id, node.start, node.clock, node.waiting) for node in self._nodes if node.moved
        ]

    def changed(self) -> list[Moved]:
        """The nodes that have changed otherwise: what waits in them, or their clock."""
        return [
            (node.lane, node.level, node.id, node.start, node.clock, node.waiting)
            for node in self._nodes
            if node.changed and not node.moved
        ]

    def moved_back(self) -> list[MovedBack]:
        """The tenants that were served, for the lanes in which the picker has not seen them."""
        return [
            MovedBack(tenant, by, tuple([node.lane for node in self._tenants[tenant]]))
            for tenant, by in self._served.items()
        ]

    def _weigh(self) -> None:
        """Lanes that have become idle lend their part to the others."""
        self._busy = [lane for lane in self._lanes.values() if lane.waiting and lane.lane not in self._full]
        weights = self._policy.weights(lane.lane for lane in self._busy)
        for lane in self._busy:
            lane.weight = weights[lane.lane]
            limit = self._held.limits.get(lane.lane, self._held.slots)
            lane.entitled = min(max(1, ceil(lane.weight * self._held.slots)), limit)

    def _next_lane(self) -> LaneNode | None:
        """The lane with the smallest start: of those that hold less than they are entitled to, or else of those that
        are below their limit, or else of all."""
        if self._spent is not None and self._spent.first() is None:
            self._idle(self._spent)
        self._spent = None
        first: LaneNode | None = None
        for lane in self._busy:
            if lane.held < lane.entitled and (first is None or lane.start < first.start):
                first = lane
        if first is None and self._held.limits:
            limits, slots = self._held.limits, self._held.slots
            below = [lane for lane in self._busy if lane.held < limits.get(lane.lane, slots)]
            first = min(below, key=_by_start, default=None)
        return first or min(self._busy, key=_by_start, default=None)

    def _next_tenant(self, lane: LaneNode) -> Node | None:
        """The tenant with the smallest start, of those that do not hold too much if there are any. None if nobody
        waits who gets another slot."""
        if (tenant := lane.first()) is None or not self._is_passed_over(tenant, lane):
            return tenant
        above: list[tuple[float, int, Node]] = []
        try:
            while (tenant := lane.first()) is not None and self._is_passed_over(tenant, lane):
                above.append(heappop(lane.heap))
            return tenant or next((each for _, _, each in above if not self._has_its_half(each)), None)
        finally:
            for each in above:
                heappush(lane.heap, each)

    def _is_passed_over(self, tenant: Node, lane: LaneNode) -> bool:
        return self._has_its_half(tenant) or self._holds_too_much(tenant, lane)

    def _has_its_half(self, tenant: Node) -> bool:
        """Whether the tenant holds half of the room that the others leave. Without a `room` nobody does."""
        held = self._tenants_held.get(tenant.id, 0)
        if self._held.room is None or not held:
            return False
        return 2 * held >= self._held.room - (self._all_held - held)

    def _holds_too_much(self, tenant: Node, lane: LaneNode) -> bool:
        held = self._tenants_held.get(tenant.id, 0)
        if not held:
            return False
        part = max(tenant.weight / max(tenant.weight, lane.weight_of_tenants), 1 / REGARDED)
        return held >= max(1, ceil(GENEROSITY * lane.weight * self._held.slots * part))

    def _serve(self, lane: LaneNode, tenant: Node, domain: Node, sender: Node, cost: float) -> None:
        _charge(domain, sender, cost)
        _charge(tenant, domain, cost)
        _move_on(lane, tenant, cost)
        _move_on(self._root, lane, cost)
        lane.held += 1
        self._all_held += 1
        self._tenants_held[tenant.id] = self._tenants_held.get(tenant.id, 0) + 1
        by = cost / tenant.weight
        self._served[tenant.id] = self._served.get(tenant.id, 0.0) + by
        for other in self._tenants[tenant.id]:
            if other is not tenant and other.waiting:
                self._move_back(other, by)
        sender.waiting -= 1
        if not sender.waiting:
            self._idle(sender)

    def _move_back(self, tenant: Node, by: float) -> None:
        """The tenant was served in another lane."""
        latest = self._lanes[tenant.lane].clock + LEAD / tenant.weight
        tenant.start = max(tenant.start, min(tenant.start + by, latest))
        tenant.moved = True

    def _leave_out(self, lane: LaneNode) -> None:
        """Choose nothing more from the lane: nobody waits in it, or nobody who gets another slot."""
        if lane.whole and not lane.heap:
            self._idle(lane)
        else:
            self._full.add(lane.lane)
            self._weigh()

    def _idle(self, node: Node) -> None:
        """Nothing waits in the node any more, nor in those above it that have no other child waiting."""
        node.waiting = 0
        node.moved = True
        if node.level == "tenant":
            self._spent = self._lanes[node.lane]
        if node.level == "lane":
            self._weigh()
        elif node.parent is not None and node.parent.level != "lane":
            node.parent.waiting -= 1
            node.parent.changed = True
            if node.parent.waiting <= 0:
                self._idle(node.parent)


def _charge(parent: Node, child: Node, cost: float) -> None:
    """Charge a domain or sender for a mail. Without a busy sibling, the parent's clock alone moves on."""
    if parent.waiting == 1:
        parent.clock = max(child.start, parent.clock) + cost / child.weight
        child.changed = True
    else:
        _move_on(parent, child, cost)


def _move_on(parent: Node, child: Node, cost: float) -> None:
    parent.clock = began = max(child.start, parent.clock)
    child.start = began + cost / child.weight
    child.moved = True


def _by_start(node: Node) -> float:
    return node.start


def _shared(nodes: Sequence[Node], clock: float, count: int) -> list[tuple[Node, int]]:
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
