"""The turns of outgoing mail as the store keeps them, in memory: the picker is given only what it asks for."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import chain, islice

from postroom.core.outbound.fair_nodes import (
    BELOW,
    FIRST,
    LEVELS,
    InFlight,
    Level,
    Missing,
    MovedBack,
    Node,
    Picked,
    Turn,
    WaitingMail,
    Wanted,
)
from postroom.core.outbound.fair_picker import LEAD, FairPicker
from postroom.core.outbound.lanes import LANES, Lane, LanePolicy

Place = tuple[Lane, Level, int]


class TurnTable:
    """All waiting mail and whose turn it is."""

    def __init__(self) -> None:
        self._clock = 0.0
        self._turns: dict[Place, Turn] = {(lane, "lane", 0): Turn(0, 0.0, 0.0, 1.0, 0) for lane in LANES}
        self._parents: dict[Place, int] = {}
        self._children: defaultdict[Place, list[tuple[float, int]]] = defaultdict(list)
        self._mails: defaultdict[tuple[Lane, int], tuple[deque[WaitingMail], deque[WaitingMail]]] = defaultdict(
            lambda: (deque(), deque())
        )

    def put(
        self, lane: Lane, path: tuple[int, int, int], mail: WaitingMail, weights: tuple[float, float, float]
    ) -> None:
        """Let a mail wait. `path` and `weights` are those of its tenant, domain and sender."""
        self._mails[lane, path[2]][mail.bulk].append(mail)
        parents = (0, *path)
        for depth in (3, 2, 1):
            place = (lane, LEVELS[depth], path[depth - 1])
            turn = self._turns.get(place) or Turn(place[2], 0.0, 0.0, weights[depth - 1], 0)
            self._parents[place] = parents[depth - 1]
            self._set(place, turn._replace(waiting=turn.waiting + 1))
            if turn.waiting:
                return

    def choose(self, policy: LanePolicy, held: InFlight, most: int) -> list[Picked]:
        """Take up to `most` mails, in the order of their turns."""
        lanes: dict[Lane, Turn] = {}
        for lane in LANES:
            lanes[lane] = self._turns[lane, "lane", 0]._replace(waiting=len(self._children[lane, "lane", 0]))
        picker = FairPicker(policy, self._clock, lanes, held)
        for level in picker.wanted(most):
            for wanted in level:
                self._load(picker, wanted)
        picks: list[Picked] = []
        while len(picks) < most:
            try:
                picked = picker.pick()
            except Missing as missing:
                self._load(picker, missing.wanted)
                continue
            if picked is None:
                break
            picks.append(picked)
            self._mails[picked.lane, picked.sender][picked.mail.bulk].popleft()
        self._keep(picker.altered(), picker.moved_back())
        self._clock = picker.clock
        return picks

    def _load(self, picker: FairPicker, wanted: Wanted) -> None:
        lane, level, parent = wanted.node.lane, wanted.node.level, wanted.node.id
        if level == "sender":
            # Those that were given before have been taken.
            picker.add_mails(wanted, list(islice(chain(*self._mails[lane, parent]), wanted.most)))
            return
        if level == "tenant" and wanted.after == FIRST and (wanted.most == 1 or wanted.node.waiting == 1):
            # As the store does: the whole way down to the first mail.
            domain = self._first_below(lane, "domain", level, parent)
            sender = self._first_below(lane, "sender", "domain", domain.id)
            picker.add_way(wanted, domain, sender, next(chain(*self._mails[lane, sender.id])))
            return
        children = self._children[lane, level, parent]
        at = bisect_right(children, wanted.after)
        below = BELOW[level]
        picker.add_turns(wanted, [self._turns[lane, below, id] for _, id in children[at : at + wanted.most]])

    def _first_below(self, lane: Lane, level: Level, above: Level, parent: int) -> Turn:
        return self._turns[lane, level, self._children[lane, above, parent][0][1]]

    def _keep(self, altered: Sequence[Node], moved_back: Sequence[MovedBack]) -> None:
        for node in altered:
            if node.level == "root":
                continue
            place: Place = node.lane, node.level, node.id
            turn = self._turns[place]._replace(start=node.start, clock=node.clock)
            if node.level == "lane":
                self._turns[place] = turn
            else:
                self._set(place, turn._replace(waiting=turn.waiting - node.taken))
        for tenant, by, known in moved_back:
            for lane in LANES:
                turn = self._turns.get((lane, "tenant", tenant))
                if turn is not None and turn.waiting and lane not in known:
                    latest = self._turns[lane, "lane", 0].clock + LEAD / turn.weight
                    start = max(turn.start, min(turn.start + by, latest))
                    self._set((lane, "tenant", tenant), turn._replace(start=start))

    def _set(self, place: Place, turn: Turn) -> None:
        """Replace a turn, and its place among its siblings."""
        lane, level, id = place
        line = self._children[lane, LEVELS[LEVELS.index(level) - 1], self._parents[place]]
        before = self._turns.get(place)
        if before is not None and before.waiting:
            del line[bisect_left(line, (before.start, id))]
        if turn.waiting:
            insort(line, (turn.start, id))
        self._turns[place] = turn
