"""The actions: their parameters, what they change against what was there, and how approvals know them."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.action import (
    ACTION_TYPES,
    IRREVERSIBLE,
    SPECS,
    ActionType,
    action_hash,
    check_parameters,
    label_change,
    undo_type,
    wanted_label,
)
from postroom.core.actions.label_changes import PLACES, LabelChange
from postroom.core.actions.parameters import LARGEST_ATTACHMENTS, is_address, recipients_of
from postroom.core.errors import BadInput, Fatal
from postroom.core.rules.draft import check_rule

PLACED = st.sampled_from([frozenset[str](), *(frozenset({place}) for place in sorted(PLACES))])
OTHERS = st.frozensets(st.sampled_from(["UNREAD", "STARRED", "Label_1", "Label_2"]))
LABELS = st.tuples(PLACED, OTHERS).map(lambda pair: pair[0] | pair[1])


@given(LABELS, OTHERS, OTHERS, PLACED)
def test_the_inverse_of_what_was_changed_restores_what_was_there(
    before: frozenset[str], add: frozenset[str], remove: frozenset[str], place: frozenset[str]
) -> None:
    change = LabelChange((add - remove) | place, remove - add).effective(before)
    assert change.inverse.applied_to(change.applied_to(before)) == before


@given(LABELS, st.sampled_from(["archive", "mark_read", "mark_unread", "star", "unstar", "trash", "restore"]))
def test_doing_it_twice_is_doing_it_once(before: frozenset[str], action: ActionType) -> None:
    after = label_change(action).applied_to(before)
    assert label_change(action).applied_to(after) == after
    assert not label_change(action).effective(after)


@given(LABELS)
def test_a_message_is_in_one_place_at_most(before: frozenset[str]) -> None:
    assert label_change("trash").applied_to(before) & PLACES == {"TRASH"}


def test_archiving_what_is_not_in_the_inbox_changes_nothing() -> None:
    assert not label_change("archive").effective(frozenset({"UNREAD"}))


def test_snoozing_archives_and_labels() -> None:
    assert label_change("snooze", "Label_9").applied_to(frozenset({"INBOX", "UNREAD"})) == {"Label_9", "UNREAD"}


@pytest.mark.parametrize("parameters", [{}, {"label": ""}, {"label": "  "}, {"label": 5}])
def test_a_label_action_without_a_label_is_fatal(parameters: dict[str, object]) -> None:
    with pytest.raises(Fatal, match="label"):
        wanted_label("apply_label", parameters)


@pytest.mark.parametrize("action", ["delete", "forward", "auto_reply"])
def test_what_is_no_change_of_labels_is_refused_by_name(action: ActionType) -> None:
    with pytest.raises(Fatal, match=action):
        label_change(action)


def test_every_action_is_declared_once_and_in_order() -> None:
    assert tuple(SPECS) == ACTION_TYPES


@pytest.mark.parametrize("action", ACTION_TYPES)
def test_what_is_declared_of_an_action_fits_together(action: ActionType) -> None:
    spec = SPECS[action]
    assert (spec.change is None) is (spec.inverse is None) is (spec.operation in ("delete", "send"))
    assert spec.argument is None or spec.argument in spec.parameters
    assert undo_type(action) in ACTION_TYPES if spec.inverse else action in IRREVERSIBLE
    assert (spec.hides == "if_folder") is spec.names_label


def test_the_undo_of_what_has_no_action_of_its_own_is_recorded_as_labelling() -> None:
    assert [undo_type(each) for each in ("star", "snooze", "several")] == ["unstar", "apply_label", "apply_label"]


GOOD: dict[str, dict[str, Any]] = {
    "apply_label": {"label": "Receipts"},
    "remove_label": {"label": "Receipts"},
    "snooze": {"amount": 2, "units": "hours"},
    "forward": {"to": "ada@example.com"},
    "auto_reply": {"text": "I am away."},
}


@pytest.mark.parametrize("action", ACTION_TYPES)
def test_every_action_has_parameters_that_pass_and_none_that_it_does_not_know(action: str) -> None:
    check_parameters(action, GOOD.get(action, {}))
    with pytest.raises(BadInput, match=r"parameters\.colour"):
        check_parameters(action, {**GOOD.get(action, {}), "colour": "red"})


@pytest.mark.parametrize(
    ("action", "parameters", "field"),
    [
        ("archives", {}, "action"),
        ("apply_label", {}, "parameters.label"),
        ("apply_label", {"label": "a\nb"}, "parameters.label"),
        ("apply_label", {"label": "x" * 226}, "parameters.label"),
        ("snooze", {}, "parameters.until"),
        ("forward", {}, "parameters.to"),
        ("forward", {"to": []}, "parameters.to"),
        ("forward", {"to": "not an address"}, "parameters.to"),
        ("forward", {"to": ["a@b.example", "x@y.example\r\nBcc: z@w.example"]}, "parameters.to"),
        ("forward", {"to": "a@b.example,c@d.example"}, "parameters.to"),
        ("forward", {"to": [f"a{number}@b.example" for number in range(21)]}, "parameters.to"),
        ("forward", {"to": "a@b.example", "note": 5}, "parameters.note"),
        ("forward", {"to": "a@b.example", "cc": "nobody"}, "parameters.cc"),
        ("auto_reply", {}, "parameters.text"),
        ("auto_reply", {"text": " "}, "parameters.text"),
        ("auto_reply", {"text": "x", "subject": "a\r\nBcc: b@c.example"}, "parameters.subject"),
        ("auto_reply", {"text": "x" * 100_001}, "parameters.text"),
        ("auto_reply", {"text": "x", "to": "somebody@else.example"}, "parameters.to"),
    ],
)
def test_what_could_not_be_carried_out_is_refused_with_the_field(
    action: str, parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        check_parameters(action, parameters)
    assert refused.value.field == field


FILE = {"filename": "a.pdf", "data": "YQ=="}


@pytest.mark.parametrize("attachments", [None, [FILE], [{**FILE, "mime_type": "application/pdf"}] * 10])
def test_files_go_along_with_or_without_their_type(attachments: object) -> None:
    check_parameters("forward", {"to": "a@b.example", "attachments": attachments})


@pytest.mark.parametrize(
    ("attachments", "problem"),
    [
        ([], "are none"),
        ("YQ==", "are none"),
        (["YQ=="], "not an attachment"),
        ([{"filename": "a.pdf"}], "not an attachment"),
        ([{**FILE, "path": "/etc/passwd"}], "not an attachment"),
        ([{**FILE, "filename": 5}], "not base64"),
        ([{**FILE, "data": "%%%"}], "not base64"),
        ([FILE, {**FILE, "mime_type": "a pdf"}], "invalid mime_type"),
        ([FILE] * 11, "more than 10"),
    ],
)
def test_what_is_no_file_is_refused(attachments: object, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refused:
        check_parameters("auto_reply", {"text": "x", "attachments": attachments})
    assert refused.value.field == "parameters.attachments"


def test_files_together_have_a_largest_size() -> None:
    half = {**FILE, "data": "YWFh" * (LARGEST_ATTACHMENTS // 8)}
    check_parameters("forward", {"to": "a@b.example", "attachments": [half, half]})
    with pytest.raises(BadInput, match="too large"):
        check_parameters("forward", {"to": "a@b.example", "attachments": [half, half, FILE]})


@pytest.mark.parametrize("action", ["apply_label", "remove_label"])
@pytest.mark.parametrize(
    ("label", "instead"),
    [
        ("TRASH", "use trash"),
        (" Spam ", "use trash"),
        ("inbox", "use archive"),
        ("Unread", "mark_read"),
        ("STARRED", "use star"),
        ("ſtarred", "use star"),
        ("important", "use star"),
        ("SENT", "of your own"),
        ("draft", "of your own"),
        ("CHAT", "of your own"),
        ("CATEGORY_PROMOTIONS", "of your own"),
        ("category_new", "of your own"),
    ],
)
def test_a_label_of_gmail_itself_is_no_way_round_the_action_it_stands_for(
    action: str, label: str, instead: str
) -> None:
    with pytest.raises(BadInput) as refused:
        check_parameters(action, {"label": label})
    assert (refused.value.field, instead in refused.value.remedy) == ("parameters.label", True)
    with pytest.raises(BadInput) as in_rule:
        check_rule({"label_present": "INBOX"}, action, {"label": label})
    assert str(in_rule.value) == str(refused.value)


@pytest.mark.parametrize("label", ["Trash/2026", "Inbox zero", "Categories", "Spamalot"])
def test_a_label_of_the_user_may_sound_like_one_of_gmail(label: str) -> None:
    check_parameters("apply_label", {"label": label})


def test_recipients_are_one_address_or_a_list() -> None:
    assert recipients_of({"to": "a@b.example"}) == ("a@b.example",)
    assert recipients_of({"to": ["a@b.example", "c@d.example"]}) == ("a@b.example", "c@d.example")


@given(st.text(st.characters(categories=["Cc", "Zl", "Zp"]), min_size=1))
def test_no_address_holds_what_could_begin_another_header(hidden: str) -> None:
    assert not is_address(f"a{hidden}@b.example")


def test_the_hash_tells_every_difference_and_no_order_of_keys() -> None:
    message = UUID(int=1)
    same = action_hash(message, "apply_label", {"a": 1, "b": 2})
    assert same == action_hash(message, "apply_label", {"b": 2, "a": 1})
    others = [
        action_hash(UUID(int=2), "apply_label", {"a": 1, "b": 2}),
        action_hash(message, "remove_label", {"a": 1, "b": 2}),
        action_hash(message, "apply_label", {"a": 1, "b": 3}),
    ]
    assert len({same, *others}) == 4
