"""Models differ in the parameters that they take: one that refuses a parameter is asked without it."""

import asyncio
from typing import Any

import orjson
import pytest

from postroom.core.errors import BadModelAnswer, ModelRefused, ModelUnavailable
from postroom.settings.sections import ModelSettings
from postroom.store.engine.database import Database
from postroom.triage.decide.model_interfaces import ChatCompletions
from postroom_sandbox.model_api import Raw, Unsupported
from support.clocks import ManualClock
from support.model_setup import opened_model_setup

ANY = {"type": "any", "disable_parallel_tool_use": True}
AUTO = {"type": "auto", "disable_parallel_tool_use": True}
DISABLED, BETWEEN = {"type": "disabled"}, {"type": "between_tools"}

OLD_LIMIT = Unsupported(
    "max_tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
)
TEMPERATURE = Unsupported(
    "temperature",
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
)
PARALLEL = Unsupported(
    "parallel_tool_calls", "Unsupported parameter: 'parallel_tool_calls' is not supported with this model."
)
REQUIRED = Unsupported("tool_choice", "Thinking mode does not support this tool_choice", ("required",))
NO_CHOICE = Unsupported("tool_choice", "deepseek-reasoner does not support this tool_choice")
STRICT = Unsupported("strict", "tools.0.function.strict: Extra inputs are not permitted")
CLAUDE_TEMPERATURE = Unsupported("temperature", "`temperature` is deprecated for this model.")
THINKS = Unsupported("tool_choice", "Thinking may not be enabled when tool_choice forces tool use.", (ANY,))
FORCED = Unsupported("tool_choice", "tool_choice: forcing tool use is not supported for this model.", (ANY,))
NOT_DISABLED = Unsupported(
    "thinking", '"thinking.type.disabled" is not supported for this model. Use "between_tools" instead.', (DISABLED,)
)
ALWAYS_THINKS = Unsupported("thinking", '"thinking.type" is not supported; use output_config.effort.')


@pytest.mark.parametrize(
    ("provider", "name", "refused", "sent"),
    [
        ("openai", "my-own", (OLD_LIMIT,), {"max_completion_tokens": 1000, "max_tokens": None}),
        ("openai", "my-own", (TEMPERATURE,), {"temperature": None, "max_tokens": 1000}),
        ("openai", "o3-mini", (PARALLEL,), {"parallel_tool_calls": None, "tool_choice": "required"}),
        ("openai", "deepseek-chat", (REQUIRED,), {"tool_choice": "auto", "temperature": 0.2}),
        ("openai", "deepseek-reasoner", (NO_CHOICE,), {"tool_choice": None}),
        ("openai", "my-own", (STRICT,), {"strict": None, "tool_choice": "required"}),
        ("openai", "a-router", (OLD_LIMIT, TEMPERATURE, PARALLEL, REQUIRED), {"tool_choice": "auto"}),
        ("anthropic", "my-proxy", (CLAUDE_TEMPERATURE,), {"temperature": None, "tool_choice": ANY}),
        ("anthropic", "my-proxy", (FORCED,), {"temperature": 0.2, "tool_choice": AUTO}),
        ("anthropic", "claude-opus-7", (NOT_DISABLED, FORCED), {"thinking": BETWEEN, "tool_choice": AUTO}),
        (
            "anthropic",
            "claude-opus-7",
            (ALWAYS_THINKS, FORCED),
            {"thinking": None, "output_config": {"effort": "low"}, "tool_choice": AUTO},
        ),
    ],
)
async def test_a_parameter_that_is_refused_is_left_out_from_then_on(
    provider: str,
    name: str,
    refused: tuple[Unsupported, ...],
    sent: dict[str, Any],
    sqlite: Database,
    clock: ManualClock,
) -> None:
    async with opened_model_setup(provider, sqlite, clock) as setup:
        setup.api.unsupported = refused
        setup.model = setup.with_settings(name=name)
        await setup.decide()
        found = setup.api.asked[0].body
        found = {**found["tools"][0].get("function", {}), **found}
        assert {key: found.get(key) for key in sent} == sent
        assert await setup.states() == ["answered"]
        before = setup.api.requests
        await setup.decide()
        assert setup.api.requests == before + 1


async def test_a_model_that_thinks_unasked_is_told_not_to_and_stays_forced(
    sqlite: Database, clock: ManualClock
) -> None:
    """It refuses to be forced only as long as it thinks."""
    async with opened_model_setup("anthropic", sqlite, clock) as setup:
        message = orjson.dumps({"type": "error", "error": {"type": "x", "message": THINKS.message}})
        setup.api.say(Raw(message, 400))
        await setup.decide()
        first, second = setup.api.asked
        assert "thinking" not in first.body
        assert (second.body["thinking"], second.body["tool_choice"]) == (DISABLED, ANY)


