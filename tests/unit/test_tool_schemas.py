"""Arguments are checked by name, and schemas contain no more than a reader needs."""

from typing import Any, get_args

import pytest

from postroom.core.actions.action import ACTION_TYPES, ActionType
from postroom.core.errors import BadInput
from postroom.core.lifecycle import ACTION, ActionState
from postroom.interfaces.argument_forms import Arguments, read_arguments
from postroom.interfaces.http.mcp.registry import ALL_TOOLS, TOOLS_BY_NAME
from postroom.interfaces.http.mcp.schemas import input_schema, output_schema


def read_next(given: dict[str, Any] | None) -> Arguments:
    return read_arguments("queue.next", TOOLS_BY_NAME["queue.next"].arguments, given)


def refusal(given: dict[str, Any] | None) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read_next(given)
    return caught.value


def test_the_actions_and_states_that_agents_may_name_are_all_there_are():
    assert get_args(ActionType) == ACTION_TYPES
    assert frozenset(get_args(ActionState)) == ACTION.states


def test_what_is_left_out_has_its_default():
    assert read_next({"queue": "gateway"}).model_dump() == {"queue": "gateway", "max": 1, "wait_s": 0}


def test_no_arguments_at_all_are_missing_ones():
    assert refusal(None).field == "queue"


def test_an_unknown_argument_is_named_with_the_nearest_known_one_or_all():
    assert refusal({"queue": "gateway", "mx": 1}).remedy == "did you mean 'max'?"
    assert refusal({"queue": "gateway", "zzz": 1}).remedy == "leave it out; queue.next takes queue, max, wait_s"


def test_a_name_that_is_not_text_is_refused_as_a_whole():
    assert refusal({"queue": "gateway", "\ud800": 1}).field == "arguments"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "soon"])
def test_a_wait_that_is_none_is_refused(value: object):
    assert refusal({"queue": "gateway", "wait_s": value}).field == "wait_s"


def test_schemas_carry_no_titles_and_resolve_within_themselves():
    for tool in ALL_TOOLS:
        for schema in (input_schema(tool.arguments), output_schema(tool.answer)):
            text = str(schema)
            assert "'title'" not in text, tool.name
            for name in (part.partition("'")[0] for part in text.split("#/$defs/")[1:]):
                assert name in schema["$defs"], tool.name
