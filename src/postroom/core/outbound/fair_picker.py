"""The fair picker of outgoing mail: lane, then tenant, then domain, then sender, start-time fair at every level.

Every node that has mail waiting has a start, the virtual time at which its next mail may begin. The child with the
smallest start goes next, and its start moves on by the cost of the mail divided by the child's weight. A parent's clock
is the start of the child that went last; a child that was idle counts from there, so idle time earns neither credit nor
debt. Within a sender, transactional mail goes before bulk mail, in the order of acceptance.

A domain or sender without a busy sibling needs no order: its start stays, and the parent's clock moves past its mail
instead. From there both count as soon as a sibling becomes busy. Most tenants have one busy domain, and most domains
one busy sender; their turns then need not be sorted in again for each mail.

Two corrections take the work in flight into account. A lane or tenant that holds more of the slots than it is entitled
to waits while another has work, since mail to slow destinations holds its slot for longer. And a tenant that is served
in one lane moves back in the others too, by up to LEAD mails, so that using several lanes does not multiply a share.

The picker does not see the whole queue. It is given the first few children of each node, as many as a batch can reach,
and raises `Missing` before it would have to guess; nothing has changed then. So choosing costs what the batch costs,
however much waits and for however many tenants.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from math import ceil

from postroom.core.outbound.fair_nodes import (
    BELOW,
    FIRST,
    REGARDED,
    InFlight,
    LaneNode,
    Mail,
    MovedBack,
    Node,
    Picked,
    Turn,
    TurnRow,
    Wanted,
)
from postroom.core.outbound.lanes import Lane, LanePolicy

LEAD = 8.0
GENEROSITY = 2.0
"""How often its part of the slots a tenant may hold while others wait: deliveries take different times."""


class FairPicker:
    """Chooses one batch. Give it what `wanted` asks for, level by level; then `pick` until it is enough, or None."""

    def __init__(self, policy: LanePolicy, clock: float, lanes: Mapping[Lane, Turn], held: InFlight) -> None:
        """`clock` is that of all lanes. Of a lane, `waiting` says whether it has work; its weight is the policy's."""
        self._policy = policy
        self._held = held
        self._tenants_held = dict(held.tenants)
        self._all_held = sum(held.tenants.values())
        self._root = Node("fifo", "root", Turn(0, 0.0, clock, 1.0, 0), None)
        self._lanes: dict[Lane, LaneNode] = {name: LaneNode(name, turn, self._root) for name, turn in lanes.items()}
        for name, lane in self._lanes.items():
            lane.held = held.lanes.get(name, 0)
        self._nodes: list[Node] = [self._root, *self._lanes.values()]
        self._tenants: dict[int, list[Node]] = {}
        self._served: dict[int, float] = {}
        self._busy: list[LaneNode] = []
        self._full: set[Lane] = set()
        """Lanes in which only tenants wait that get no more slots: they stay as they are."""
        self._spent: LaneNode | None = None
        """A lane of whose tenants one has become idle: it may have been the last."""
        self._weigh()

    @property
    def clock(self) -> float:
        return self._root.clock

    def wanted(self, most: int) -> Iterator[list[Wanted]]:
        """Say which children to load before `most` are picked, a level at a time; add each before asking for the next.

        It suffices if every mail has one recipient and no tenant holds too much; otherwise `pick` asks for more. Of a
        tenant with one busy domain, the whole way down to its first mail may be added at once.
        """
        shares = _share_out(self._busy, self._root.clock, most)
        yield [Wanted(lane, FIRST, max(count, REGARDED)) for lane, count in shares]
        for _ in ("tenant", "domain", "sender"):
            shares = _shared_below(shares)
            yield [Wanted(node, FIRST, count) for node, count in shares if not _suffices(node, count)]

    def add_turns(self, wanted: Wanted, turns: Sequence[TurnRow]) -> None:
        """Add the children that were asked for, in their order."""
        parent = wanted.node
        below, lane = BELOW[parent.level], parent.lane
        children = [Node(lane, below, turn, parent) for turn in turns]
        self._nodes += children
        if isinstance(parent, LaneNode):
            self._add_tenants(parent, children, first=wanted.after == FIRST)
        entries = [(child.start, child.id, child) for child in children]
        if parent.heap and wanted.after != FIRST:
            for entry in entries:
                heappush(parent.heap, entry)
        else:
            heapify(entries)
            parent.heap = entries
        if turns:
            id, start, *_ = turns[-1]
            parent.seen = start, id
        parent.whole = len(turns) < wanted.most

    def _add_tenants(self, lane: LaneNode, tenants: Sequence[Node], *, first: bool) -> None:
        if first:
            lane.weight_of_tenants = sum([tenant.weight for tenant in tenants[:REGARDED]])
        for tenant in tenants:
            self._tenants.setdefault(tenant.id, []).append(tenant)
            if tenant.id in self._served:
                self._move_back(tenant, self._served[tenant.id])

    def add_way(self, wanted: Wanted, domain: TurnRow, sender: TurnRow, mail: Mail) -> None:
        """Add the first domain of a tenant, its first sender and the first mail of that."""
        tenant = wanted.node
        first = Node(tenant.lane, "domain", domain, tenant)
        second = Node(tenant.lane, "sender", sender, first)
        tenant.heap, tenant.seen = [(first.start, first.id, first)], (first.start, first.id)
        first.heap, first.seen = [(second.start, second.id, second)], (second.start, second.id)
        second.mails, second.seen = [mail], (float(mail.bulk), mail.seq)
        # Of domains, senders and mails the number of those that wait is known.
        tenant.whole, first.whole, second.whole = tenant.waiting == 1, first.waiting == 1, second.waiting == 1
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

    def altered(self) -> list[Node]:
        """The nodes that have moved among their siblings, or changed otherwise, lanes and the root included."""
        return [node for node in self._nodes if node.moved or node.changed]

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
        """The tenant with the smallest start, of those that do not hold too much if there are any. None if no waiting
        tenant gets another slot.
        """
        tenant = lane.first()
        if tenant is None or tenant.id not in self._tenants_held or not self._is_passed_over(tenant, lane):
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
        """Whether the tenant holds half of the room that the others leave. Without a `room` none does."""
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
        self._root.changed = True
        lane.held += 1
        self._all_held += 1
        self._tenants_held[tenant.id] = self._tenants_held.get(tenant.id, 0) + 1
        by = cost / tenant.weight
        self._served[tenant.id] = self._served.get(tenant.id, 0.0) + by
        if len(lanes := self._tenants[tenant.id]) > 1:
            for other in lanes:
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
        """Choose nothing more from the lane: no tenant waits in it, or none that gets another slot."""
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
        start, clock = child.start, parent.clock
        parent.clock = (start if start > clock else clock) + cost / child.weight
        child.changed = True
    else:
        _move_on(parent, child, cost)


