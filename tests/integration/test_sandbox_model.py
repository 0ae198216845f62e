"""The stand-in for language models refuses what the real APIs would refuse, in their own forms."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from postroom.core.rules.model_decision import decision_schema
from postroom_sandbox.model_api import ModelApi, running_model_api
from postroom_sandbox.model_moods import decides
from support.patience import PATIENCE_S

KEY = "sk-sandbox"
SCHEMA = decision_schema(("Receipts",))
OPENAI: dict[str, Any] = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": "Sort."}, {"role": "user", "content": "A receipt."}],
    "tools": [{"type": "function", "function": {"name": "record_decision", "parameters": SCHEMA, "strict": True}}],
    "tool_choice": "required",
    "max_tokens": 100,
}
ANTHROPIC: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 100,
    "system": "Sort.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "A receipt."}]}],
    "tools": [{"name": "record_decision", "input_schema": SCHEMA}],
    "tool_choice": {"type": "any"},
}


class ModelCaller:
    """Speaks to the stand-in without any client of a provider."""

    def __init__(self, api: ModelApi, http: httpx2.AsyncClient) -> None:
        self.api = api
        self._http = http

    async def openai(self, key: str = KEY, **changes: Any) -> httpx2.Response:
        body = {name: value for name, value in {**OPENAI, **changes}.items() if value is not None}
        headers = {"Authorization": f"Bearer {key}"}
        return await self._http.post("/v1/chat/completions", json=body, headers=headers)

    async def anthropic(self, key: str = KEY, version: str | None = "2023-06-01", **changes: Any) -> httpx2.Response:
        body = {name: value for name, value in {**ANTHROPIC, **changes}.items() if value is not None}
        headers = {"x-api-key": key} if version is None else {"x-api-key": key, "anthropic-version": version}
        return await self._http.post("/v1/messages", json=body, headers=headers)


@pytest.fixture
async def caller() -> AsyncIterator[ModelCaller]:
    api = ModelApi(key=KEY)
    async with (
        running_model_api(api) as url,
        httpx2.AsyncClient(base_url=url, trust_env=False, verify=False, timeout=PATIENCE_S) as http,
    ):
        yield ModelCaller(api, http)


async def test_it_answers_as_openai_does(caller: ModelCaller) -> None:
    answer = (await caller.openai()).json()
    [choice] = answer["choices"]
    assert (answer["object"], choice["finish_reason"]) == ("chat.completion", "tool_calls")
    [call] = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "record_decision"
    assert '"label": "Receipts"' in call["function"]["arguments"]
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]


async def test_it_answers_as_anthropic_does(caller: ModelCaller) -> None:
    answer = (await caller.anthropic()).json()
    [block] = answer["content"]
    assert (answer["type"], answer["stop_reason"], block["type"]) == ("message", "tool_use", "tool_use")
    assert block["input"]["parameters"]["label"] == "Receipts"


@pytest.mark.parametrize(
    "changes",
    [
        {"model": None},
        {"messages": None},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        {"tools": []},
        {"tools": OPENAI["tools"] * 2},
        {"tools": [{"type": "function", "function": {"name": "a b", "parameters": SCHEMA}}]},
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "string"}}}]},
        {"tools": [{"function": {"name": "a", "strict": True, "parameters": {"type": "object", "properties": {}}}}]},
        {"tool_choice": {"type": "function", "function": {"name": "another"}}},
        {"temperature": 3},
        {"max_tokens": 0},
        {"stream": True},
        {"surprise": 1},
    ],
)
async def test_openai_refuses_a_request_that_is_not_well_formed(caller: ModelCaller, changes: dict[str, Any]) -> None:
    answer = await caller.openai(**changes)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert caller.api.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        {"max_tokens": None},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"tool_choice": {"type": "tool", "name": "another"}},
        {"tool_choice": {"type": "required"}},
        {"temperature": 1.5},
        {"tools": [{"name": "record_decision"}]},
        {"version": None},
    ],
)
async def test_anthropic_refuses_a_request_that_is_not_well_formed(
    caller: ModelCaller, changes: dict[str, Any]
) -> None:
    version = changes.pop("version", "2023-06-01")
    answer = await caller.anthropic(version=version, **changes)
    assert (answer.status_code, answer.json()["type"]) == (400, "error")
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_another_key_is_refused(caller: ModelCaller) -> None:
    assert (await caller.openai(key="sk-other")).status_code == 401
    assert (await caller.anthropic(key="sk-other")).json()["error"]["type"] == "authentication_error"


async def test_what_was_scripted_comes_first_and_once(caller: ModelCaller) -> None:
    caller.api.say(decides("trash"))
    first, second = (await caller.openai()).json(), (await caller.openai()).json()
    assert '"action": "trash"' in first["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
    assert '"action": "apply_label"' in second["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
