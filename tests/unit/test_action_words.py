"""Actions in words: every action has its own, whoever speaks of it, and nothing that is stored makes them fail."""

import pytest

from postroom.core.actions.action import ACTION_TYPES, SPECS, ActionType
from postroom.words.actions import OFFERED, asked, done, in_brief, kind_done, rule_does
from postroom.words.road import ENDINGS

GIVEN = {"label": "Tax", "to": "ada@example.com", "amount": 2, "units": "days"}
SEVERAL = {
    "actions": [
        {"action": "apply_label", "parameters": {"label": "Tax"}},
        {"action": "snooze", "parameters": {"amount": 2, "units": "days"}},
        {"action": "forward", "parameters": {"to": ["ada@example.com", "bob@example.com"]}},
    ]
}


@pytest.mark.parametrize("action", ACTION_TYPES)
def test_every_action_has_words_wherever_people_read_of_it(action: ActionType) -> None:
    for said in (asked(action, GIVEN), done(action, GIVEN), in_brief(action, GIVEN), SPECS[action].button):
        assert said
        assert "_" not in said
        assert "{" not in said
    assert ENDINGS[action] == kind_done(action)


def test_several_actions_read_as_a_sentence() -> None:
    assert asked("several", SEVERAL) == (
        "label it “Tax”, snooze it for 2 days and forward it to ada@example.com, bob@example.com"
    )
    assert done("several", SEVERAL).startswith("labelled “Tax”, snoozed for 2 days and forwarded to ada@")
    assert in_brief("several", SEVERAL) == "apply the label “Tax”, then snooze for 2 days, then forward"


def test_a_snooze_ends_at_a_minute_that_people_can_read() -> None:
    assert done("snooze", {"until": "2026-11-19T19:37:14.175408+00:00"}) == "snoozed until 2026-11-19 19:37 UTC"
    assert done("snooze", {"until": "2026-11-20T09:00:00+01:00"}) == "snoozed until 2026-11-20 09:00 UTC+01:00"


def test_a_decision_to_do_nothing_has_words() -> None:
    assert (asked("none", {}), done("none", {})) == ("leave it as it is", "left as it was")
    assert rule_does("none", {}) == "leave it as it is; no later rule is tried"


def test_broken_actions_of_a_rule_are_named_as_such() -> None:
    assert rule_does("several", {"actions": "all"}) == "something that is not valid"


def test_a_page_offers_what_can_be_undone_and_is_no_button_already() -> None:
    assert {"star", "apply_label", "trash", "snooze 1d"} <= OFFERED.keys()
    assert not {"archive", "delete", "forward", "auto_reply", "snooze"} & OFFERED.keys()