def _move_on(parent: Node, child: Node, cost: float) -> None:
    start, clock = child.start, parent.clock
    parent.clock = began = start if start > clock else clock
    child.start = began + cost / child.weight
    child.moved = True


def _shared_below(shares: Sequence[tuple[Node, int]]) -> list[tuple[Node, int]]:
    """How many of the next mails each of the known children would get."""
    below: list[tuple[Node, int]] = []
    for node, count in shares:
        if (heap := node.heap) and (count == 1 or len(heap) == 1):
            below.append((heap[0][2], count))
        elif heap:
            below += _share_out([child for _, _, child in heap], node.clock, count)
    return below


def _suffices(node: Node, count: int) -> bool:
    """Whether enough of the node is known to pick so many mails."""
    if node.level == "sender":
        return node.mails is not None and (node.whole or len(node.mails) >= count)
    return bool(node.heap) and (node.whole or count == 1)


def _by_start(node: Node) -> float:
    return node.start


def _share_out(nodes: Sequence[Node], clock: float, count: int) -> list[tuple[Node, int]]:
    """How many of the next `count` mails of one recipient each node would get, if each had enough of them."""
    if len(nodes) == 1:
        return [(nodes[0], count)]
    heap = [(node.start, node.id, place) for place, node in enumerate(nodes)]
    heapify(heap)
    got = [0] * len(nodes)
    for _ in range(count if nodes else 0):
        start, id, place = heap[0]
        node = nodes[place]
        if start > clock:
            clock = start
        got[place] += 1
        if node.level == "sender" and got[place] >= node.waiting:
            heappop(heap)
            if not heap:
                break
        else:
            heapreplace(heap, (clock + 1 / node.weight, id, place))
    return [(node, taken) for node, taken in zip(nodes, got, strict=True) if taken]
