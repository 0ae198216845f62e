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

from postroom.core.outbound.fair_picker import (
    BELOW,
    FIRST,
    LEAD,
    LEVELS,
    REGARDED,
    FairPicker,
    InFlight,
    Level,
    Missing,
    MovedBack,
    Picked,
    Turn,
    TurnRow,
    WaitingMail,
    Wanted,
)
from postroom.core.outbound.lanes import LANES, Lane, LanePolicy
from postroom.core.outbound.priority import SenderLane
from postroom.core.outbound.rollout import Rollout
from postroom.store.engine.codecs import as_uuid, rows_text
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_rows

FIFO = 0
"""The turn of all mail of tenants that are not on the fair queue."""


class Standing(NamedTuple):
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

    def standing(self, rollout: Rollout, *, retry: bool = False) -> Standing:
        return self.in_lane("retry" if retry else self.lane) if rollout.is_fair(self.tenant) else IN_ORDER

    def in_lane(self, lane: Lane) -> Standing:
        return Standing(
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


IN_ORDER = Standing("fifo", (FIFO, FIFO, FIFO))
"""Where mail of tenants waits that are not on the fair queue."""


def joining(mails: Iterable[tuple[Standing, ReadyMail]]) -> Script[None]:
    """Part of a transaction: let mail wait for its turn. Its row must say `ready`."""
    counts: Counter[Standing] = Counter()
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
    if lane != turn.lane:
        for (waiting,) in (yield sql("lock_turn", turn.lane, "sender", sender_id)):
            if waiting:
                yield from _counting({turn.in_lane(turn.lane): -waiting})
                yield from _counting({turn.in_lane(lane): waiting})
    for name, waiting in (yield sql("hold_turns", "sender", sender_id, held)):
        if waiting:
            yield from _counting({turn.in_lane(name): -1 if held else 1}, depth=2)
    yield sql("place_sender", sender_id, lane, held)
    return turn._replace(lane=lane, held=held)


def holding_tenant(tenant_id: int, held: bool) -> Script[None]:
    """Part of a transaction: mail of the tenant stays, or takes part again."""
    yield sql("hold_turns", "tenant", tenant_id, held)


def weighing_tenant(tenant_id: int, weight: float) -> Script[None]:
    """Part of a transaction: the tenant's share changes from its next mail on."""
    yield sql("weigh_turns", "tenant", tenant_id, weight)


def waking(rollout: Rollout, most: int, now: datetime) -> Script[int]:
    """Part of a transaction: let mail that has become due wait for its turn. Returns how many."""
    rows = yield sql("wake_mail", most, now)
    if not rows:
        return 0
    turns = yield from _turns_of(sorted({row[2] for row in rows}))
    mails: list[tuple[Standing, ReadyMail]] = []
    for id, seq, sender_id, message_class, cost, retry in rows:
        mail = ReadyMail(as_uuid(id), seq, message_class == "bulk", max(1, cost), bool(retry))
        mails.append((turns[sender_id].standing(rollout, retry=mail.retry), mail))
    yield from joining(mails)
    return len(rows)


def rejoining(rollout: Rollout, after: int, most: int) -> Script[int | None]:
    """Part of a transaction: let mail after the place `after` wait where its tenant belongs by this roll-out.

    Returns the place up to which it is done; None at the end. Nothing is chosen meanwhile.
    """
    yield from _locking()
    rows = yield sql("lock_ready", after, most)
    turns = yield from _turns_of(sorted({row[3] for row in rows}))
    counts: Counter[Standing] = Counter()
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


def choosing(policy: LanePolicy, held: InFlight, most: int) -> Script[list[Picked]]:
    """Part of a transaction: take the turns of the next mails."""
    yield from _locking()
    clock, lanes = 0.0, dict[Lane, Turn]()
    for lane, level, start, lane_clock, weight in (yield sql("select_lanes", REGARDED)):
        if level == "root":
            clock = lane_clock
        else:
            lanes[lane] = Turn(0, start, lane_clock, weight or 0.0, int(weight is not None))
    picker = FairPicker(policy, clock, {lane: lanes[lane] for lane in LANES}, held)
    for wanted in picker.wanted(most):
        if wanted:
            yield from _loading(picker, wanted)
    picks: list[Picked] = []
    while len(picks) < most:
        try:
            picked = picker.pick()
        except Missing as missing:
            yield from _loading(picker, [missing.wanted])
            continue
        if picked is None:
            break
        picks.append(picked)
    if picks:
        root = ("fifo", "root", FIFO, 0.0, picker.clock, 0)
        yield sql("keep_turns", rows_text(picker.moved()), rows_text([*picker.changed(), root]))
        yield from _moving_back(picker.moved_back())
    return picks


def _locking() -> Script[None]:
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


def _loading(picker: FairPicker, wanted: list[Wanted]) -> Script[None]:
    """Load what the picker wants, all of one level. Rows come in order within each place."""
    if wanted[0].level == "sender":
        rows = [(each.parent, each.lane == "retry", *_mails_after(each.after), each.most) for each in wanted]
        mails: defaultdict[int, list[WaitingMail]] = defaultdict(list)
        for place, seq, cost, bulk in (yield sql("select_ready", rows_text(rows))):
            mails[place].append(WaitingMail(seq, cost, bool(bulk)))
        for place, each in enumerate(wanted):
            picker.add_mails(each, mails[place])
        return
    if wanted[0].level == "tenant":
        singles = [each for each in wanted if each.most == 1 and each.after == FIRST]
        wanted = [each for each in wanted if each.most != 1 or each.after != FIRST]
        if singles:
            yield from _loading_ways(picker, singles)
        if not wanted:
            return
    turns: defaultdict[int, list[TurnRow]] = defaultdict(list)
    below = BELOW[wanted[0].level]
    rows = [(each.lane, below, each.parent, *_turns_after(each.after), each.most) for each in wanted]
    for place, *turn in (yield sql("select_next_turns", rows_text(rows))):
        turns[place].append(turn)
    for place, each in enumerate(wanted):
        picker.add_turns(each, turns[place])


def _loading_ways(picker: FairPicker, wanted: list[Wanted]) -> Script[None]:
    """Load the first mail of tenants of whom one is wanted, and the turns on the way to it."""
    for row in (yield sql("select_first_mails", rows_text([(each.lane, each.parent) for each in wanted]))):
        mail = WaitingMail(row[11], row[12], bool(row[13]))
        place: int = row[0]
        picker.add_way(wanted[place], row[1:6], row[6:11], mail)


def _turns_after(after: tuple[float, int]) -> tuple[float | None, int]:
    return (None, 0) if after == FIRST else after


def _mails_after(after: tuple[float, int]) -> tuple[bool, int]:
    return (False, -1) if after == FIRST else (bool(after[0]), after[1])


def _counting(counts: Mapping[Standing, int], depth: int = 3) -> Script[None]:
    """Change how much waits at the nodes of this depth; those above that become busy or idle count that in turn."""
    while counts and depth:
        merged: dict[tuple[Lane, int], tuple[Standing, int]] = {}
        for standing, change in counts.items():
            key = standing.lane, standing.nodes[depth - 1]
            merged[key] = standing, merged.get(key, (standing, 0))[1] + change
        changed: Counter[Standing] = Counter()
        for lane, node, waiting, held in (yield from _adding(depth, merged)):
            standing, change = merged[lane, node]
            changed[standing] += 0 if held else (waiting > 0) - (waiting - change > 0)
        counts = {standing: change for standing, change in changed.items() if change}
        depth -= 1


def _adding(depth: int, merged: Mapping[tuple[Lane, int], tuple[Standing, int]]) -> Script[list[Sequence[Any]]]:
    level: Level = LEVELS[depth]
    more: list[tuple[object, ...]] = []
    fewer: list[tuple[object, ...]] = []
    for (lane, node), (standing, change) in sorted(merged.items(), key=lambda item: item[0]):
        parent = standing.nodes[depth - 2] if depth > 1 else 0
        if change > 0:
            more.append((lane, level, node, parent, standing.weights[depth - 1], change, standing.held[depth - 1]))
        elif change:
            fewer.append((lane, level, node, -change))
    found: list[Sequence[Any]] = []
    if more:
        found += yield sql("add_waiting", rows_text(more))
    if fewer:
        found += yield sql("subtract_waiting", rows_text(fewer))
    return found
