"""A stand-in for the HTTP APIs of language models: OpenAI's chat completions and Anthropic's messages.

It gives the scripted answers, in order, and then those of its mood. It refuses what the real ones would refuse, and
counts tokens. Faults work as in the Gmail emulator (`Fault(path="/v1/", …)`): statuses, delays, resets, answers that
are truncated or decompress to gigabytes.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from postroom_sandbox.connection import FaultyConnections, Sleep, transport_of
from postroom_sandbox.faults import Fault, Faults
from postroom_sandbox.model_moods import FakeAnswer, FakeToolCall, Mood, sensible
from postroom_sandbox.model_requests import READERS, Api, ReceivedRequest, WrongRequest
from postroom_sandbox.server import running

Json = dict[str, Any]

CHARACTERS_PER_TOKEN = 4
ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("invalid_request_error", "authentication_error"),
    402: ("insufficient_quota", "billing_error"),
    403: ("invalid_request_error", "permission_error"),
    404: ("invalid_request_error", "not_found_error"),
    429: ("requests", "rate_limit_error"),
    500: ("server_error", "api_error"),
    503: ("server_error", "api_error"),
    529: ("server_error", "overloaded_error"),
}


@dataclass(frozen=True)
class Raw:
    """A raw response with its body repeated `repeat` times: garbage, something huge, a redirection."""

    content: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    repeat: int = 1


@dataclass(frozen=True)
class Unsupported:
    """A parameter that a model refuses: always, or with the given values. An error says so in the given words."""

    parameter: str
    message: str
    values: tuple[object, ...] = ()

    def is_in(self, request: ReceivedRequest) -> bool:
        given = {**request.body["tools"][0].get("function", {}), **request.body}
        return self.parameter in given and (not self.values or given[self.parameter] in self.values)


class ModelApi:
    """A provider with the given models, or any if none are given. With a key, it accepts no other."""

    def __init__(
        self,
        mood: Mood = sensible,
        *,
        key: str | None = None,
        models: frozenset[str] = frozenset(),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.mood = mood
        self.faults = Faults(clock)
        self.asked: list[ReceivedRequest] = []
        """Every valid request, oldest first."""
        self.unsupported: tuple[Unsupported, ...] = ()
        self.requests = 0
        self.sent_bytes = 0
        self._script: deque[FakeAnswer | Raw] = deque()
        self._key = key
        self._models = models
        self._sleep = sleep

    def say(self, *answers: FakeAnswer | Raw) -> None:
        """Script the next answers; after them the mood decides again."""
        self._script.extend(answers)

    def app(self) -> ASGIApp:
        routes = [
            Route("/v1/chat/completions", self._openai, methods=["POST"]),
            Route("/v1/messages", self._anthropic, methods=["POST"]),
        ]
        return FaultyConnections(Starlette(routes=routes), self.faults, self._sleep)

    async def _openai(self, request: Request) -> Response:
        return await self._answer(request, "openai")

    async def _anthropic(self, request: Request) -> Response:
        return await self._answer(request, "anthropic")

    async def _answer(self, request: Request, api: Api) -> Response:
        self.requests += 1
        fault = self.faults.answer_fault(request.url.path, "", "")
        if fault is not None:
            return _faulty(api, fault)
        try:
            parsed = READERS[api](orjson.loads(await request.body()), request.headers)
        except (WrongRequest, orjson.JSONDecodeError) as error:
            return refusal(api, 400, str(error))
        except ClientDisconnect:
            return Response(status_code=400)
        if self._key is not None and parsed.key != self._key:
            return refusal(api, 401, "Incorrect API key provided.")
        if self._models and parsed.model not in self._models:
            return refusal(api, 404, f"The model `{parsed.model}` does not exist", "model_not_found")
        refused = next((each for each in self.unsupported if each.is_in(parsed)), None)
        if refused is not None:
            return refusal(api, 400, refused.message, "unsupported_parameter", refused.parameter)
        self.asked.append(parsed)
        answer = self._script.popleft() if self._script else self.mood(parsed)
        if isinstance(answer, Raw):
            return StreamingResponse(self._bytes(answer, request), answer.status, dict(answer.headers))
        shape = _completion if api == "openai" else _message
        return JSONResponse(shape(parsed, answer, len(self.asked)))

    async def _bytes(self, answer: Raw, request: Request) -> AsyncIterator[bytes]:
        """The bytes, until the client disconnects."""
        transport = transport_of(request.scope)
        for _ in range(answer.repeat):
            if transport is not None and transport.is_closing():
                return
            self.sent_bytes += len(answer.content)
            yield answer.content


@asynccontextmanager
async def running_model_api(api: ModelApi, port: int = 0) -> AsyncGenerator[str]:
    """Serve the stand-in; yield its address, to be used as it is for Anthropic, and with `/v1` for OpenAI."""
    async with running(api.app(), port) as url:
        yield url


def refusal(api: Api, status: int, message: str, code: str | None = None, parameter: str | None = None) -> JSONResponse:
    """An error in the format of the API."""
    kinds = ERRORS.get(status, ERRORS[500])
    if api == "openai":
        return JSONResponse({"error": {"message": message, "type": kinds[0], "param": parameter, "code": code}}, status)
    body = {"type": "error", "error": {"type": kinds[1], "message": message}, "request_id": "req_sandbox"}
    return JSONResponse(body, status)


def _faulty(api: Api, fault: Fault) -> JSONResponse:
    response = refusal(api, fault.code, f"Fault ordered from the sandbox: {fault.reason}")
    if fault.retry_after is not None:
        response.headers["Retry-After"] = str(fault.retry_after)
    return response


def _tokens(request: ReceivedRequest, says: FakeAnswer) -> tuple[int, int]:
    if says.tokens is not None:
        return says.tokens
    sent = len(request.system) + len(request.user) + len(json.dumps(request.schema))
    answered = len(says.text) + sum(len(_text(call)) for call in says.calls)
    return sent // CHARACTERS_PER_TOKEN + 1, answered // CHARACTERS_PER_TOKEN + 1


def _text(call: FakeToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _completion(request: ReceivedRequest, says: FakeAnswer, number: int) -> Json:
    """An answer in OpenAI's format."""
    sent, answered = _tokens(request, says)
    calls = [
        {
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.tool or request.tool, "arguments": _text(call)},
        }
        for index, call in enumerate(says.calls)
    ]
    message: Json = {"role": "assistant", "content": says.text or None, "refusal": None}
    if says.refuses:
        message |= {"content": None, "refusal": says.text}
    if calls:
        message["tool_calls"] = calls
    ended = "length" if says.cut_off else "tool_calls" if calls else "stop"
    completion: Json = {
        "id": f"chatcmpl-sandbox-{number}",
        "object": "chat.completion",
        "created": 1_763_193_600,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": ended}],
    }
    if says.has_usage:
        completion["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": answered,
            "total_tokens": sent + answered,
        }
    return completion


def _message(request: ReceivedRequest, says: FakeAnswer, number: int) -> Json:
    """An answer in Anthropic's format. Arguments that are not an object are wrapped, since it cannot express them."""
    sent, answered = _tokens(request, says)
    content: list[Json] = [{"type": "text", "text": says.text}] if says.text else []
    for index, call in enumerate(says.calls):
        given = call.arguments if isinstance(call.arguments, dict) else {"raw": call.arguments}
        content.append(
            {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.tool or request.tool, "input": given}
        )
    ended = "max_tokens" if says.cut_off else "refusal" if says.refuses else "tool_use" if says.calls else "end_turn"
    message: Json = {
        "id": f"msg_sandbox_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": ended,
        "stop_sequence": None,
    }
    if says.has_usage:
        message["usage"] = {"input_tokens": sent, "output_tokens": answered}
    return message
