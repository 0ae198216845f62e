"""Label actions: what they change against what was there, and how that is reversed."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions import LabelChange, action_hash, label_change, undo_hint, wanted_label
from postroom.core.errors import Fatal

LABELS = st.frozensets(st.sampled_from(["INBOX", "UNREAD", "STARRED", "Label_1", "Label_2"]))


@given(LABELS, LABELS, LABELS)
def test_the_inverse_of_what_was_changed_restores_what_was_there(
    before: frozenset[str], add: frozenset[str], remove: frozenset[str]
) -> None:
    change = LabelChange(add - remove, remove - add).effective(before)
    after = (before | change.add) - change.remove
    assert (after | change.inverse.add) - change.inverse.remove == before


@given(LABELS, LABELS)
def test_undo_leaves_alone_what_the_user_changed_meanwhile(before: frozenset[str], users: frozenset[str]) -> None:
    change = label_change("archive", None).effective(before)
    meanwhile = ((before - change.remove) | users) - {"INBOX"}
    restored = (meanwhile | change.inverse.add) - change.inverse.remove
    assert restored == meanwhile | (before & {"INBOX"})


def test_archiving_what_is_not_in_the_inbox_is_a_recorded_no_op() -> None:
    before = frozenset({"UNREAD"})
    change = label_change("archive", None).effective(before)
    hint = undo_hint("archive", before, change)
    assert hint["no_op"] is True
    assert hint["inverse_action"] == "none"


def test_the_undo_hint_names_the_inverse() -> None:
    before = frozenset({"INBOX"})
    hint = undo_hint("archive", before, label_change("archive", None).effective(before))
    assert hint["inverse_action"] == "apply_label"
    assert hint["inverse_parameters"] == {"add_labels": ["INBOX"], "remove_labels": []}


@pytest.mark.parametrize("parameters", [{}, {"label": ""}, {"label": "  "}, {"label": 5}])
def test_a_label_action_without_a_label_is_fatal(parameters: dict[str, object]) -> None:
    with pytest.raises(Fatal, match="label"):
        wanted_label("apply_label", parameters)


def test_an_action_that_is_not_there_yet_is_refused_by_name() -> None:
    with pytest.raises(Fatal, match="delete"):
        label_change("delete", None)


def test_the_hash_tells_every_difference_and_no_order_of_keys() -> None:
    message = UUID(int=1)
    same = action_hash(message, "apply_label", {"a": 1, "b": 2})
    assert same == action_hash(message, "apply_label", {"b": 2, "a": 1})
    assert (
        len({same, action_hash(message, "archive", {"a": 1, "b": 2}), action_hash(UUID(int=2), "apply_label", {})}) == 3
    )
