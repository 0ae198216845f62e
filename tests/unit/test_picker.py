"""The tier picker: accepted order within a tier, strict order between tiers, the guard, aging, and no starvation."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from postroom.core.queue.picker import OWN_PER_AGED, Batch, Head, Pick, after_pick, pick, pick_many, stale
from postroom.core.queue.queues import EMAIL, GATEWAY, QueuePolicy
from support.scale import scale

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
AGES_S = (0, 1, 30, 60, 61, 299, 300, 301, 3600)
# The gateway of someone who wants nothing of P3 dropped or gathered, so that it ages too.
PATIENT = replace(GATEWAY, coalesce_within={}, auto_ack_after={})
# Aging and coalescing at the same age, and guards that are soon reached.
EAGER = QueuePolicy(
    "eager",
    {"a": 1, "b": 2, "c": 3},
    age_after={"b": timedelta(seconds=60), "c": timedelta(seconds=30)},
    coalesce_within={"c": timedelta(seconds=60)},
    auto_ack_after={"c": timedelta(seconds=300)},
    otherwise="c",
)
POLICIES = (EMAIL, GATEWAY, PATIENT, EAGER)

Lines = dict[str, deque[Head]]
Move = tuple[str, int, int]
MOVES = ("arrive", "arrive", "pick", "pick", "pass_time")
programs = st.lists(
    st.tuples(
        st.sampled_from(("arrive", "arrive", "pick", "pick", "pass_time")), st.integers(0, 3), st.integers(1, 12)
    ),
    max_size=60,
)
many = settings(max_examples=scale(300, 10_000), phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])


def fresh(*tiers: str) -> dict[str, Head]:
    """A new message at the head of each tier."""
    return {tier: Head(seq, NOW) for seq, tier in enumerate(tiers, 1)}


def aged(seconds: float, seq: int = 1) -> Head:
    return Head(seq, NOW - timedelta(seconds=seconds))


def chosen(picked: Pick | None) -> Pick:
    assert picked is not None
    return picked


def saturated(policy: QueuePolicy, tiers: Iterable[str], picks: int) -> list[str]:
    """Which tiers are picked, one after another, when those never run dry."""
    heads, streaks, picked = fresh(*tiers), dict[str, int](), list[str]()
    for _ in range(picks):
        next_one = chosen(pick(policy, heads, streaks, NOW))
        picked.append(next_one.tier)
        streaks = after_pick(policy, streaks, next_one)
    return picked


def from_tier(tier: str) -> Pick:
    """A pick of a tier's own message."""
    return Pick(Head(1, NOW), tier, tier, starvation_override=False)


def longest_waits(policy: QueuePolicy, picked: Sequence[str]) -> dict[str, int]:
    """How often each tier was passed over at most, between two of its turns and at both ends."""
    longest, since = dict.fromkeys(policy.tiers, 0), dict.fromkeys(policy.tiers, 0)
    for tier in picked:
        for each in policy.tiers:
            since[each] = 0 if each == tier else since[each] + 1
            longest[each] = max(longest[each], since[each])
    return longest


# Order and guard.


def test_nothing_is_picked_when_nothing_waits() -> None:
    assert pick(EMAIL, {}, {}, NOW) is None


def test_the_highest_waiting_tier_comes_first() -> None:
    heads = fresh("default", "interactive")
    assert pick(EMAIL, heads, {}, NOW) == Pick(heads["interactive"], "interactive", "interactive", False)


def test_after_ten_from_a_tier_the_highest_waiting_lower_tier_is_next() -> None:
    assert saturated(EMAIL, ("high_priority", "default"), 22) == (["high_priority"] * 10 + ["default"]) * 2


def test_a_tier_goes_on_alone_when_nothing_lower_waits() -> None:
    assert saturated(EMAIL, ("high_priority",), 25) == ["high_priority"] * 25


def test_a_tier_that_went_on_alone_gives_way_as_soon_as_something_lower_waits() -> None:
    assert chosen(pick(EMAIL, fresh("high_priority", "history"), {"high_priority": 25}, NOW)).tier == "history"


