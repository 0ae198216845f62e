"""The state machines as tables: closed, connected, and refusing every other move with a helpful message."""

import pytest

from postroom.core.errors import IllegalMove
from postroom.core.lifecycle import ACTION, BACKFILL, DELIVERY, INBOX, JOB, LIFECYCLES, RECIPIENT, Lifecycle

each = pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)


@each
def test_every_move_leads_to_a_state_that_is_in_the_table(lifecycle: Lifecycle) -> None:
    for targets in lifecycle.moves.values():
        assert targets <= lifecycle.states


@each
def test_every_state_can_be_reached_from_where_things_start(lifecycle: Lifecycle) -> None:
    assert _reachable(lifecycle, lifecycle.initial) == lifecycle.states


@each
def test_an_end_can_be_reached_from_every_state(lifecycle: Lifecycle) -> None:
    assert lifecycle.terminal
    for state in lifecycle.states:
        assert _reachable(lifecycle, {state}) & lifecycle.terminal


@each
def test_no_state_moves_to_itself(lifecycle: Lifecycle) -> None:
    for state, targets in lifecycle.moves.items():
        assert state not in targets


@each
def test_only_the_moves_of_the_table_are_allowed(lifecycle: Lifecycle) -> None:
    for before in lifecycle.states:
        for after in lifecycle.states:
            assert lifecycle.may(before, after) == (after in lifecycle.moves[before])


@pytest.mark.parametrize(
    ("lifecycle", "ends"),
    [
        (JOB, {"completed", "failed", "canceled"}),
        (ACTION, {"completed", "failed", "canceled", "rejected", "expired"}),
        (INBOX, {"done", "failed", "coalesced", "auto_acked", "duplicate"}),
        (DELIVERY, {"sent", "partially_sent", "bounced", "rejected", "expired", "canceled"}),
        (RECIPIENT, {"sent", "bounced", "rejected", "expired", "canceled"}),
    ],
    ids=lambda each: each.name if isinstance(each, Lifecycle) else "",
)
def test_the_ends_are_those_of_the_design(lifecycle: Lifecycle, ends: set[str]) -> None:
    assert lifecycle.terminal == ends


def test_a_backfill_ends_by_completion_or_cancel_and_comes_back_from_every_pause() -> None:
    assert {"completed", "cancelled"} <= BACKFILL.terminal
    assert all(BACKFILL.may(pause, "pending") for pause in ("paused", "cost_capped", "error"))


def test_an_action_that_failed_or_was_canceled_goes_on_where_it_was_and_a_rejected_one_may_wait_again() -> None:
    assert {state: set(targets) for state, targets in ACTION.moves.items()} == {
        "approved_pending": {"queued", "rejected", "expired", "canceled"},
        "queued": {"executing", "failed", "canceled"},
        "executing": {"completed", "failed", "canceled"},
        "failed": {"executing"},
        "canceled": {"executing"},
        "completed": set(),
        "rejected": {"approved_pending"},
        "expired": set(),
    }


def test_a_refused_move_says_what_is_possible() -> None:
    with pytest.raises(IllegalMove, match=r"job is completed and cannot become queued; .*it has ended"):
        JOB.check("completed", "queued")
    with pytest.raises(IllegalMove, match="possible from there: canceled, failed, running"):
        JOB.check("queued", "completed")


def test_a_state_that_is_not_in_the_table_moves_nowhere() -> None:
    assert not JOB.may("lost", "queued")
    with pytest.raises(IllegalMove):
        JOB.check("lost", "queued")


def test_a_legal_move_passes() -> None:
    JOB.check("failed", "queued")


def _reachable(lifecycle: Lifecycle, start: set[str] | frozenset[str]) -> set[str]:
    seen, frontier = set(start), set(start)
    while frontier:
        frontier = {target for state in frontier for target in lifecycle.moves[state]} - seen
        seen |= frontier
    return seen
