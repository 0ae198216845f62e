"""The tier picker: strict order, the guard, and no starvation."""

from hypothesis import given
from hypothesis import strategies as st

from postroom.core.picker import EMAIL, after_pick, pick

TIERS = EMAIL.tiers


def run(saturated: frozenset[str], picks: int) -> list[str]:
    streaks: dict[str, int] = {}
    picked: list[str] = []
    for _ in range(picks):
        choice = pick(EMAIL, saturated, streaks)
        assert choice is not None
        picked.append(choice.tier)
        streaks = after_pick(EMAIL, streaks, choice.tier)
    return picked


def test_nothing_is_picked_when_nothing_waits() -> None:
    assert pick(EMAIL, frozenset(), {}) is None


def test_the_highest_waiting_tier_comes_first() -> None:
    assert pick(EMAIL, frozenset({"default", "interactive"}), {}) == ("interactive", False)


def test_after_ten_from_a_tier_the_highest_waiting_lower_tier_is_next() -> None:
    picked = run(frozenset({"high_priority", "default"}), 22)
    assert picked == (["high_priority"] * 10 + ["default"]) * 2


def test_a_tier_goes_on_alone_when_nothing_lower_waits() -> None:
    assert run(frozenset({"high_priority"}), 25) == ["high_priority"] * 25


def test_a_pick_that_the_guard_decided_says_so() -> None:
    assert pick(EMAIL, frozenset({"high_priority", "default"}), {"high_priority": 10}) == ("default", True)


def test_with_three_full_tiers_the_shares_are_those_of_the_design() -> None:
    picked = run(frozenset({"high_priority", "interactive", "default"}), 100_000)
    shares = [picked.count(tier) for tier in ("high_priority", "interactive", "default")]
    assert shares == [90_091, 9_009, 900]


def test_no_waiting_tier_is_passed_over_more_often_than_its_bound() -> None:
    longest = dict.fromkeys(TIERS, 0)
    since = dict.fromkeys(TIERS, 0)
    for tier in run(frozenset(TIERS), 100_000):
        for each in TIERS:
            since[each] = 0 if each == tier else since[each] + 1
            longest[each] = max(longest[each], since[each])
    assert longest["default"] <= 111
    assert longest["history"] <= 1_110


@given(st.lists(st.frozensets(st.sampled_from(TIERS), min_size=1), min_size=1, max_size=200))
def test_after_a_full_streak_the_next_pick_is_the_highest_waiting_tier_below(waitings: list[frozenset[str]]) -> None:
    streaks: dict[str, int] = {}
    for waiting in waitings:
        choice = pick(EMAIL, waiting, streaks)
        assert choice is not None
        assert choice.tier in waiting
        for position, tier in enumerate(TIERS):
            below = [lower for lower in TIERS[position + 1 :] if lower in waiting]
            if streaks.get(tier, 0) >= 10 and below:
                assert choice.tier == below[0]
                break
        else:
            assert choice.tier == next(tier for tier in TIERS if tier in waiting)
        streaks = after_pick(EMAIL, streaks, choice.tier)