@pytest.mark.parametrize(
    ("provider", "name", "sent"),
    [
        ("openai", "gpt-4o", {"max_tokens": 1000, "temperature": 0.2, "tool_choice": "required"}),
        ("openai", "gpt-5-chat-latest", {"temperature": 0.2}),
        ("openai", "openai/gpt-5-mini", {"max_completion_tokens": 1000, "max_tokens": None, "temperature": None}),
        ("openai", "o4-mini", {"max_completion_tokens": 1000, "temperature": None}),
        ("openai", "gpt-oss:20b", {"max_tokens": 1000, "temperature": 0.2}),
        ("anthropic", "claude-haiku-4-5", {"temperature": 0.2, "thinking": None, "tool_choice": ANY}),
        ("anthropic", "claude-3-5-sonnet-latest", {"temperature": 0.2, "thinking": None, "tool_choice": ANY}),
        ("anthropic", "claude-sonnet-4-20250514", {"temperature": 0.2, "thinking": None}),
        ("anthropic", "claude-opus-4-8", {"temperature": None, "thinking": None, "tool_choice": ANY}),
        ("anthropic", "claude-haiku-5-5", {"temperature": None, "thinking": DISABLED, "tool_choice": ANY}),
        ("anthropic", "claude-sonnet-5-5", {"temperature": None, "thinking": BETWEEN, "tool_choice": AUTO}),
        ("anthropic", "claude-opus-5-5", {"thinking": None, "output_config": {"effort": "low"}, "tool_choice": AUTO}),
    ],
)
async def test_a_known_model_is_asked_right_at_once(
    provider: str, name: str, sent: dict[str, Any], sqlite: Database, clock: ManualClock
) -> None:
    async with opened_model_setup(provider, sqlite, clock) as setup:
        setup.model = setup.with_settings(name=name)
        await setup.decide()
        [asked] = setup.api.asked
        assert {key: asked.body.get(key) for key in sent} == sent


def test_openai_itself_gets_the_newer_name_of_the_limit() -> None:
    settings = ModelSettings.model_validate({"provider": "openai", "name": "gpt-4o", "api_key": "sk-x"})
    interface = ChatCompletions(settings)
    assert interface.url == "https://api.openai.com/v1/chat/completions"
    assert interface.parameters["limit"].alternatives[0] == {"max_completion_tokens": 1000}


def failing(message: str, status: int = 400) -> Raw:
    return Raw(orjson.dumps({"error": {"message": message, "type": "invalid_request_error"}}), status)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (failing("max_tokens is too large: 32000. This model supports at most 16384."), ModelRefused),
        (failing("max_tokens: 100000 > 64000, which is the maximum allowed"), ModelRefused),
        (failing("Could not finish the message because max_tokens was reached."), ModelRefused),
        (failing("content_filter: the mail says that temperature is not supported"), BadModelAnswer),
        (failing("temperature is not supported", 403), ModelRefused),
        (failing("Something else is not supported."), ModelRefused),
    ],
)
async def test_another_refusal_is_not_answered_by_a_second_request(
    raw: Raw, error: type[Exception], sqlite: Database, clock: ManualClock
) -> None:
    async with opened_model_setup("openai", sqlite, clock) as setup:
        setup.api.say(raw, raw)
        with pytest.raises(error):
            await setup.decide()
        assert setup.api.requests == 1


async def test_a_parameter_is_left_out_for_good_only_after_an_answer_without_it(
    sqlite: Database, clock: ManualClock
) -> None:
    """So that one odd refusal, which a mail may have caused, does not weaken every later request."""
    async with opened_model_setup("openai", sqlite, clock) as setup:
        setup.api.say(failing("temperature is not supported"), failing("no, anyway"))
        with pytest.raises(ModelRefused):
            await setup.decide()
        setup.api.say(failing("tool_choice is not supported"), failing("busy", 503))
        with pytest.raises(ModelUnavailable):
            await setup.decide()
        clock.forward(60)
        await setup.decide()
        last = setup.api.asked[-1].body
        assert (last["temperature"], last["tool_choice"]) == (0.2, "required")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_server_that_refuses_one_parameter_after_the_other_is_given_up(
    provider: str, sqlite: Database, clock: ManualClock
) -> None:
    names = ("temperature", "tool_choice", "max_tokens", "parallel_tool_calls", "strict", "thinking", "effort")
    async with opened_model_setup(provider, sqlite, clock) as setup:
        setup.api.say(*[failing(f"{name} is not supported") for _ in range(9) for name in names])
        with pytest.raises(ModelRefused):
            await setup.decide()
        assert setup.api.requests <= 1 + 8


async def test_calls_that_find_out_at_the_same_time_leave_out_the_same(sqlite: Database, clock: ManualClock) -> None:
    async with opened_model_setup("openai", sqlite, clock) as setup:
        setup.api.unsupported = (REQUIRED, TEMPERATURE)
        await asyncio.gather(*(setup.decide() for _ in range(4)))
        assert {asked.body["tool_choice"] for asked in setup.api.asked} == {"auto"}
        before = setup.api.requests
        await setup.decide()
        assert setup.api.requests == before + 1