def test_a_pick_that_the_guard_decided_says_so() -> None:
    picked = chosen(pick(EMAIL, fresh("high_priority", "default"), {"high_priority": 10}, NOW))
    assert (picked.tier, picked.starvation_override, picked.promoted) == ("default", True, False)


def test_if_several_are_due_the_highest_decides_and_the_others_stay_due() -> None:
    heads = fresh(*EMAIL.tiers)
    streaks: Mapping[str, int] = {"high_priority": 10, "interactive": 10, "default": 10}
    picked: list[str] = []
    for _ in range(4):
        next_one = chosen(pick(EMAIL, heads, streaks, NOW))
        picked.append(next_one.tier)
        streaks = after_pick(EMAIL, streaks, next_one)
    assert picked == ["interactive", "default", "history", "high_priority"]


def test_a_pick_begins_the_streaks_above_it_again_and_leaves_those_below() -> None:
    before = {"high_priority": 7, "interactive": 3, "default": 5, "history": 2}
    after = after_pick(EMAIL, before, from_tier("interactive"))
    assert after == {"high_priority": 0, "interactive": 4, "default": 5, "history": 2}


def test_streaks_of_tiers_that_are_no_more_are_forgotten() -> None:
    assert after_pick(EMAIL, {"urgent": 9, "urgent own": 2}, from_tier("default")) == {
        "high_priority": 0, "interactive": 0, "default": 1, "history": 0,
    }  # fmt: skip


# Bounds.


def test_with_three_full_tiers_the_shares_are_those_of_the_design() -> None:
    picked = saturated(EMAIL, ("high_priority", "interactive", "default"), 100_000)
    assert [picked.count(tier) for tier in EMAIL.tiers] == [90_091, 9_009, 900, 0]


def test_no_waiting_tier_of_mail_is_skipped_more_often_than_its_bound() -> None:
    longest = longest_waits(EMAIL, saturated(EMAIL, EMAIL.tiers, 100_000))
    assert longest["default"] <= 111
    assert longest["history"] <= 1_110


def test_at_least_one_lower_goes_with_every_three_p0_of_the_gateway() -> None:
    picked = saturated(GATEWAY, GATEWAY.tiers, 100_000)
    for start in range(len(picked) - 3):
        assert picked[start : start + 4] != ["P0"] * 4
    assert set(picked) == set(GATEWAY.tiers)


def test_a_guard_that_settings_change_is_the_guard_that_holds() -> None:
    policy = replace(EMAIL, guards={**EMAIL.guards, "high_priority": 2})
    assert saturated(policy, ("high_priority", "default"), 6) == ["high_priority", "high_priority", "default"] * 2


def most_passes(policy: QueuePolicy, tier: str) -> int:
    """However mail comes and goes: the turns of the higher tiers, anew after each pick from a lower one.

    Between two turns of a waiting tier, each tier below it but the last can make one lower pick due.
    """
    position = policy.tiers.index(tier)
    higher = 0
    for each in policy.tiers[:position]:
        higher = policy.guards[each] * (higher + 1)
    lower = len(policy.tiers) - 1 - position
    return (lower + 1) * (higher + 1) + lower


@settings(many, max_examples=scale(60, 10_000))
@given(
    st.sampled_from((EMAIL, GATEWAY, EAGER)),
    st.lists(st.tuples(st.frozensets(st.integers(0, 3)), st.integers(1, 400)), min_size=1, max_size=12),
)
def test_however_the_others_come_and_go_a_waiting_tier_has_its_turn(
    policy: QueuePolicy, spells: list[tuple[frozenset[int], int]]
) -> None:
    policy = replace(policy, age_after={}, coalesce_within={})
    streaks: dict[str, int] = {}
    passes: dict[str, int] = {}
    for waiting, picks in spells:
        heads = fresh(*(tier for place, tier in enumerate(policy.tiers) if place in waiting))
        passes = {tier: count for tier, count in passes.items() if tier in heads}
        for _ in range(picks if heads else 0):
            picked = chosen(pick(policy, heads, streaks, NOW))
            streaks = after_pick(policy, streaks, picked)
            passes = {tier: 0 if tier == picked.tier else passes.get(tier, 0) + 1 for tier in heads}
            assert all(count <= most_passes(policy, tier) for tier, count in passes.items()), passes


