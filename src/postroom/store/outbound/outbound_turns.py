"""Whose turn it is among outgoing mail: what waits is counted with the mail, and batches are chosen by the fair picker.

    joining ──► ready, counted at its sender ──choose──► leased
                        │ its sender was idle: counted at the domain; that was idle: at the tenant

A node that has mail waiting stands in the index of its parent, in the order of turns, unless it is held. Writers that
make a node busy or idle lock it from the sender upward; a chooser locks from the root downward, and only what is busy.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.errors import Collided
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
    TurnRow,
    WaitingMail,
    Wanted,
)
from postroom.core.outbound.fair_picker import LEAD, FairPicker
from postroom.core.outbound.lanes import LANES, Lane, LanePolicy
from postroom.core.outbound.priority import SenderLane
from postroom.core.outbound.rollout import Rollout
from postroom.store.engine.codecs import as_uuid, rows_text
from postroom.store.engine.database import Script, query, sql, sql_many, transaction
from postroom.store.engine.reading import read_rows

FIFO = 0
MOVED_AT_ONCE = 1000
"""The turn of all mail of tenants that are not on the fair queue."""


class TurnPlace(NamedTuple):
    """The place of a sender's mail among the turns: tenant, domain and sender, each with its weight, and whether it is
    held back."""

    lane: Lane
    nodes: tuple[int, int, int]
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    held: tuple[bool, bool, bool] = (False, False, False)


class SenderTurn(NamedTuple):
    """A sender as far as turns are concerned: where it belongs, and in which lane its mail waits now."""

    id: int
    domain_id: int
    tenant_id: int
    tenant: str
    weight: float
    domain_weight: float
    tenant_weight: float
    tenant_paused: bool
    lane: SenderLane
    held: bool

    def standing(self, rollout: Rollout, *, retry: bool = False) -> TurnPlace:
        return self.in_lane("retry" if retry else self.lane) if rollout.is_fair(self.tenant) else IN_ORDER

    def in_lane(self, lane: Lane) -> TurnPlace:
        return TurnPlace(
            lane,
            (self.tenant_id, self.domain_id, self.id),
            (self.tenant_weight, self.domain_weight, self.weight),
            (self.tenant_paused, False, self.held),
        )


class ReadyMail(NamedTuple):
    """A mail that may leave now. `cost` is how many recipients it goes to, `retry` whether it was tried before."""

    id: UUID
    seq: int
    bulk: bool
    cost: int
    retry: bool = False


IN_ORDER = TurnPlace("fifo", (FIFO, FIFO, FIFO))
"""Where mail of tenants waits that are not on the fair queue."""


def joining(mails: Iterable[tuple[TurnPlace, ReadyMail]]) -> Script[None]:
    """Part of a transaction: let mail wait for its turn. Its row must say `ready`."""
    counts: Counter[TurnPlace] = Counter()
    rows: list[tuple[object, ...]] = []
    for standing, mail in mails:
        fair = standing is not IN_ORDER
        rows.append((mail.seq, mail.id, standing.nodes[2], fair and mail.retry, fair and mail.bulk, mail.cost))
        counts[standing] += 1
    if rows:
        yield sql("insert_ready", rows_text(rows))
        yield from _counting(counts)


def leaving(mail_id: UUID) -> Script[None]:
    """Part of a transaction: the mail does not wait for its turn any more, if it did."""
    for turn_id, retry in (yield sql("delete_ready", mail_id)):
        yield sql("unready_mail", mail_id)
        if turn_id == FIFO:
            yield from _counting({IN_ORDER: -1})
        else:
            turn = (yield from _turns_of([turn_id]))[turn_id]
            yield from _counting({turn.in_lane("retry" if retry else turn.lane): -1})


def placing(sender_id: int, lane: SenderLane, held: bool) -> Script[SenderTurn]:
    """Part of a transaction: the sender's mail waits in this lane from now on, and is held back or not.

    This touches a few rows, however much waits.
    """
    turn = (yield from _turns_of([sender_id]))[sender_id]
    if (turn.lane, turn.held) == (lane, held):
        return turn
    placed = turn._replace(lane=lane, held=held)
    waiting = {row[0]: row[1] for row in (yield sql("lock_lanes", "sender", sender_id))}.get(turn.lane, 0)
    moved = {placed.in_lane(turn.lane): -waiting, placed.in_lane(lane): waiting} if lane != turn.lane else {}
    domains: Counter[TurnPlace] = Counter()
    for name, others in (yield sql("hold_turns", "sender", sender_id, held)):
        if others:
            domains[placed.in_lane(name)] = -1 if held else 1
    yield from _counting(moved if waiting else {}, domains)
    yield sql("place_sender", sender_id, lane, held)
    return placed


def holding_tenant(tenant_id: int, held: bool) -> Script[None]:
    """Part of a transaction: mail of the tenant stays, or takes part again."""
    yield sql("lock_lanes", "tenant", tenant_id)
    yield sql("hold_turns", "tenant", tenant_id, held)


def weighing_tenant(tenant_id: int, weight: float) -> Script[None]:
    """Part of a transaction: the tenant's share changes from its next mail on."""
    yield sql("lock_lanes", "tenant", tenant_id)
    yield sql("weigh_turns", "tenant", tenant_id, weight)


