"""Answers of providers as they come: their counts of tokens, and whatever a broken or hostile server sends."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadModelAnswer
from postroom.settings.sections import ModelSettings
from postroom.triage.decide.model_errors import Refusal
from postroom.triage.decide.model_interfaces import MOST_TOKENS, Interface, NotInForm, interface_of
from postroom.triage.decide.model_replies import Reply

OPENAI: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "record_decision", "arguments": "{}"}}
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
}
ANTHROPIC: dict[str, Any] = {
    "id": "msg_1",
    "model": "claude-haiku-4-5-20251001",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": "Well."},
        {"type": "from_the_future", "name": 7},
        {"type": "tool_use", "id": "1", "name": "record_decision", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1000, "output_tokens": 50},
}
ANSWERS = {"openai": OPENAI, "anthropic": ANTHROPIC}


def interface(provider: str) -> Interface:
    settings = {"provider": provider, "name": "its-name", "base_url": "http://127.0.0.1:9"}
    return interface_of(ModelSettings.model_validate(settings))


def read(provider: str, **changes: Any) -> Reply:
    return interface(provider).read({**ANSWERS[provider], **changes})


@pytest.mark.parametrize("provider", ANSWERS)
def test_the_call_the_counts_and_the_exact_name_of_the_model_are_read(provider: str) -> None:
    reply = read(provider)
    assert reply.arguments() == {}
    assert (reply.input_tokens, reply.output_tokens) == (1000, 50)
    assert reply.model == ANSWERS[provider]["model"]


def test_cached_tokens_are_counted_in_full() -> None:
    """Anthropic names them apart; OpenAI's are among the others."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 5}
    assert read("anthropic", usage=usage).input_tokens == 1000
    assert (
        read("openai", usage=OPENAI["usage"] | {"prompt_tokens_details": {"cached_tokens": 900}}).input_tokens == 1000
    )


def test_thinking_that_is_only_in_the_total_is_counted() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1750}
    assert read("openai", usage=usage).output_tokens == 750


@pytest.mark.parametrize("provider", ANSWERS)
@pytest.mark.parametrize("count", [-1, True, "1000", 1.5, [], {"a": 1}, MOST_TOKENS + 1, 1e25])
def test_one_count_that_cannot_be_believed_makes_all_of_them_worthless(provider: str, count: object) -> None:
    """Then the reservation counts, which is the most that the call can cost."""
    for name in ANSWERS[provider]["usage"]:
        reply = read(provider, usage=ANSWERS[provider]["usage"] | {name: count})
        assert (reply.input_tokens, reply.output_tokens) == (0, 0)


@pytest.mark.parametrize("provider", ANSWERS)
@pytest.mark.parametrize("name", [None, 7, "", ["x"], {}])
def test_a_model_without_a_name_has_the_one_in_the_settings(provider: str, name: object) -> None:
    assert read(provider, model=name).model == "its-name"


@pytest.mark.parametrize("provider", ANSWERS)
def test_the_name_of_a_model_can_be_stored(provider: str) -> None:
    assert read(provider, model="a\0b" + "c" * 1000).model == "a\ufffdb" + "c" * 197


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_of_anthropics_that_was_cut_off_says_so(reason: str) -> None:
    with pytest.raises(BadModelAnswer, match="cut off"):
        read("anthropic", stop_reason=reason).arguments()


def test_arguments_that_are_an_object_already_are_taken_as_they_are() -> None:
    function = {"name": "record_decision", "arguments": {"action": "none"}}
    choices = [{"message": {"tool_calls": [{"function": function}]}}]
    assert read("openai", choices=choices).arguments() == {"action": "none"}


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("tool_choice and temperature are not supported", "tool_choice"),
        ("temperature and tool_choice are not supported", "temperature"),
        ("parallel_tool_calls is not supported: use another tool_choice", "parallel"),
        ("nothing that we know is supported", None),
    ],
)
def test_the_parameter_that_an_error_names_first_is_the_refused_one(said: str, named: str | None) -> None:
    chat = interface("openai")
    assert chat.refused_parameter(said, chat.first_choice()) == named


def test_a_parameter_without_another_alternative_is_passed_over() -> None:
    chat = interface("openai")
    choice = chat.first_choice() | {"temperature": 1}
    assert chat.refused_parameter("temperature and tool_choice are not supported", choice) == "tool_choice"
    assert chat.refused_parameter("temperature is not supported", choice) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        children = list(cast("dict[str | int, object]", value).items())
    elif isinstance(value, list):
        children = list(enumerate(cast("list[object]", value)))
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def changed(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    if not path:
        return new
    key, *rest = path
    copy = value.copy()
    copy[key] = changed(value[key], tuple(rest), new)
    return copy


@pytest.mark.parametrize("provider", ANSWERS)
@given(data=st.data(), new=JSON)
def test_whatever_is_put_anywhere_into_an_answer_it_is_read_or_refused(
    provider: str, data: st.DataObject, new: object
) -> None:
    whole = ANSWERS[provider]
    answer = changed(whole, data.draw(st.sampled_from(places(whole))), new)
    try:
        reply = interface(provider).read(answer)
    except NotInForm:
        return
    assert 0 <= reply.input_tokens <= 3 * MOST_TOKENS
    assert 0 <= reply.output_tokens <= MOST_TOKENS
    reply.model.encode()
    assert all(isinstance(call.name, str) for call in reply.calls)


@given(body=st.binary() | JSON.map(lambda each: json.dumps({"error": each}).encode()))
def test_whatever_an_error_contains_it_is_read(body: bytes) -> None:
    chat, refusal = interface("openai"), Refusal(400, {}, body)
    assert chat.refused_parameter(refusal.about_the_request(), chat.first_choice()) is None