# Aging.


@pytest.mark.parametrize(("seconds", "counted"), [(300, "P2"), (300.001, "P1"), (86_400, "P1")])
def test_a_head_that_has_waited_longer_than_its_patience_counts_one_tier_higher(seconds: float, counted: str) -> None:
    picked = chosen(pick(GATEWAY, {"P2": aged(seconds)}, {}, NOW))
    assert (picked.tier, picked.counted, picked.promoted) == ("P2", counted, counted != "P2")


def test_sixty_aged_messages_do_not_bury_a_new_one() -> None:
    lines = {"P1": [Head(99, NOW)], "P2": [aged(3600, seq) for seq in range(60)]}
    batch = pick_many(GATEWAY, lines, {}, NOW, 61)
    assert [each.tier for each in batch.picks] == ["P1"] + ["P2"] * 60


def test_in_a_tier_its_own_go_first_with_one_aged_for_every_three() -> None:
    lines = {"P1": [Head(seq, NOW) for seq in range(100, 107)], "P2": [aged(3600, seq) for seq in range(4)]}
    batch = pick_many(GATEWAY, lines, {}, NOW, 100)
    assert [each.tier for each in batch.picks] == ["P1", "P1", "P1", "P2"] * 2 + ["P1", "P2", "P2"]
    assert all(each.counted == "P1" for each in batch.picks)


def test_own_messages_that_passed_nothing_over_do_not_count_against_the_next_own() -> None:
    streaks = pick_many(GATEWAY, {"P1": [Head(seq, NOW) for seq in range(8)]}, {}, NOW, 8).streaks
    assert chosen(pick(GATEWAY, {"P1": Head(20, NOW), "P2": aged(3600)}, streaks, NOW)).tier == "P1"


def test_with_a_guard_below_three_an_aged_message_has_its_turn_after_as_many() -> None:
    policy = replace(GATEWAY, guards={**GATEWAY.guards, "P1": 1})
    lines = {"P1": [Head(seq, NOW) for seq in range(100, 103)], "P2": [aged(3600, seq) for seq in range(3)]}
    batch = pick_many(policy, lines, {}, NOW, 6)
    assert [each.tier for each in batch.picks] == ["P1", "P2"] * 3


@settings(many, max_examples=scale(60, 10_000))
@given(
    st.sampled_from((GATEWAY, EAGER)),
    st.lists(st.tuples(st.frozensets(st.integers(0, 7)), st.integers(1, 200)), min_size=1, max_size=12),
)
def test_however_the_others_come_and_go_an_aged_head_has_its_turn_and_buries_nobody(
    policy: QueuePolicy, spells: list[tuple[frozenset[int], int]]
) -> None:
    """An aged head is passed over by its bound at most, and no two aged go one after another while an own one waits."""
    policy = replace(policy, coalesce_within={})
    streaks: dict[str, int] = {}
    passes: dict[str, int] = {}
    aged_in_a_row: dict[str, int] = {}
    for waiting, picks in spells:
        heads = {
            tier: aged(10_000, place) if place + 4 in waiting else Head(place, NOW)
            for place, tier in enumerate(policy.tiers)
            if place in waiting
        }
        old = {tier for tier in heads if counts_for(policy, tier, heads[tier], NOW) != tier}
        passes = {tier: count for tier, count in passes.items() if tier in old}
        aged_in_a_row = {tier: count for tier, count in aged_in_a_row.items() if tier in heads and tier not in old}
        for _ in range(picks if heads else 0):
            picked = chosen(pick(policy, heads, streaks, NOW))
            streaks = after_pick(policy, streaks, picked)
            passes = {tier: 0 if tier == picked.tier else passes.get(tier, 0) + 1 for tier in old}
            for tier, count in passes.items():
                counted = counts_for(policy, tier, heads[tier], NOW)
                assert count <= (OWN_PER_AGED + 1) * (most_passes(policy, counted) + 1), passes
            if picked.counted in heads and picked.counted not in old:
                row = aged_in_a_row.get(picked.counted, 0) + 1 if picked.promoted else 0
                aged_in_a_row[picked.counted] = row
                assert row <= 1