def waking(rollout: Rollout, most: int, now: datetime) -> Script[int]:
    """Part of a transaction: let mail that has become due wait for its turn. Returns how many."""
    rows = yield sql("wake_mail", most, now)
    if not rows:
        return 0
    turns = yield from _turns_of(sorted({row[2] for row in rows}))
    mails: list[tuple[TurnPlace, ReadyMail]] = []
    for id, seq, sender_id, message_class, cost, retry in rows:
        mail = ReadyMail(as_uuid(id), seq, message_class == "bulk", max(1, cost), bool(retry))
        mails.append((turns[sender_id].standing(rollout, retry=mail.retry), mail))
    yield from joining(mails)
    return len(rows)


@transaction
def apply_rollout(rollout: Rollout, after: int, most: int = MOVED_AT_ONCE) -> Script[int | None]:
    """Move waiting mail after the place `after` whose tenant has joined or left the fair queue to where it belongs.

    Returns the place from which to go on; None at the end. Mail keeps its order of acceptance, and waits all the time;
    nothing is chosen meanwhile.
    """
    yield from locking_turns()
    rows = yield sql("lock_ready", after, most)
    turns = yield from _turns_of(sorted({row[3] for row in rows}))
    counts: Counter[TurnPlace] = Counter()
    moved: list[tuple[object, ...]] = []
    for seq, turn_id, retry, sender_id, message_class, tried in rows:
        turn = turns[sender_id]
        before = IN_ORDER if turn_id == FIFO else turn.in_lane("retry" if retry else turn.lane)
        standing = turn.standing(rollout, retry=bool(tried))
        fair = standing is not IN_ORDER
        if fair == (turn_id == FIFO):
            counts[before] -= 1
            counts[standing] += 1
            moved.append((seq, standing.nodes[2], fair and bool(tried), fair and message_class == "bulk"))
    if moved:
        yield sql("move_ready", rows_text(moved))
        yield from _counting(counts)
    return rows[-1][0] if len(rows) == most else None


def _turns_of(sender_ids: Sequence[int]) -> Script[dict[int, SenderTurn]]:
    rows = yield sql("select_sender_turns", list(sender_ids))
    return {turn.id: turn for turn in read_rows(SenderTurn, rows)}


class Miscounted(NamedTuple):
    """A node that counts another number of waiting children than it has, which is a bug."""

    lane: Lane
    level: Level
    node_id: int
    waiting: int
    right_count: int


@query
def miscounted_turns() -> Script[list[Miscounted]]:
    return read_rows(Miscounted, (yield sql("select_miscounted_turns")))


class Chosen(NamedTuple):
    """The mails whose turn it is, and the turns as they are once these are taken."""

    picks: list[Picked]
    picker: FairPicker
    elsewhere: set[int]
    """Tenants that may wait in other lanes too."""


def choosing(policy: LanePolicy, held: InFlight, most: int) -> Script[Chosen]:
    """Part of a transaction: choose the next mails. Nothing is written yet: take them, then `keep` the turns.

    Others choose after the end of the transaction. What waits may change meanwhile; then the turns cannot be kept.
    """
    yield from locking_turns()
    clock, lanes = 0.0, dict[Lane, Turn]()
    for lane, level, start, lane_clock, busy in (yield sql("select_lanes")):
        if level == "root":
            clock = lane_clock
        else:
            lanes[lane] = Turn(0, start, lane_clock, 1.0, int(busy))
    chosen = Chosen([], FairPicker(policy, clock, {lane: lanes[lane] for lane in LANES}, held), set())
    picks, picker, _ = chosen
    for wanted in picker.wanted(most):
        if wanted:
            yield from _loading(chosen, wanted)
    while len(picks) < most:
        try:
            picked = picker.pick()
        except Missing as missing:
            yield from _loading_more(chosen, missing.wanted)
            continue
        if picked is None:
            break
        picks.append(picked)
    return chosen


