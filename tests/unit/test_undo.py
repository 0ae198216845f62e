"""What an undo restores: exactly what the action changed, and only that, whatever the user did meanwhile."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.action import ACTION_TYPES, INVERSES, IRREVERSIBLE, ActionType, label_change
from postroom.core.actions.label_changes import PLACES, LabelChange, joint_change
from postroom.core.actions.undo import (
    Snoozed,
    hint_for_part,
    inverse_change,
    irreversible_hint,
    is_certain,
    planned_hint,
    undo_hint,
    why_not_undoable,
)

PLACED = st.sampled_from([frozenset[str](), *(frozenset({place}) for place in sorted(PLACES))])
OTHERS = st.frozensets(st.sampled_from(["UNREAD", "STARRED", "Label_1", "Label_2"]))
LABELS = st.tuples(PLACED, OTHERS).map(lambda pair: pair[0] | pair[1])
ACTIONS = st.sampled_from(sorted(INVERSES.keys() - {"several"}))


def done(action: ActionType, before: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """The action on a message with these labels: its hint, and the labels afterwards."""
    change = label_change(action, "Label_1").effective(before)
    return undo_hint(action, before, change), change.applied_to(before)


def test_every_action_that_can_be_undone_has_an_inverse() -> None:
    assert INVERSES.keys() == {*ACTION_TYPES, "several"} - IRREVERSIBLE


@given(ACTIONS, LABELS)
def test_an_undo_at_once_restores_the_message(action: ActionType, before: frozenset[str]) -> None:
    hint, after = done(action, before)
    assert inverse_change(hint, after).applied_to(after) == before


@given(st.lists(ACTIONS, max_size=8), LABELS)
def test_any_actions_undone_in_reverse_restore_the_message(actions: list[ActionType], before: frozenset[str]) -> None:
    hints: list[dict[str, object]] = []
    labels = before
    for action in actions:
        hint, labels = done(action, labels)
        hints.append(hint)
    for hint in reversed(hints):
        labels = inverse_change(hint, labels).applied_to(labels)
    assert labels == before


@given(ACTIONS, LABELS, OTHERS, OTHERS)
def test_what_the_user_changed_meanwhile_stands(
    action: ActionType, before: frozenset[str], put_on: frozenset[str], taken_off: frozenset[str]
) -> None:
    hint, after = done(action, before)
    touched = before ^ after
    meanwhile = LabelChange(put_on - touched, taken_off - put_on - touched).applied_to(after)
    restored = inverse_change(hint, meanwhile).applied_to(meanwhile)
    assert restored - touched == meanwhile - touched
    assert restored & touched == before & touched


@given(st.lists(ACTIONS, min_size=2, max_size=5), LABELS, st.sampled_from(["INBOX", "TRASH", "UNREAD", "STARRED"]))
def test_of_what_was_only_planned_no_change_of_the_users_own_is_taken_back(
    planned: list[ActionType], before: frozenset[str], touched: str
) -> None:
    change = joint_change([label_change(each, "Label_1") for each in planned], before)
    hint = planned_hint(undo_hint("several", before, change))
    by_hand = before ^ {touched}
    assert not is_certain(hint, by_hand) or not inverse_change(hint, by_hand)
    assert is_certain(hint, before), "nothing was done, and nothing is taken back"


@given(st.lists(ACTIONS, min_size=2, max_size=5), LABELS, OTHERS)
def test_what_was_planned_and_is_all_in_effect_is_taken_back(
    planned: list[ActionType], before: frozenset[str], put_on: frozenset[str]
) -> None:
    change = joint_change([label_change(each, "Label_1") for each in planned], before)
    hint, after = planned_hint(undo_hint("several", before, change)), change.applied_to(before)
    touched = before ^ after
    if len(touched) > 1 and "TRASH" not in touched:
        now = after | put_on - touched
        assert is_certain(hint, now)
        assert inverse_change(hint, now).applied_to(now) & touched == before & touched


def test_a_hint_for_a_part_is_known_to_be_done() -> None:
    hint = planned_hint(undo_hint("several", frozenset({"INBOX"}), LabelChange(frozenset({"A"}), frozenset({"INBOX"}))))
    part = hint_for_part(hint, frozenset({"INBOX", "A"}))
    assert part["inverse_parameters"]["remove_labels"] == ["A"]
    assert is_certain(part, frozenset({"INBOX", "A"}))


def test_undoing_an_archive_does_not_fetch_it_out_of_the_trash() -> None:
    hint, _ = done("archive", frozenset({"INBOX"}))
    assert not inverse_change(hint, frozenset({"TRASH"}))


def test_the_hint_names_the_inverse() -> None:
    hint, _ = done("archive", frozenset({"INBOX", "UNREAD"}))
    assert hint == {
        "action": "archive",
        "pre_labels": ["INBOX", "UNREAD"],
        "inverse_action": "apply_label",
        "inverse_parameters": {"add_labels": ["INBOX"], "remove_labels": []},
        "no_op": False,
        "irreversible": False,
    }


def test_a_snooze_remembers_what_wakes_it() -> None:
    until = datetime(2027, 1, 1, tzinfo=UTC)
    before = frozenset({"INBOX"})
    change = label_change("snooze", "Label_7").effective(before)
    hint = undo_hint("snooze", before, change, Snoozed(until, "Later", "Label_7", UUID(int=5)))
    assert hint["snooze_until"] == "2027-01-01T00:00:00+00:00"
    assert hint["snooze_label_id"] == "Label_7"
    assert hint["unsnooze_job_id"] == hint["inverse_parameters"]["cancel_unsnooze_job_id"] == str(UUID(int=5))
    assert "snooze_history_id" not in hint
    later = Snoozed(until, "Later", "Label_7", UUID(int=5), history_id=77)
    assert undo_hint("snooze", before, change, later)["snooze_history_id"] == 77


def test_what_changed_nothing_is_no_op_unless_something_waits_to_wake_it() -> None:
    nothing = LabelChange()
    assert undo_hint("archive", frozenset(), nothing)["no_op"]
    snoozed = Snoozed(datetime(2027, 1, 1, tzinfo=UTC), "Later", "Label_7", UUID(int=5))
    hint = undo_hint("snooze", frozenset({"Label_7"}), nothing, snoozed)
    assert (hint["no_op"], hint["inverse_action"]) == (False, "unsnooze")


@pytest.mark.parametrize(
    ("action", "state", "hint", "reason"),
    [
        ("archive", "executing", None, "only completed actions"),
        ("delete", "completed", irreversible_hint("delete"), "cannot be undone"),
        ("archive", "completed", irreversible_hint("archive"), "cannot be undone"),
        ("archive", "completed", done("archive", frozenset())[0], "changed nothing"),
    ],
)
def test_what_cannot_be_undone_says_why(action: str, state: str, hint: dict[str, object] | None, reason: str) -> None:
    assert reason in (why_not_undoable(action, state, hint) or "")


def test_what_was_completed_and_changed_something_can_be_undone() -> None:
    assert why_not_undoable("archive", "completed", done("archive", frozenset({"INBOX"}))[0]) is None