def test_an_aged_head_does_not_go_before_a_higher_tier_than_it_counts_for() -> None:
    assert chosen(pick(GATEWAY, {"P0": Head(9, NOW), "P2": aged(3600)}, {}, NOW)).tier == "P0"


def test_the_streak_grows_for_the_tier_a_message_counted_for() -> None:
    batch = pick_many(GATEWAY, {"P2": [aged(301)]}, {"P0": 2, "P1": 1}, NOW, 1)
    assert batch.streaks == {"P0": 0, "P1": 2, "P2": 0, "P3": 0}


def test_what_has_no_patience_does_not_age() -> None:
    assert not chosen(pick(EMAIL, {"default": aged(10**6)}, {}, NOW)).promoted
    assert not chosen(pick(GATEWAY, {"P1": aged(10**6)}, {}, NOW)).promoted


def test_the_highest_tier_has_nowhere_to_rise() -> None:
    policy = replace(GATEWAY, age_after={"P0": timedelta(seconds=1)})
    assert chosen(pick(policy, {"P0": aged(60)}, {}, NOW)).counted == "P0"


# Coalescing and what nobody needs any more.


def test_a_fresh_p3_ends_the_batch_as_a_summary() -> None:
    lines = {"P2": [Head(1, NOW)], "P3": [Head(2, NOW), Head(3, NOW)]}
    batch = pick_many(GATEWAY, lines, {}, NOW, 10)
    assert ([each.head.seq for each in batch.picks], batch.summary) == ([1, 2], "P3")


@pytest.mark.parametrize("head", [Head(1, NOW, fresh=False), aged(60.001)], ids=["came back", "too old"])
def test_a_p3_that_came_back_or_is_too_old_is_handed_out_as_it_is(head: Head) -> None:
    batch = pick_many(GATEWAY, {"P3": [head]}, {}, NOW, 10)
    assert ([each.head for each in batch.picks], batch.summary) == ([head], None)


def test_what_is_stale_ends_from_the_head_on_up_to_the_first_that_is_not() -> None:
    line = [aged(100, 1), aged(61, 2), aged(60, 3), aged(90, 4)]
    assert [head.seq for head in stale(GATEWAY, "P3", line, NOW)] == [1, 2]
    assert stale(GATEWAY, "P2", [aged(10**6)], NOW) == []


# The whole rule, from the history of all picks alone.


def run_length(policy: QueuePolicy, history: Sequence[Pick], tier: str) -> int:
    """How many counted for the tier since the last that counted for any tier below it."""
    below = policy.tiers[policy.tiers.index(tier) + 1 :]
    last = max((place for place, each in enumerate(history) if each.counted in below), default=-1)
    return sum(each.counted == tier for each in history[last + 1 :])


def passed_over(history: Sequence[Pick], tier: str) -> int:
    """How many of the tier's own passed an aged one over since the last aged one that counted for it."""
    last = max((place for place, each in enumerate(history) if each.counted == tier and each.promoted), default=-1)
    return sum(each.counted == tier and each.passed_aged for each in history[last + 1 :])


def counts_for(policy: QueuePolicy, tier: str, head: Head, now: datetime) -> str:
    place, patience = policy.tiers.index(tier), policy.age_after.get(tier)
    return policy.tiers[place - 1] if place and patience and now - head.accepted_at > patience else tier


