"""The fair picker: nothing idles, nobody gets more than their part, and idle time earns nothing."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.core.outbound.fair_nodes import InFlight, Picked, WaitingMail
from postroom.core.outbound.lanes import LANES, PRIORITY_SHARES, RETRY_SHARE, Lane, LanePolicy
from postroom_simulator.fair_queue import FairQueue
from support.scale import scale
from support.turn_table import TurnTable

POLICY = LanePolicy.of()
UNLIMITED = InFlight(10**9)
many = settings(max_examples=scale(200, 5_000), deadline=None)

Path = tuple[int, int, int]
Node = tuple[int, ...]


class Queued(NamedTuple):
    lane: Lane
    path: Path
    mail: WaitingMail


class Model:
    """The same queue, written down in full and chosen from one mail at a time: slow, and plainly right."""

    def __init__(self, weights: dict[tuple[int, int], float]) -> None:
        self.weights = weights
        self.waiting: list[Queued] = []
        self.starts: defaultdict[tuple[Lane, Node], float] = defaultdict(float)
        self.clocks: defaultdict[tuple[Lane, Node], float] = defaultdict(float)
        self.lane_starts: defaultdict[Lane, float] = defaultdict(float)
        self.clock = 0.0

    def choose(self) -> Queued | None:
        busy: list[Lane] = [lane for lane in LANES if any(each.lane == lane for each in self.waiting)]
        if not busy:
            return None
        lane = min(busy, key=lambda each: self.lane_starts[each])
        here = [each for each in self.waiting if each.lane == lane]
        for depth in range(3):
            nodes: set[Node] = {each.path[: depth + 1] for each in here}
            first = min(nodes, key=lambda node: (self.starts[lane, node], node[-1]))
            here = [each for each in here if each.path[: depth + 1] == first]
        chosen = min(here, key=lambda each: (each.mail.bulk, each.mail.seq))
        self._serve(lane, chosen, POLICY.weights(busy)[lane])
        self.waiting.remove(chosen)
        return chosen

    def _serve(self, lane: Lane, chosen: Queued, weight_of_lane: float) -> None:
        cost = chosen.mail.cost
        self.clock = began = max(self.lane_starts[lane], self.clock)
        self.lane_starts[lane] = began + cost / weight_of_lane
        for depth in range(3):
            node: Node = chosen.path[: depth + 1]
            parent: Node = chosen.path[:depth]
            began = max(self.starts[lane, node], self.clocks[lane, parent])
            ended = began + cost / self.weights[depth, node[-1]]
            siblings = {
                each.path[: depth + 1] for each in self.waiting if each.lane == lane and each.path[:depth] == parent
            }
            if depth and siblings == {node}:
                self.clocks[lane, parent] = ended
            else:
                self.clocks[lane, parent], self.starts[lane, node] = began, ended


# A domain is of one tenant and a sender of one domain: 100 * tenant + 10 * domain + sender.
paths = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2)).map(
    lambda each: (each[0], 10 * each[0] + each[1], 100 * each[0] + 10 * each[1] + each[2])
)
weights_of_nodes = st.sampled_from((0.25, 0.5, 1.0, 2.0, 4.0))
steps = st.lists(
    st.one_of(
        st.tuples(paths, st.integers(1, 4), st.booleans(), st.integers(1, 6)),
        st.integers(1, 9),
    ),
    max_size=40,
)


@many
@given(
    steps,
    st.lists(st.sampled_from(LANES), min_size=5, max_size=5),
    st.lists(weights_of_nodes, min_size=15, max_size=15),
)
def test_a_batch_is_what_choosing_one_by_one_from_the_whole_queue_gives(
    program: Sequence[tuple[Path, int, bool, int] | int], lanes: list[Lane], some: list[float]
) -> None:
    weights = {(depth, id): some[(5 * depth + id) % 15] for depth in range(3) for id in range(450)}
    table, model, seq = TurnTable(), Model(weights), 0
    queue = FairQueue(POLICY, UNLIMITED.slots)
    for step in program:
        if isinstance(step, int):
            expected = [each.mail.seq for _ in range(step) if (each := model.choose()) is not None]
            assert [each.mail.seq for each in table.choose(POLICY, UNLIMITED, step)] == expected
            assert [each.mail.seq for each in queue.take(step)] == expected
            continue
        # Each tenant is in one lane: how far a tenant moves back in its other lanes may depend on the batches.
        path, cost, bulk, count = step
        lane = lanes[path[0]]
        for _ in range(count):
            seq += 1
            mail = WaitingMail(seq, cost, bulk)
            own_weights = (weights[0, path[0]], weights[1, path[1]], weights[2, path[2]])
            table.put(lane, path, mail, own_weights)
            queue.put(lane, path, mail, own_weights)
            model.waiting.append(Queued(lane, path, mail))


def test_what_is_idle_in_a_lane_is_not_moved_back_there() -> None:
    """Tenant 1 becomes idle in one lane and is then served in another, in one batch: it returns without a debt."""
    table = TurnTable()
    lanes: tuple[Lane, ...] = ("high", "normal", "normal")
    for seq, lane in enumerate(lanes):
        table.put(lane, (1, 1, 1), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    assert len(table.choose(POLICY, UNLIMITED, 3)) == 3
    for seq in range(4, 8):
        table.put("high", (seq % 2 + 1, seq % 2 + 1, seq % 2 + 1), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    assert Counter(each.tenant for each in table.choose(POLICY, UNLIMITED, 2)) == {1: 1, 2: 1}


def filled(mails: dict[Path, int], lane: Lane = "normal", weights: dict[int, float] | None = None) -> TurnTable:
    """A queue in which each sender has so many mails; weights are those of tenants."""
    table, seq = TurnTable(), 0
    for path, count in mails.items():
        for _ in range(count):
            seq += 1
            table.put(lane, path, WaitingMail(seq, 1), ((weights or {}).get(path[0], 1.0), 1.0, 1.0))
    return table


def drained(table: TurnTable, batch: int = 7) -> list[Picked]:
    found: list[Picked] = []
    while got := table.choose(POLICY, UNLIMITED, batch):
        found += got
    return found


def test_small_tenants_do_not_wait_behind_a_flood() -> None:
    table = filled({(0, 0, 0): 10_000} | {(n, n, n): 10 for n in range(1, 11)})
    order = [each.tenant for each in drained(table, 100)]
    last_small = max(place for place, tenant in enumerate(order) if tenant)
    assert last_small < 111
    assert len(order) == 10_100


@many
@given(st.dictionaries(paths, st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 20))
def test_nothing_idles_and_nothing_is_chosen_twice(mails: dict[Path, int], batch: int) -> None:
    table = filled(mails)
    left = sum(mails.values())
    seen: set[int] = set()
    while left:
        got = table.choose(POLICY, UNLIMITED, batch)
        assert len(got) == min(batch, left)
        seen |= {each.mail.seq for each in got}
        left -= len(got)
    assert len(seen) == sum(mails.values())
    assert table.choose(POLICY, UNLIMITED, batch) == []


def sibling(level: int, child: int) -> Path:
    """A path that differs from those of other children at this level, and at those below it."""
    path = tuple(child if depth >= level else 0 for depth in range(3))
    return path[0], path[1], path[2]


def with_weight(level: int, weight: float) -> tuple[float, float, float]:
    return (weight if level == 0 else 1.0, weight if level == 1 else 1.0, weight if level == 2 else 1.0)


@many
@given(
    st.integers(0, 2),
    st.lists(st.tuples(weights_of_nodes, st.integers(1, 5)), min_size=2, max_size=2),
    st.lists(st.tuples(st.integers(2, 5), st.integers(0, 4), st.integers(1, 3), st.integers(1, 9)), max_size=30),
)
def test_two_busy_children_of_one_parent_differ_by_at_most_one_mail_per_weight_whoever_comes_and_goes(
    level: int, busy: list[tuple[float, int]], others: list[tuple[int, int, int, int]]
) -> None:
    table, queue, seq = TurnTable(), FairQueue(POLICY, UNLIMITED.slots), 0

    def put(child: int, cost: int, weight: float) -> None:
        nonlocal seq
        seq += 1
        for each in (table, queue):
            each.put("normal", sibling(level, child), WaitingMail(seq, cost), with_weight(level, weight))

    for child, (weight, cost) in enumerate(busy):
        for _ in range(30 * 9 + 1):
            put(child, cost, weight)
    served = [0.0, 0.0]
    most = max(cost / weight for weight, cost in busy)
    for child, count, cost, batch in others:
        for _ in range(count):
            put(child, cost, 1.0)
        picks = table.choose(POLICY, UNLIMITED, batch)
        assert picks == queue.take(batch)
        for picked in picks:
            served_child = (picked.tenant, picked.domain, picked.sender)[level]
            if served_child < 2:
                served[served_child] += picked.mail.cost / busy[served_child][0]
            assert abs(served[0] - served[1]) <= most + 1e-9


@many
@given(st.integers(0, 2), st.integers(1, 200), st.integers(1, 50))
def test_a_child_that_returns_has_neither_credit_nor_debt(level: int, before: int, batch: int) -> None:
    """Whether it was served long ago or never: from its return on, both get the same within one mail."""
    table = filled({sibling(level, 1): 320, sibling(level, 2): 3})
    for _ in range(before // batch + 1):
        table.choose(POLICY, UNLIMITED, batch)
    for n in range(100):
        table.put("normal", sibling(level, 2), WaitingMail(10_000 + n, 1), (1.0, 1.0, 1.0))
    got = Counter((each.tenant, each.domain, each.sender)[level] for each in table.choose(POLICY, UNLIMITED, 60))
    assert abs(got[1] - got[2]) <= 2


def test_a_batch_of_one_knows_that_a_tenant_holds_too_much() -> None:
    """Slots come free one at a time: the tenant whose deliveries are slow must not get every second of them."""
    slow = {1: 90}
    for _ in range(20):
        table = filled({(1, 1, 1): 5, (2, 2, 2): 5, (3, 3, 3): 5})
        held = InFlight(100, lanes={"normal": 90}, tenants=slow)
        assert [each.tenant for _ in range(6) for each in table.choose(POLICY, held, 1)] == [2, 3, 2, 3, 2, 3]


@many
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=12), st.integers(0, 3))
def test_what_is_withdrawn_leaves_the_others_their_turns(mails: list[tuple[int, int]], gone: int) -> None:
    queue, seq = FairQueue(POLICY, UNLIMITED.slots), 0
    for sender, count in mails:
        for _ in range(count):
            seq += 1
            queue.put("normal", (0, sender % 2, sender), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    taken = [mail.seq for mail in queue.withdraw("normal", gone)]
    left = queue.take(1_000)
    assert taken == sorted(taken)
    assert gone not in {picked.sender for picked in left}
    assert len(taken) + len(left) == seq


@many
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), min_size=1, max_size=60), st.integers(1, 9))
def test_a_sender_has_transactional_mail_first_and_each_class_in_order(
    mails: list[tuple[bool, int]], batch: int
) -> None:
    table = TurnTable()
    for seq, (bulk, cost) in enumerate(mails):
        table.put("low", (1, 1, 1), WaitingMail(seq, cost, bulk), (1.0, 1.0, 1.0))
    order = [(each.mail.bulk, each.mail.seq) for each in drained(table, batch)]
    assert order == sorted(order)


def test_lanes_have_their_shares_and_lend_what_they_do_not_use() -> None:
    table = TurnTable()
    busy: tuple[Lane, ...] = ("high", "normal", "low", "throttled", "retry")
    for place, lane in enumerate(busy):
        for seq in range(2_000):
            table.put(lane, (place, place, place), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    got = Counter(each.lane for _ in range(100) for each in table.choose(POLICY, UNLIMITED, 10))
    for lane, share in PRIORITY_SHARES.items():
        assert got[lane] == pytest.approx(1_000 * share * (1 - RETRY_SHARE), abs=2)
    assert got["retry"] == pytest.approx(1_000 * RETRY_SHARE, abs=2)
    alone = TurnTable()
    for seq in range(50):
        alone.put("throttled", (1, 1, 1), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    assert len(alone.choose(POLICY, UNLIMITED, 50)) == 50


def test_what_idle_lanes_leave_is_lent_by_the_multipliers() -> None:
    weights = POLICY.weights(("high", "normal"))
    spare = 1 - 2 * 0.4 * (1 - RETRY_SHARE)
    assert weights["high"] == pytest.approx(0.36 + spare * 2 / 3)
    assert weights["normal"] == pytest.approx(0.36 + spare * 1 / 3)


@pytest.mark.parametrize("lane", ["throttled", "low", "retry", "fifo"])
def test_a_single_slot_reaches_every_lane(lane: Lane) -> None:
    table = TurnTable()
    lanes: tuple[Lane, ...] = ("high", lane)
    for place, each in enumerate(lanes):
        for seq in range(500):
            table.put(each, (place, place, place), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    got = Counter(each.lane for _ in range(500) for each in table.choose(POLICY, InFlight(1), 1))
    assert got[lane] >= 4


def test_a_lane_takes_back_its_slots_as_soon_as_it_has_work() -> None:
    """Normal mail holds all slots; the next that are free go to the lane that was idle."""
    table = filled({(1, 1, 1): 500})
    for seq in range(100):
        table.put("high", (2, 2, 2), WaitingMail(1_000 + seq, 1), (1.0, 1.0, 1.0))
    held = InFlight(100, lanes={"normal": 90}, tenants={1: 90})
    assert {each.lane for each in table.choose(POLICY, held, 10)} == {"high"}


def test_a_tenant_with_slow_deliveries_does_not_hold_all_slots_while_others_wait() -> None:
    """Its mail goes to a hundred slow destinations: without counting what is in flight it would get every second slot,
    and keep it."""
    table = filled({(1, 1, 1): 500, (2, 2, 2): 500, (3, 3, 3): 500})
    held = InFlight(100, lanes={"normal": 90}, tenants={1: 90})
    assert Counter(each.tenant for each in table.choose(POLICY, held, 10))[1] == 0
    # But if nobody else waits, nothing idles.
    alone = filled({(1, 1, 1): 500})
    assert len(alone.choose(POLICY, held, 10)) == 10


def test_beyond_the_slots_a_tenant_gets_half_of_the_room_that_others_leave_and_what_waits_is_kept() -> None:
    """Otherwise a tenant whose destinations never answer would hold every slot when the next one comes."""
    table = filled({(1, 1, 1): 500})
    assert len(table.choose(POLICY, InFlight(4, lanes={"normal": 20}, tenants={1: 20}, room=44), 10)) == 2
    full = InFlight(4, lanes={"normal": 22}, tenants={1: 22}, room=44)
    assert table.choose(POLICY, full, 10) == []
    for seq in range(20):
        table.put("normal", (2, 2, 2), WaitingMail(1_000 + seq, 1), (1.0, 1.0, 1.0))
    assert [each.tenant for each in table.choose(POLICY, full, 15)] == [2] * 11
    table.put("high", (3, 3, 3), WaitingMail(2_000, 1), (1.0, 1.0, 1.0))
    both = InFlight(4, lanes={"normal": 33}, tenants={1: 22, 2: 11}, room=44)
    assert [each.tenant for each in table.choose(POLICY, both, 10)] == [3]
    assert len(table.choose(POLICY, UNLIMITED, 1_000)) == 498 + 9


def test_a_limit_bounds_a_lane_only_while_lanes_compete() -> None:
    table = filled({(1, 1, 1): 100})
    limited = InFlight(10, limits={"normal": 2, "high": 8})
    assert len(table.choose(POLICY, limited, 10)) == 10
    for seq in range(100):
        table.put("high", (2, 2, 2), WaitingMail(1_000 + seq, 1), (1.0, 1.0, 1.0))
    assert Counter(each.lane for each in table.choose(POLICY, limited, 10)) == {"high": 8, "normal": 2}


def test_a_tenant_in_two_lanes_gets_no_second_share() -> None:
    """Tenant 1 is busy in two lanes, the others in one: in its second lane it comes later, though not never."""
    table, seq = TurnTable(), 0
    busy: tuple[tuple[Lane, int], ...] = (("high", 1), ("high", 2), ("normal", 1), ("normal", 3))
    for lane, tenant in busy:
        for _ in range(2_000):
            seq += 1
            table.put(lane, (tenant, tenant, 10 * tenant + (lane == "high")), WaitingMail(seq, 1), (1.0, 1.0, 1.0))
    got = Counter((each.lane, each.tenant) for _ in range(100) for each in table.choose(POLICY, UNLIMITED, 10))
    assert got["high", 2] > 0.9 * got["high", 1]
    assert got["normal", 3] > 1.5 * got["normal", 1] > 0
