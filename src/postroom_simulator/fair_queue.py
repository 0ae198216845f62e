"""The fair queue in memory, for the simulator: the picker that dispatchers use, given everything that waits.

A dispatcher gives a new picker the first few turns of each batch, out of the database. Here one picker knows all of
them and goes on from batch to batch, so that nothing is loaded or stored.
"""

from collections import deque
from heapq import heappush

from postroom.core.outbound.fair_nodes import InFlight, Level, Mail, Node, Picked, Turn
from postroom.core.outbound.fair_picker import FairPicker
from postroom.core.outbound.lanes import LANES, Lane, LanePolicy

Path = tuple[int, int, int]
"""Tenant, domain and sender."""
_LEVELS: tuple[Level, ...] = ("tenant", "domain", "sender")


class _Sender(Node):
    """A sender with all of its mail, transactional before bulk."""

    __slots__ = ("bulk", "transactional")

    def __init__(self, lane: Lane, turn: Turn, parent: Node) -> None:
        super().__init__(lane, "sender", turn, parent)
        self.transactional: deque[Mail] | None = None
        self.bulk: deque[Mail] | None = None

    def keep(self, mail: Mail) -> None:
        if mail.bulk:
            self.bulk = self.bulk or deque()
            self.bulk.append(mail)
        else:
            self.transactional = self.transactional or deque()
            self.transactional.append(mail)

    def next_mail(self) -> Mail | None:
        mails = self.transactional or self.bulk
        return mails.popleft() if mails else None


class FairQueue(FairPicker):
    """All waiting mail, whose turn it is, and how many slots lanes and tenants hold."""

    def __init__(self, policy: LanePolicy, slots: int) -> None:
        super().__init__(policy, 0.0, {lane: Turn(0, 0.0, 0.0, 0.0, 0) for lane in LANES}, InFlight(slots))
        self._senders: dict[tuple[Lane, int], _Sender] = {}
        self._above: dict[tuple[Lane, Level, int], Node] = {}
        for lane in self._lanes.values():
            lane.whole = True

    def put(self, lane: Lane, path: Path, mail: Mail, weights: tuple[float, float, float]) -> None:
        """Let a mail wait. A sender's mail is put in the order of acceptance."""
        sender = self._senders.get((lane, path[2])) or self._add_sender(lane, path, weights)
        sender.keep(mail)
        node: Node = sender
        while True:
            node.waiting += 1
            if node.waiting > 1 or node.parent is None:
                return
            if not node.listed:
                node.listed = True
                heappush(node.parent.heap, (node.start, node.id, node))
            if node.level == "tenant":
                self._begin(node)
                return
            node = node.parent

    def take(self, most: int) -> list[Picked]:
        """Take up to `most` mails, in the order of their turns. They hold slots until they are released."""
        picks: list[Picked] = []
        while len(picks) < most and (picked := self.pick()) is not None:
            picks.append(picked)
        self._served.clear()
        return picks

    def release(self, lane: Lane, tenant: int) -> None:
        """A mail of this tenant was delivered: its slot is free."""
        self._lanes[lane].held -= 1
        self._tenants_held[tenant] -= 1
        if not self._tenants_held[tenant]:
            del self._tenants_held[tenant]

    def withdraw(self, lane: Lane, sender: int) -> list[Mail]:
        """Take out all mail of a sender, as a throttle does."""
        node = self._senders.get((lane, sender))
        if node is None or not node.waiting:
            return []
        mails: list[Mail] = [*(node.transactional or ()), *(node.bulk or ())]
        node.transactional = node.bulk = None
        self._idle(node)
        return mails

    def _add_sender(self, lane: Lane, path: Path, weights: tuple[float, float, float]) -> _Sender:
        parent: Node = self._lanes[lane]
        for level, id, weight in zip(_LEVELS[:2], path, weights, strict=False):
            node = self._above.get((lane, level, id))
            if node is None:
                node = self._above[lane, level, id] = Node(lane, level, Turn(id, 0.0, 0.0, weight, 0), parent)
                node.heap, node.whole, node.listed = [], True, False
                if level == "tenant":
                    self._tenants.setdefault(id, []).append(node)
            parent = node
        sender = self._senders[lane, path[2]] = _Sender(lane, Turn(path[2], 0.0, 0.0, weights[2], 0), parent)
        sender.whole, sender.listed = True, False
        return sender

    def _begin(self, tenant: Node) -> None:
        """The tenant has become busy."""
        lane = self._lanes[tenant.lane]
        lane.waiting += 1
        lane.weight_of_tenants += tenant.weight
        if lane not in self._busy:
            self._weigh()

    def _idle(self, node: Node) -> None:
        super()._idle(node)
        if node.level == "tenant":
            lane = self._lanes[node.lane]
            lane.waiting -= 1
            lane.weight_of_tenants -= node.weight
