"""What a model may decide, and what happens to an invalid answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.action import ACTION_TYPES, check_parameters
from postroom.core.errors import BadModelAnswer
from postroom.core.rules.model_decision import (
    LONGEST_RATIONALE,
    LONGEST_REPLY,
    MODEL_ACTIONS,
    Alternative,
    ModelDecision,
    decision_schema,
    offered_actions,
    read_decision,
)

LABELS = ("Receipts", "Travel")
CANARY = "attacker@evil.example"


def answer(action: Any = "archive", **changes: Any) -> dict[str, Any]:
    whole = {"action": action, "parameters": {}, "confidence": 0.9, "rationale": "because", "needs_approval": False}
    return {**whole, **changes}


def refused(arguments: object) -> str:
    with pytest.raises(BadModelAnswer) as error:
        read_decision(arguments, LABELS)
    return str(error.value)


def test_a_plain_decision_is_read() -> None:
    assert read_decision(answer(needs_approval=True), LABELS) == ModelDecision("archive", {}, 0.9, "because", True)


@pytest.mark.parametrize("action", MODEL_ACTIONS)
def test_every_offered_action_can_be_decided_and_carried_out(action: str) -> None:
    parameters = {"label": "Travel", "amount": 2, "units": "days", "text": "Thank you."}
    decision = read_decision(answer(action, parameters=parameters), LABELS)
    assert decision.action_type == action
    if action != "none":
        check_parameters(action, decision.parameters)


def weighed(*alternatives: Any, action: str = "archive", **more: Any) -> list[tuple[str, str | None, float]]:
    read = read_decision(answer(action, alternatives=list(alternatives), **more), LABELS)
    return [(each.action_type, each.label, each.confidence) for each in read.alternatives]


def test_what_else_the_model_weighed_is_read_likeliest_first() -> None:
    given = [{"action": "none", "confidence": 0.05}, {"action": "apply_label Travel", "confidence": 0.2}]
    assert weighed(*given) == [("apply_label", "Travel", 0.2), ("none", None, 0.05)]
    assert Alternative("apply_label", "Travel", 0.2).as_json() == {
        "action": "apply_label",
        "parameters": {"label": "Travel"},
        "confidence": 0.2,
    }
    for absent in ({}, {"alternatives": None}, {"alternatives": []}):
        assert read_decision(answer(**absent), LABELS).alternatives == ()


def test_invalid_alternatives_are_dropped_and_the_decision_stands() -> None:
    wrong: list[Any] = [
        *(None, 7, "archive", [], {}, {"action": "star"}, {"action": 7, "confidence": 0.1}),
        *(
            {"action": f"{action}", "confidence": 0.1}
            for action in ("forward", "explode", CANARY, "apply_label Secret")
        ),
        *({"action": "star", "confidence": bad} for bad in (True, "0.5", -0.1, 1.1, float("nan"), None)),
        {"action": "archive", "confidence": 0.1},
    ]
    for each in wrong:
        assert weighed(each, {"action": "trash", "confidence": 0.1}) == [("trash", None, 0.1)], each
    for field in ("archive", 7, {"action": "star", "confidence": 0.1}):
        assert read_decision(answer(alternatives=field), LABELS).alternatives == ()
    assert weighed(action="apply_label", parameters={"label": "Travel"}) == []
    same = {"action": "apply_label Travel", "confidence": 0.1}
    assert weighed(same, action="apply_label", parameters={"label": "Travel"}) == []


def test_no_more_than_three_alternatives_are_kept_and_each_once() -> None:
    names = ("star", "trash", "mark_read", "none", "star", "unstar") * 1_000
    found = weighed(*({"action": name, "confidence": 0.1} for name in names))
    assert [name for name, _, _ in found] == ["star", "trash", "mark_read"]


def test_all_actions_but_forwarding_are_offered() -> None:
    assert set(MODEL_ACTIONS) == {*ACTION_TYPES, "none"} - {"forward"}


def test_without_labels_none_can_be_put_on_or_taken_off() -> None:
    assert not {"apply_label", "remove_label"} & set(offered_actions(()))
    with pytest.raises(BadModelAnswer, match="action"):
        read_decision(answer("apply_label", parameters={"label": "Receipts"}), ())
    assert "label" not in decision_schema(())["properties"]["parameters"]["properties"]


@pytest.mark.parametrize("action", ["forward", "explode", "", "ARCHIVE", None, 7, ["archive"], {"archive": 1}])
def test_an_action_that_is_not_offered_is_refused(action: object) -> None:
    assert refused(answer(action)).startswith("action: is not one of none, archive,")


@pytest.mark.parametrize("label", ["Spam", "receipts", "", None, 7, ["Receipts"], "Receipts "])
def test_a_label_that_is_not_in_the_list_is_refused(label: object) -> None:
    assert "parameters.label" in refused(answer("apply_label", parameters={"label": label}))


@pytest.mark.parametrize("confidence", [7, -0.1, 1.0001, float("nan"), float("inf"), 10**400, True, "0.9", None, [0.5]])
def test_a_confidence_that_is_none_is_refused(confidence: object) -> None:
    assert refused(answer(confidence=confidence)).startswith("confidence:")


@pytest.mark.parametrize("confidence", [0, 1, 0.5])
def test_confidence_goes_from_nothing_to_certainty(confidence: float) -> None:
    assert read_decision(answer(confidence=confidence), LABELS).confidence == confidence


@pytest.mark.parametrize("rationale", [None, "", "  \n", 7])
def test_a_decision_without_a_reason_is_refused(rationale: object) -> None:
    assert refused(answer(rationale=rationale)).startswith("rationale:")


def test_a_long_reason_is_cut_and_made_storable() -> None:
    kept = read_decision(answer(rationale="a\0b\ud800\nc" + "x" * 10_000_000), LABELS).rationale
    assert len(kept) == LONGEST_RATIONALE
    assert "\0" not in kept
    assert "\n" not in kept
    kept.encode()


@pytest.mark.parametrize("field", ["to", "recipient", "recipients", "bcc", "address", "until", "html", "subject"])
def test_there_is_no_parameter_for_a_recipient_or_anything_else(field: str) -> None:
    problem = refused(answer("auto_reply", parameters={"text": "yes", field: CANARY}))
    assert problem == "parameters has fields that do not exist; there are amount, label, text, units"


def test_no_field_may_be_added_to_the_answer() -> None:
    assert "the answer has fields that do not exist" in refused(answer(to=CANARY))


def test_parameters_of_other_actions_are_left_out() -> None:
    parameters = {"label": "Travel", "amount": 2, "units": "days", "text": "yes"}
    assert read_decision(answer("archive", parameters=parameters), LABELS).parameters == {}
    assert read_decision(answer("apply_label", parameters=parameters), LABELS).parameters == {"label": "Travel"}


@pytest.mark.parametrize(
    "snooze",
    [
        {},
        {"amount": 1},
        {"amount": 0, "units": "days"},
        {"amount": 400, "units": "days"},
        {"amount": 1, "units": "years"},
        {"amount": "1", "units": "days"},
        {"amount": float("nan"), "units": "days"},
    ],
)
def test_a_snooze_needs_an_amount_and_units_within_a_year(snooze: dict[str, Any]) -> None:
    assert refused(answer("snooze", parameters=snooze)).startswith("parameters.")


@pytest.mark.parametrize("text", [None, "", "  ", 7, "x" * (LONGEST_REPLY + 1)])
def test_an_automatic_reply_needs_a_text_of_reasonable_length(text: object) -> None:
    assert refused(answer("auto_reply", parameters={"text": text})).startswith("parameters.text:")


@pytest.mark.parametrize("arguments", [None, "archive", 7, [], [answer()], {}, {"action": "archive"}])
def test_what_is_no_answer_is_refused(arguments: object) -> None:
    refused(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        answer(CANARY),
        answer("apply_label", parameters={"label": CANARY}),
        answer(parameters={CANARY: 1}),
        answer("snooze", parameters={"amount": 1, "units": CANARY}),
        answer("snooze", parameters={"amount": CANARY, "units": "days"}),
        {**answer(), CANARY: CANARY},
        answer(confidence=CANARY),
        answer(needs_approval=CANARY),
        answer(parameters=CANARY),
    ],
)
def test_a_refusal_quotes_nothing_of_the_answer(arguments: dict[str, Any]) -> None:
    """Mail may have dictated it, and the refusal is told to the model."""
    assert CANARY not in refused(arguments)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.sampled_from([*MODEL_ACTIONS, *LABELS]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
FIELDS = ("action", "parameters", "confidence", "rationale", "needs_approval", "label", "amount", "units", "text", "to")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON | st.dictionaries(st.sampled_from(FIELDS), JSON)))
def test_whatever_is_answered_it_is_a_decision_that_can_be_carried_out_or_refused(arguments: dict[str, Any]) -> None:
    try:
        decision = read_decision(arguments, LABELS)
    except BadModelAnswer:
        return
    assert decision.action_type in MODEL_ACTIONS
    assert 0 <= decision.confidence <= 1
    if decision.action_type != "none":
        check_parameters(decision.action_type, decision.parameters)


def test_the_form_is_closed_and_all_of_it_required_as_strict_modes_want_it() -> None:
    def closed(schema: dict[str, Any]) -> None:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for each in schema["properties"].values():
            if each["type"] == "object":
                closed(each)

    closed(decision_schema(LABELS))
    assert decision_schema(LABELS)["properties"]["parameters"]["properties"]["label"]["enum"] == [*LABELS, None]
