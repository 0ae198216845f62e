"""Asks a provider through pydantic-ai: one forced tool call, over one HTTP client that trusts nothing it receives.

Importing pydantic-ai takes seconds, so this module is imported only when a model is first asked. The client follows no
redirects (the key and the mail go only to the address in the settings), accepts no compressed answer, and gives up on
an answer that is too long or takes too long. Nothing is retried here: jobs are.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import httpx2
import orjson
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings as CallSettings
from pydantic_ai.tools import ToolDefinition

from postroom.core.rules.model_decision import TOOL, TOOL_DESCRIPTION, decision_schema
from postroom.triage.decide.model_errors import Redirected, ReplyTooLong, failure_of
from postroom.triage.decide.model_replies import Reply, ToolCall

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

LONGEST_REPLY = 1024 * 1024
CONNECT_S = 10.0
NO_KEY = "none"
OK = 200
COUNTS = ("input_tokens", "output_tokens")
OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
# At debug level Anthropic's client logs the whole request, mail included.
TALKATIVE = ("anthropic", "openai")


class ProviderClient:
    """A client for the configured model."""

    def __init__(self, settings: "ModelSettings") -> None:
        for name in TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        self._settings = settings
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(settings.timeout_s, connect=min(CONNECT_S, settings.timeout_s)),
            headers={"Accept-Encoding": "identity"},
            follow_redirects=False,
            verify=_certificates(),
            event_hooks={"response": [_cap, _count] if settings.provider == "anthropic" else [_cap]},
        )
        self._model = _provider_model(settings, self._http)
        self._call_settings = _call_settings(settings, self._model)
        self._has_answered = False

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, system: str, user: str, labels: tuple[str, ...]) -> Reply:
        """Ask the model. Raises CallFailed."""
        messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(system), UserPromptPart(user)])]
        tool = ToolDefinition(name=TOOL, parameters_json_schema=decision_schema(labels), description=TOOL_DESCRIPTION)
        # One tool and no text: this forces the tool call wherever the model supports that.
        parameters = ModelRequestParameters(function_tools=[tool], allow_text_output=False)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response = await model_request(
                    self._model,
                    messages,
                    model_settings=self._call_settings,
                    model_request_parameters=parameters,
                    instrument=False,
                )
        except Exception as error:
            # Drop the cause, which may quote the mail, the answer or the key.
            raise failure_of(error, self._settings, self._has_answered) from None
        self._has_answered = True
        return _reply(response, self._settings.name or "")


@cache
def _certificates() -> ssl.SSLContext:
    """The TLS context, cached since loading the certificates takes a tenth of a second."""
    return httpx2.create_ssl_context()


def _provider_model(settings: "ModelSettings", http: httpx2.AsyncClient) -> ProviderModel:
    name = settings.name or ""
    key = settings.api_key.get_secret_value() if settings.api_key is not None else NO_KEY
    if settings.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            name, provider=AnthropicProvider(api_key=key, base_url=settings.base_url or ANTHROPIC, http_client=http)
        )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if settings.base_url is None:
        return OpenAIChatModel(name, provider=OpenAIProvider(base_url=OPENAI, api_key=key, http_client=http))
    provider = OpenAICompatibleProvider("compatible", base_url=settings.base_url, api_key=key, http_client=http)
    reasons = OpenAIChatModel(name, provider=provider).profile.get("openai_supports_reasoning", False)
    # Self-hosted servers know the older name of the token limit; OpenAI's reasoning models, even behind a proxy, only
    # the newer one.
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=bool(reasons))
    return OpenAIChatModel(name, provider=provider, profile=profile)


def _call_settings(settings: "ModelSettings", model: ProviderModel) -> CallSettings:
    wanted = CallSettings(
        max_tokens=settings.max_output_tokens,
        timeout=settings.timeout_s,
        max_retries=0,
        parallel_tool_calls=False,
    )
    profile = model.profile
    if profile.get("thinking_enabled_by_default") and settings.provider == "anthropic":
        # A thinking model cannot be forced to call the tool.
        wanted["thinking"] = False
    if not (profile.get("openai_supports_reasoning") or profile.get("anthropic_disallows_sampling_settings")):
        wanted["temperature"] = settings.temperature
    return wanted


def _reply(response: ModelResponse, model: str) -> Reply:
    calls = tuple(ToolCall(part.tool_name, part.args) for part in response.parts if isinstance(part, ToolCallPart))
    usage = response.usage
    return Reply(
        calls, response.finish_reason == "length", usage.input_tokens, usage.output_tokens, response.model_name or model
    )


async def _cap(response: httpx2.Response) -> None:
    """Check the headers of an answer and limit its length, before its body is read."""
    if 300 <= response.status_code < 400:
        raise Redirected(response.status_code)
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise ReplyTooLong("it is compressed, which was not asked for")
    length = response.headers.get("Content-Length", "0")
    if not length.isdecimal() or int(length) > LONGEST_REPLY:
        raise ReplyTooLong(f"it is longer than {LONGEST_REPLY:,} bytes")
    assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - what an AsyncClient always has
    response.stream = _Capped(response.stream)


async def _count(response: httpx2.Response) -> None:
    """Have an answer without token counts read as one that has counted none, as answers of OpenAI's interface are."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - what an AsyncClient always has
    if response.status_code == OK:
        response.stream = _Counted(response.stream)


def _with_usage(body: bytes) -> bytes:
    """The body of Anthropic's answer with both counts; unchanged if it has them, or is no JSON object."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    if not isinstance(answer, dict):
        return body
    message = cast("dict[str, Any]", answer)
    given = message.get("usage")
    usage = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    missing = {name: 0 for name in COUNTS if not isinstance(usage.get(name), int)}
    return orjson.dumps({**message, "usage": {**usage, **missing}}) if missing else body


class _Counted(httpx2.AsyncByteStream):
    """The body of an answer, read as a whole and given the counts that it lacks. Its length is limited before."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield _with_usage(b"".join([piece async for piece in self._stream]))

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Capped(httpx2.AsyncByteStream):
    """A response body that raises an error when it grows too long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for piece in self._stream:
            length += len(piece)
            if length > LONGEST_REPLY:
                raise ReplyTooLong(f"it is longer than {LONGEST_REPLY:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
