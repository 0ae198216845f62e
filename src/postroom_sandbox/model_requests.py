"""Parses requests to a language model as OpenAI and Anthropic do, and refuses what they would refuse.

Supports the part of both APIs that is used to force one tool call; everything else in a request is refused.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Json = dict[str, Any]
Api = Literal["openai", "anthropic"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPENAI_FIELDS = frozenset(
    {"model", "messages", "tools", "tool_choice", "temperature", "max_tokens", "max_completion_tokens",
     "parallel_tool_calls", "stream", "n"}
)  # fmt: skip
_ANTHROPIC_FIELDS = frozenset(
    {
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "temperature",
        "max_tokens",
        "stream",
        "metadata",
        "output_config",
        "thinking",
    }
)
# Versions of Anthropic's interface from then on refuse a temperature.
_WITHOUT_TEMPERATURE = "2026-10-21"


class WrongRequest(Exception):
    """A request that the provider would answer with 400."""


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as the model reads it."""

    api: Api
    model: str
    system: str
    user: str
    tool: str
    schema: Json
    forced: bool
    body: Json
    key: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the tool's schema allows."""
        parameters = self.schema.get("properties", {}).get("parameters", {}).get("properties", {})
        return tuple(each for each in parameters.get("label", {}).get("enum", ()) if each is not None)

    @property
    def mail(self) -> str:
        """The part of the prompt that is mail; the whole prompt if there is no fence."""
        found = re.search(r'<mail mark="(\w+)">\n(.*)\n</mail mark="\1">', self.user, re.DOTALL)
        return found[2] if found else self.user


def read_openai(body: object, headers: Mapping[str, str]) -> ReceivedRequest:
    """Parse a request to `/v1/chat/completions`."""
    given = _object(body, "the body")
    _check_known(given, _OPENAI_FIELDS)
    _number(given, "temperature", 0, 2)
    _tokens(given, "max_tokens" if "max_tokens" in given else "max_completion_tokens")
    function = _object(_object(_only(given.get("tools"), "tools"), "tools[0]").get("function"), "tools[0].function")
    name, schema = _text(function, "name", _NAME), _object(function.get("parameters"), "parameters")
    _check_closed(schema, strict=function.get("strict") is True)
    choice = given.get("tool_choice", "auto")
    named = {"type": "function", "function": {"name": name}}
    if choice not in ("auto", "none", "required", named):
        raise WrongRequest(f"Invalid value for 'tool_choice': {choice!r}.")
    texts: dict[str, list[str]] = {"system": [], "developer": [], "user": []}
    for message in _list(given.get("messages"), "messages"):
        role = _object(message, "messages[]").get("role")
        if role not in texts:
            raise WrongRequest(f"Invalid value for messages[].role: {role!r}.")
        texts[str(role)].append(_content(_object(message, "messages[]").get("content")))
    return ReceivedRequest(
        "openai",
        _text(given, "model"),
        "\n".join(texts["system"] + texts["developer"]),
        "\n".join(texts["user"]),
        name,
        schema,
        choice not in ("auto", "none"),
        given,
        _bearer(headers),
    )


def read_anthropic(body: object, headers: Mapping[str, str]) -> ReceivedRequest:
    """Parse a request to `/v1/messages`."""
    given = _object(body, "the body")
    if "anthropic-version" not in headers:
        raise WrongRequest("anthropic-version: header is required")
    _check_known(given, _ANTHROPIC_FIELDS)
    if headers["anthropic-version"] >= _WITHOUT_TEMPERATURE and "temperature" in given:
        raise WrongRequest("temperature: Extra inputs are not permitted")
    _number(given, "temperature", 0, 1)
    _tokens(given, "max_tokens")
    tool = _object(_only(given.get("tools"), "tools"), "tools.0")
    name, schema = _text(tool, "name", _NAME), _object(tool.get("input_schema"), "tools.0.input_schema")
    _check_closed(schema, strict=tool.get("strict") is True)
    choice = _object(given.get("tool_choice", {"type": "auto"}), "tool_choice")
    if choice.get("type") not in ("auto", "any", "tool", "none") or choice.get("name", name) != name:
        raise WrongRequest("tool_choice: Input should be a valid choice")
    messages = [_object(each, "messages.0") for each in _list(given.get("messages"), "messages")]
    if not messages or messages[0].get("role") != "user":
        raise WrongRequest("messages: first message must use the user role")
    return ReceivedRequest(
        "anthropic",
        _text(given, "model"),
        _content(given.get("system", "")),
        "\n".join(_content(each.get("content")) for each in messages if each.get("role") == "user"),
        name,
        schema,
        choice["type"] in ("any", "tool"),
        given,
        headers.get("x-api-key", _bearer(headers)),
    )


READERS: Mapping[Api, Callable[[object, Mapping[str, str]], ReceivedRequest]] = {
    "openai": read_openai,
    "anthropic": read_anthropic,
}


def _bearer(headers: Mapping[str, str]) -> str:
    return headers.get("authorization", "").removeprefix("Bearer ")


def _check_known(given: Json, known: frozenset[str]) -> None:
    for name in given:
        if name not in known:
            raise WrongRequest(f"Unrecognized request argument supplied: {name}")
    if given.get("stream"):
        raise WrongRequest("stream: is not offered here")


def _object(value: object, where: str) -> Json:
    if not isinstance(value, dict):
        raise WrongRequest(f"{where}: Input should be an object")
    return cast("Json", value)


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise WrongRequest(f"{where}: Input should be a list")
    return cast("list[object]", value)


def _only(value: object, where: str) -> object:
    found = _list(value, where)
    if len(found) != 1:
        raise WrongRequest(f"{where}: there should be one tool, the model has no other")
    return found[0]


def _text(given: Json, name: str, pattern: re.Pattern[str] | None = None) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value or (pattern is not None and not pattern.fullmatch(value)):
        raise WrongRequest(f"{name}: Input should be a valid string")
    return value


def _number(given: Json, name: str, low: float, high: float) -> None:
    value = given.get(name, low)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise WrongRequest(f"{name}: range: {low}..{high}")


def _tokens(given: Json, name: str) -> None:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WrongRequest(f"{name}: Field required, a number above 0")


def _content(value: object) -> str:
    """The content of a message: a text, or a list of text parts."""
    if isinstance(value, str):
        return value
    parts = [_object(part, "content") for part in _list(value, "content")]
    if any(part.get("type") != "text" for part in parts):
        raise WrongRequest("content: only text is offered here")
    return "\n".join(_text(part, "text") for part in parts)


def _check_closed(schema: Json, *, strict: bool) -> None:
    """Check a schema: an object; in strict mode without optional or additional properties."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise WrongRequest("Invalid schema for function: schema must be a JSON Schema of 'type: \"object\"'")
    properties = cast("Json", schema["properties"])
    if strict and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties)
    ):
        raise WrongRequest(
            "Invalid schema for function: in strict mode every property is required, and no other allowed"
        )
    for each in properties.values():
        if isinstance(each, dict) and cast("Json", each).get("type") == "object":
            _check_closed(cast("Json", each), strict=strict)