def expected(policy: QueuePolicy, lines: Lines, history: Sequence[Pick], now: datetime) -> Pick | None:
    """The pick that the rule names."""
    heads = {tier: line[0] for tier, line in lines.items() if line}
    counted = {tier: counts_for(policy, tier, head, now) for tier, head in heads.items()}
    waiting = [tier for tier in policy.tiers if tier in counted.values()]
    if not waiting:
        return None
    next_tier = waiting[0]
    for place, tier in enumerate(policy.tiers):
        below = [each for each in policy.tiers[place + 1 :] if each in waiting]
        if below and run_length(policy, history, tier) >= policy.guards[tier]:
            next_tier = below[0]
            break
    own = counted.get(next_tier) == next_tier
    old = next((tier for tier, each in counted.items() if each == next_tier != tier), None)
    enough = min(3, policy.guards[next_tier])
    is_old = old is not None and (not own or passed_over(history, next_tier) >= enough)
    tier = old if old is not None and is_old else next_tier
    passed = own and old is not None and not is_old
    return Pick(heads[tier], tier, next_tier, next_tier != waiting[0], passed)


class PickerSetup:
    """A queue in memory on which a program of arrivals, picks and time is carried out."""

    def __init__(self, policy: QueuePolicy, take: "Callable[[PickerSetup, int], None]") -> None:
        self.policy = policy
        self.lines: Lines = {tier: deque() for tier in policy.tiers}
        self.streaks: dict[str, int] = {}
        self.now = NOW
        self._take = take
        self._seq = 0

    def run(self, program: Sequence[Move]) -> None:
        for move, a, b in program:
            match move:
                case "arrive":
                    for _ in range(b):
                        self._seq += 1
                        tier = self.policy.tiers[a % len(self.policy.tiers)]
                        self.lines[tier].append(Head(self._seq, self.now, fresh=(a + b) % 3 > 0))
                case "pass_time":
                    self.now += timedelta(seconds=AGES_S[(3 * a + b) % len(AGES_S)])
                case _:
                    self._take(self, b)

    def single(self) -> Batch:
        """One single pick, and what it leaves."""
        heads = {tier: line[0] for tier, line in self.lines.items() if line}
        picked = pick(self.policy, heads, self.streaks, self.now)
        if picked is None:
            return Batch([], self.streaks, None)
        self.streaks = after_pick(self.policy, self.streaks, picked)
        self.lines[picked.tier].popleft()
        window = self.policy.coalesce_within.get(picked.tier)
        gathers = window is not None and picked.head.fresh and self.now - picked.head.accepted_at <= window
        return Batch([picked], self.streaks, picked.tier if gathers else None)


@many
@given(st.sampled_from(POLICIES), programs)
def test_every_pick_is_the_one_that_the_rule_names(policy: QueuePolicy, program: list[Move]) -> None:
    history: list[Pick] = []
    left: list[tuple[str, int]] = []

    def take(setup: PickerSetup, count: int) -> None:
        for _ in range(count):
            rule = expected(setup.policy, setup.lines, history, setup.now)
            picks = setup.single().picks
            note(f"{rule} / {picks}")
            assert picks == ([rule] if rule else [])
            history.extend(picks)
            left.extend((each.tier, each.head.seq) for each in picks)

    PickerSetup(policy, take).run(program)
    for tier in policy.tiers:
        seqs = [seq for each, seq in left if each == tier]
        assert seqs == sorted(seqs)


@many
@given(st.sampled_from(POLICIES), programs)
def test_a_batch_of_picks_equals_the_same_number_of_single_picks(policy: QueuePolicy, program: list[Move]) -> None:
    def take(setup: PickerSetup, count: int) -> None:
        lines = {tier: list(line)[:count] for tier, line in setup.lines.items() if line}
        batch = pick_many(setup.policy, lines, setup.streaks, setup.now, count)
        singles: list[Batch] = []
        while sum(len(each.picks) for each in singles) < count and (not singles or singles[-1].summary is None):
            singles.append(setup.single())
            if not singles[-1].picks:
                break
        assert batch.picks == [each for single in singles for each in single.picks]
        assert batch.summary == singles[-1].summary
        assert {tier: count for tier, count in batch.streaks.items() if count} == {
            tier: count for tier, count in setup.streaks.items() if count
        }

    PickerSetup(policy, take).run(program)
