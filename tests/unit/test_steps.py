"""Several actions as one: read from documents, checked together, joined from several rules."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.action import ACTION_TYPES, IRREVERSIBLE
from postroom.core.actions.safety import Policy, Proposed, SafetyFacts, safety_ruling
from postroom.core.actions.steps import (
    MOST_STEPS,
    Step,
    as_items,
    check_action,
    check_steps,
    combined,
    conflict,
    is_irreversible,
    joined,
    read_steps,
    sending_step,
    shown,
    steps_of,
)
from postroom.core.errors import BadInput, Fatal
from postroom.triage.decide.simulate import ForeseenDecision

PARAMETERS: dict[str, dict[str, Any]] = {
    "forward": {"to": "ada@example.com"},
    "auto_reply": {"text": "Thank you."},
    "snooze": {"amount": 3, "units": "days"},
}
labels = st.sampled_from(["Receipts", "receipts", "Later", "Work/Taxes"])


def step(name: Any, label: str = "Receipts") -> Step:
    return Step(name, {"label": label} if name.endswith("_label") else PARAMETERS.get(name, {}))


steps = st.builds(step, st.sampled_from(ACTION_TYPES), labels)


def test_a_list_of_actions_in_its_short_form() -> None:
    found = read_steps(["apply_label Receipts", "archive", {"forward": {"to": "ada@example.com", "note": "hello"}}])
    assert found == (
        Step("apply_label", {"label": "Receipts"}),
        Step("archive"),
        Step("forward", {"to": "ada@example.com", "note": "hello"}),
    )


@pytest.mark.parametrize("item", ["forward ada@example.com", {"forward": "ada@example.com"}])
def test_an_argument_stands_for_the_parameter_that_an_action_needs(item: object) -> None:
    assert read_steps([item]) == (Step("forward", {"to": "ada@example.com"}),)


def test_a_label_may_contain_spaces() -> None:
    assert read_steps(["apply_label To  read"]) == (Step("apply_label", {"label": "To  read"}),)


BAD = [
    ([], "actions", "is empty"),
    ("archive", "actions", "not a list"),
    (["archive"] * 11, "actions", "are 11"),
    (["archiv"], "actions[0]", "not an action"),
    (["archive now"], "actions[0]", "takes no 'now'"),
    (["star", {"archive": {"label": "x"}}], "actions[1] (archive), parameters.label", "is not a parameter"),
    (["star", "unstar"], "actions[1]", "contradict"),
    (["mark_read", "mark_unread"], "actions[1]", "contradict"),
    (["archive", "trash"], "actions[1]", "where the mail goes"),
    (["trash", "delete"], "actions[1]", "where the mail goes"),
    (["apply_label A", "remove_label a"], "actions[1]", "both applied and removed"),
    (["apply_label A", "apply_label A"], "actions[1]", "given twice"),
    (["star", "star"], "actions[1]", "given twice"),
    (["forward a@b.example", "archive"], "actions[0]", "not the last"),
    (["forward a@b.example", "auto_reply hello"], "actions[0]", "not the last"),
    (["apply_label " + "x" * 226], "actions[0] (apply_label), parameters.label", "not a valid label"),
    (["apply_label INBOX"], "actions[0] (apply_label), parameters.label", "label of Gmail itself"),
    ([{"archive": None, "star": None}], "actions[0]", "is not an action"),
    ([{"archive": 3}], "actions[0]", "is not an action"),
    ([None], "actions[0]", "is not an action"),
    (["snooze"], "actions[0] (snooze), parameters.until", "missing"),
]


@pytest.mark.parametrize(("given_", "field", "problem"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_list_that_cannot_be_done_is_refused_by_its_place(given_: object, field: str, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_steps(given_)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_two_that_send_are_in_conflict() -> None:
    assert "both send or delete" in str(conflict(step("auto_reply"), step("forward")))


@given(st.lists(steps, min_size=1, max_size=12))
def test_steps_that_are_allowed_survive_being_stored_and_written(found: list[Step]) -> None:
    try:
        check_steps(found)
    except BadInput:
        return
    action_type, parameters = combined(found)
    assert steps_of(action_type, parameters) == tuple(found)
    assert read_steps(as_items(found)) == tuple(found)
    check_action(action_type, parameters)
    assert is_irreversible(action_type, parameters) is any(each.action_type in IRREVERSIBLE for each in found)
    assert shown(action_type, parameters).count(", ") >= len(found) - 1


@given(steps, steps)
def test_a_conflict_does_not_depend_on_the_order(one: Step, other: Step) -> None:
    assert (conflict(one, other) is None) is (conflict(other, one) is None)


@given(st.lists(st.lists(steps, max_size=4), max_size=6))
def test_joined_steps_can_be_done_and_leave_nothing_out_silently(parts: list[list[Step]]) -> None:
    named = [(f"rule {number}", part) for number, part in enumerate(parts)]
    found, left_out = joined(named)
    if found:
        check_steps(found)
    assert len(found) <= MOST_STEPS
    for name, part in named:
        for each in part:
            repeated = any(
                known.action_type == each.action_type and str(known).casefold() == str(each).casefold()
                for known in found
            )
            assert repeated or any(f"{each} of the rule {name!r}" in reason for reason in left_out)


def test_the_first_rule_to_say_something_has_precedence() -> None:
    found, left_out = joined([("a", [step("star")]), ("b", [step("unstar"), step("archive")])])
    assert found == (step("star"), step("archive"))
    assert left_out == ("unstar of the rule 'b' is left out: star and unstar contradict each other",)


def test_the_one_that_sends_goes_last_whichever_rule_it_is_from() -> None:
    found, _ = joined([("a", [step("archive"), step("forward")]), ("b", [step("star")])])
    assert [each.action_type for each in found] == ["archive", "star", "forward"]


def test_parameters_that_combined_did_not_make_end_a_job() -> None:
    for parameters in ({}, {"actions": "archive"}, {"actions": [{"action": "archive", "x": 1}]}, {"actions": [3]}):
        with pytest.raises(Fatal):
            steps_of("several", parameters)
    assert steps_of("none", {}) == ()
    assert sending_step("archive", {}) is None


@given(st.lists(steps, min_size=1, max_size=10), st.sampled_from(["rule", "model", "agent", "user"]))
def test_the_strictest_verdict_on_a_part_is_that_on_the_whole(found: list[Step], source: Any) -> None:
    try:
        check_steps(found)
    except BadInput:
        return
    facts, policy = SafetyFacts("ada@example.com", frozenset()), Policy()
    each = [safety_ruling(Proposed(one.action_type, one.parameters, 0.8, source), facts, policy) for one in found]
    action_type, parameters = combined(found)
    assert action_type != "none"
    whole = safety_ruling(Proposed(action_type, parameters, 0.8, source), facts, policy)
    order = ["allow", "approve", "refuse"]
    assert whole.verdict == max((one.verdict for one in each), key=order.index)
    strictest = [reason for one in each if one.verdict == whole.verdict for reason in one.reasons]
    assert set(whole.reasons) == set(strictest)


def test_a_simulation_tells_several_actions_apart() -> None:
    one, other = (
        ForeseenDecision("rule", *combined([Step("apply_label", {"label": name}), Step("archive")]), "approve")
        for name in ("Receipts", "Invoices")
    )
    assert one.summary == "apply_label Receipts, archive (needs approval)"
    assert one.summary != other.summary
