"""The nodes among which the fair picker chooses: lanes, tenants, domains and senders, each with its turn.

A node knows only those of its children that it was given, the first ones in the order of their turns. It raises
`Missing` before it would have to guess about the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heapreplace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

from postroom.core.outbound.lanes import Lane

Level = Literal["root", "lane", "tenant", "domain", "sender"]
LEVELS: tuple[Level, ...] = ("lane", "tenant", "domain", "sender")
BELOW: Mapping[Level, Level] = dict(pairwise(LEVELS))

FIRST: tuple[float, int] = (float("-inf"), 0)
REGARDED = 32
"""How many tenants of a lane are weighed against one of them: with more, each may hold as much as with this many."""
MORE = 8


class Turn(NamedTuple):
    """The position of a node in a lane. `waiting` counts its children that wait; of a sender, its mails."""

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


class Missing(Exception):
    """The picker needs more nodes before it can continue."""

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

    Mail to slow destinations may be delivered beyond the slots, up to `room`: then no tenant gets more than half of the
    room that the others leave, whether they have work or not, so that the next one always has a slot.
    """

    slots: int
    lanes: Mapping[Lane, int] = field(default_factory=dict[Lane, int])
    tenants: Mapping[int, int] = field(default_factory=dict[int, int])
    limits: Mapping[Lane, int] = field(default_factory=dict[Lane, int])
    room: int | None = None


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
        "changed", "clock", "given", "heap", "id", "lane", "level", "listed", "mails",
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
        self.given: int = self.waiting
        """How many waited at the beginning."""
        self.changed = False
        self.moved = False
        """Whether its place among its siblings has changed: its start, or that it waits."""
        self.listed = True
        """Whether the parent's heap holds it."""

    @property
    def taken(self) -> int:
        """How many of its children wait no more; of a sender, how many mails were taken."""
        return self.given - self.waiting

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
            elif self.whole or start < self.seen[0] or (start == self.seen[0] and id <= self.seen[1]):
                return child
            else:
                break
        if self.whole:
            return None
        raise Missing(Wanted(self, self.seen, max(self.least, len(heap))))

    @property
    def least(self) -> int:
        """How many children are asked for at least, when some are missing."""
        return MORE

    def correct(self, change: int) -> None:
        """One child more waits, or less, than was thought: the node, and those above it, may be busy or idle."""
        node: Node | None = self
        while node is not None and node.level != "lane":
            was_busy = node.waiting > 0
            node.waiting += change
            node.changed = True
            if (node.waiting > 0) == was_busy:
                return
            node = node.parent

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
        self.weight_of_tenants = 0.0
        """That of the first REGARDED of them, once they are known."""
        self.held = 0
        self.entitled = 0

    @property
    def taken(self) -> int:
        """Whether a lane has work is not kept."""
        return 0

    @property
    def least(self) -> int:
        return MORE if self.seen != FIRST else REGARDED