def keeping(chosen: Chosen) -> Script[None]:
    """Part of a transaction: keep the turns, once the chosen mails wait no more.

    From the sender upward, as everybody who makes a node busy or idle. Raises Collided if one of them does not take
    part any more.
    """
    by_level: defaultdict[Level, list[Node]] = defaultdict(list)
    for node in chosen.picker.altered():
        by_level[node.level].append(node)
    yield from _keeping(by_level["sender"])
    domains = by_level["domain"]
    if any(node.taken for node in domains):
        yield from _keeping(domains)
        domains = []
    yield from _keeping([*domains, *by_level["tenant"], *by_level["lane"], *by_level["root"]])
    if chosen.elsewhere:
        yield from _moving_back([each for each in chosen.picker.moved_back() if each.tenant in chosen.elsewhere])


def _keeping(nodes: Sequence[Node]) -> Script[None]:
    left: list[Node] = list(nodes)
    while left:
        moved: list[Node] = [node for node in left if node.moved]
        changed: list[Node] = [node for node in left if not node.moved]
        found = yield sql_many("keep_turns", _kept_rows(moved), _kept_rows(changed))
        if not found:
            return
        # PostgreSQL says which it has kept, and how much waits there: others may have changed a row since it was read.
        kept: dict[int, int] = dict(zip(*(column or () for column in found[0]), strict=True))
        if not kept:
            raise Collided("what was chosen does not take part any more; choose again")
        left = [*moved, *changed]
        for place, waiting in kept.items():
            if (waiting > 0) != (left[place].waiting > 0) and (parent := left[place].parent) is not None:
                parent.correct(1 if waiting else -1)
        left = [node for place, node in enumerate(left) if place not in kept]


def _kept_rows(nodes: Sequence[Node]) -> list[tuple[object, ...]]:
    return [(node.start, node.clock, node.taken, node.lane, node.level, node.id) for node in nodes]


def locking_turns() -> Script[None]:
    """Let nothing be chosen by others until the end of the transaction."""
    if not (yield sql("lock_turns")):
        yield sql("insert_lanes")
        yield sql("lock_turns")


def _moving_back(tenants: Sequence[MovedBack]) -> Script[None]:
    """Few tenants wait in several lanes: those are looked for first."""
    known = {each.tenant: each for each in tenants}
    rows: list[tuple[Lane, int, float]] = []
    for lane, tenant in (yield sql("select_lanes_of_tenants", list(known))):
        if lane not in known[tenant].known:
            rows.append((lane, tenant, known[tenant].by))
    if rows:
        yield sql("move_tenants_back", rows_text(rows), LEAD)


def _loading(chosen: Chosen, wanted: list[Wanted]) -> Script[None]:
    """Load the first children of nodes of one level. Rows come in order within each place."""
    match wanted[0].node.level:
        case "lane":
            rows = [(place, each.node.lane, each.most) for place, each in enumerate(wanted)]
            found = yield sql_many("select_first_tenants", rows)
            chosen.elsewhere.update([row[1] for row in found if row[6]])
            _add_turns(chosen.picker, wanted, found)
        case "tenant":
            # Of those with one busy domain, the whole way down at once.
            ways = [each for each in wanted if each.most == 1 or each.node.waiting == 1]
            yield from _loading_ways(chosen.picker, ways)
            if len(ways) < len(wanted):
                others = [each for each in wanted if each.most > 1 and each.node.waiting > 1]
                yield from _loading_turns(chosen.picker, others)
        case "domain":
            yield from _loading_turns(chosen.picker, wanted)
        case "sender":
            rows = [(place, each.node.id, each.node.lane == "retry", each.most) for place, each in enumerate(wanted)]
            _add_mails(chosen.picker, wanted, (yield sql_many("select_first_ready", rows)))
        case "root":
            raise AssertionError("the lanes are loaded first")


