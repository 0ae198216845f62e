"""An undone pick leaves the streaks as if it had never been made, whatever was picked meanwhile."""

from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given, note, settings
from hypothesis import strategies as st

from postroom.core.queue.picker import Head, Pick, after_pick
from postroom.core.queue.queues import EMAIL, GATEWAY
from postroom.core.queue.turns import Ledger, Turn, record_picks, turn_of, undo_picks
from support.scale import scale

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
HEAD = Head(1, NOW)


def own(tier: str, *, passed_aged: bool = False) -> Pick:
    return Pick(HEAD, tier, tier, False, passed_aged)


def aged(tier: str, counted: str) -> Pick:
    return Pick(HEAD, tier, counted, False)


def counted(streaks: Any) -> dict[str, int]:
    return {name: count for name, count in streaks.items() if count}


def test_a_turn_that_was_given_back_is_not_used_up() -> None:
    """Else whoever hangs up in time, again and again, keeps the lower tiers from their turn for ever."""
    before = Ledger({"high_priority": 10})
    after, turns = record_picks(EMAIL, before, [own("default")])
    assert counted(after.streaks) == {"default": 1}
    assert counted(undo_picks(after, turns, [])[0].streaks) == {"high_priority": 10}


def test_what_others_took_meanwhile_stays_counted() -> None:
    ledger, (first,) = record_picks(EMAIL, Ledger({"high_priority": 7}), [own("default")])
    ledger, _ = record_picks(EMAIL, ledger, [own("high_priority"), own("high_priority")])
    assert counted(undo_picks(ledger, [first], [])[0].streaks) == {"high_priority": 9}


def test_a_streak_that_somebody_else_broke_stays_broken() -> None:
    ledger, (first, _) = record_picks(EMAIL, Ledger({"high_priority": 7}), [own("default"), own("interactive")])
    assert counted(undo_picks(ledger, [first], [])[0].streaks) == {"interactive": 1}


def test_a_turn_is_kept_with_its_message_and_read_again() -> None:
    _, (turn,) = record_picks(EMAIL, Ledger({"high_priority": 7}), [own("default")])
    assert turn_of(orjson.loads(orjson.dumps(turn.form))) == turn


picks = st.sampled_from(
    [
        *(own(tier) for tier in GATEWAY.tiers),
        own("P1", passed_aged=True),
        own("P2", passed_aged=True),
        aged("P2", "P1"),
        aged("P3", "P2"),
    ]
)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("pick"), st.lists(picks, min_size=1, max_size=4)),
        st.tuples(st.just("give_back"), st.lists(st.integers(0, 50), min_size=1, max_size=4)),
        st.tuples(st.just("end"), st.integers(0, 50)),
    ),
    max_size=40,
)


@settings(max_examples=scale(200, 20_000))
@given(moves)
def test_in_any_order_the_streaks_are_those_of_the_picks_that_were_not_given_back(
    program: list[tuple[str, Any]],
) -> None:
    ledger = Ledger({})
    held: dict[int, Turn] = {}
    made: dict[int, Pick] = {}
    for move, what in program:
        match move:
            case "pick":
                ledger, turns = record_picks(GATEWAY, ledger, what)
                held |= {turn.number: turn for turn in turns}
                made |= {turn.number: each for turn, each in zip(turns, what, strict=True)}
            case "give_back" if held:
                numbers = {sorted(held)[place % len(held)] for place in what}
                returned = [held.pop(number) for number in numbers]
                ledger, changed = undo_picks(ledger, returned, list(held.values()))
                held |= {turn.number: turn for turn in changed}
                made = {number: each for number, each in made.items() if number not in numbers}
            case "end" if held:
                del held[sorted(held)[what % len(held)]]
            case _:
                pass
        streaks: dict[str, int] = {}
        for number in sorted(made):
            streaks = after_pick(GATEWAY, streaks, made[number])
        note(f"{move} {what}: {ledger}")
        assert counted(ledger.streaks) == counted(streaks)