def _loading_turns(picker: FairPicker, wanted: list[Wanted]) -> Script[None]:
    below = BELOW[wanted[0].node.level]
    rows = [(place, each.node.lane, below, each.node.id, each.most) for place, each in enumerate(wanted)]
    _add_turns(picker, wanted, (yield sql_many("select_first_turns", rows)))


def _loading_ways(picker: FairPicker, wanted: list[Wanted]) -> Script[None]:
    """Load the first mail of tenants, and the turns on the way to it."""
    rows = [(place, each.node.lane, each.node.id) for place, each in enumerate(wanted)]
    for row in (yield sql_many("select_first_mails", rows)):
        place: int = row[0]
        picker.add_way(wanted[place], row[1:6], row[6:11], WaitingMail(row[11], row[12], bool(row[13])))


def _loading_more(chosen: Chosen, wanted: Wanted) -> Script[None]:
    """Load children after those that are known, or the first ones."""
    node, after = wanted.node, wanted.after
    if after == FIRST:
        yield from _loading(chosen, [wanted])
    elif node.level == "sender":
        rows = [(node.id, node.lane == "retry", bool(after[0]), after[1], wanted.most)]
        _add_mails(chosen.picker, [wanted], (yield sql("select_next_ready", rows_text(rows))))
    else:
        rows = [(node.lane, BELOW[node.level], node.id, *after, wanted.most)]
        found = yield sql("select_next_turns", rows_text(rows))
        if node.level == "lane":
            chosen.elsewhere.update([row[1] for row in found])
        _add_turns(chosen.picker, [wanted], found)


def _add_turns(picker: FairPicker, wanted: Sequence[Wanted], rows: Sequence[Sequence[Any]]) -> None:
    turns: list[list[TurnRow]] = [[] for _ in wanted]
    for row in rows:
        place: int = row[0]
        turns[place].append(row[1:6])
    for each, found in zip(wanted, turns, strict=True):
        picker.add_turns(each, found)


def _add_mails(picker: FairPicker, wanted: Sequence[Wanted], rows: Sequence[Sequence[Any]]) -> None:
    mails: list[list[WaitingMail]] = [[] for _ in wanted]
    place: int
    for place, seq, cost, bulk in rows:
        mails[place].append(WaitingMail(seq, cost, bool(bulk)))
    for each, found in zip(wanted, mails, strict=True):
        picker.add_mails(each, found)


def _counting(senders: Mapping[TurnPlace, int], domains: Mapping[TurnPlace, int] | None = None) -> Script[None]:
    """Change how much waits at senders, and also at domains; nodes above that become busy or idle count it in turn.

    Nodes are locked from the sender upward, and on each level in the order of their keys, so that two writers cannot
    deadlock.
    """
    counts = senders
    for depth in (3, 2, 1):
        merged: dict[tuple[Lane, int], tuple[TurnPlace, int]] = {}
        for standing, change in counts.items():
            key = standing.lane, standing.nodes[depth - 1]
            merged[key] = standing, merged.get(key, (standing, 0))[1] + change
        changed: Counter[TurnPlace] = Counter()
        for lane, node, waiting, held in (yield from _adding(depth, merged)):
            standing, change = merged[lane, node]
            changed[standing] += 0 if held else (waiting > 0) - (waiting - change > 0)
        if depth == 3:
            changed.update(domains or {})
        counts = {standing: change for standing, change in changed.items() if change}


def _adding(depth: int, merged: Mapping[tuple[Lane, int], tuple[TurnPlace, int]]) -> Script[Iterable[Sequence[Any]]]:
    level: Level = LEVELS[depth]
    rows: list[tuple[object, ...]] = []
    fewer: list[tuple[object, ...]] = []
    for (lane, node), (standing, change) in sorted(merged.items(), key=lambda item: item[0]):
        parent = standing.nodes[depth - 2] if depth > 1 else 0
        if change:
            more = max(0, change)
            rows.append((lane, level, node, parent, standing.weights[depth - 1], more, standing.held[depth - 1]))
        if change < 0:
            fewer.append((lane, level, node, -change))
    found: dict[tuple[Any, Any], Sequence[Any]] = {}
    if len(rows) > len(fewer) or len(fewer) > 1:
        # Nothing is added where fewer wait, but all are locked in one order.
        found.update({(row[0], row[1]): row for row in (yield sql("add_waiting", rows_text(rows)))})
    if fewer:
        found.update({(row[0], row[1]): row for row in (yield sql("subtract_waiting", rows_text(fewer)))})
    return found.values()
