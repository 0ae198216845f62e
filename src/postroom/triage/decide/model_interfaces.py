"""The interfaces of providers: OpenAI's chat completions, which many servers speak, and Anthropic's messages.

A request forces the model to call the one tool. Models differ in a few parameters: one needs what another refuses with
an error that names it. So each of these parameters has alternatives, and the client goes on to the next one when the
present one is refused (`refused_parameter`). The name of the model only says where to begin.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from postroom.core.mail.message import storable
from postroom.core.rules.model_decision import TOOL, TOOL_DESCRIPTION
from postroom.triage.decide.model_replies import Reply, ToolCall

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

Json = dict[str, Any]
Choice = dict[str, int]
"""The alternative chosen for each parameter, by its name."""

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
# Newer versions take no temperature at all.
ANTHROPIC_VERSION = "2023-06-01"
# No answer has more tokens: a larger count is not believed.
MOST_TOKENS = 10**9
LONGEST_NAME = 200
# An error that says this is about the value of a parameter, so another parameter would not help.
ABOUT_THE_VALUE = re.compile(r"too (?:large|long|many)|at most|maximum|exceed|reached")


class NotInForm(Exception):
    """An answer that does not have the form of its interface."""


class Parameter(NamedTuple):
    """A parameter that models differ in: how errors name it, and the fields of the request, in the order of trying."""

    named: str
    alternatives: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The prompt of one call, and the schema of the tool that the model is to call."""

    system: str
    user: str
    schema: Json


class Interface(ABC):
    """One provider's interface, as the configured model needs it."""

    def __init__(self, settings: "ModelSettings", url: str, headers: Json, parameters: Mapping[str, Parameter]) -> None:
        self.url = url
        self.headers = headers
        self.parameters = parameters
        self._name = settings.name or ""

    @abstractmethod
    def first_choice(self) -> Choice:
        """The alternatives to begin with, by the name of the model."""

    @abstractmethod
    def body(self, question: Question, choice: Choice) -> Json:
        """The request."""

    @abstractmethod
    def read(self, answer: object) -> Reply:
        """The reply in the provider's answer. Raises NotInForm."""

    def refused_parameter(self, said: str, choice: Choice) -> str | None:
        """The parameter that an error names first, of those that have another alternative left."""
        if ABOUT_THE_VALUE.search(said):
            return None
        left = {name: each for name, each in self.parameters.items() if choice[name] + 1 < len(each.alternatives)}
        found = {name: re.search(each.named, said) for name, each in left.items()}
        places = {name: match.start() for name, match in found.items() if match is not None}
        return min(places, key=places.__getitem__, default=None)

    def _fields(self, choice: Choice, *names: str) -> Json:
        return {key: value for name in names for key, value in self._chosen(choice, name).items()}

    def _chosen(self, choice: Choice, name: str) -> Json:
        return self.parameters[name].alternatives[choice[name]]

    def _model(self, answer: Json) -> str:
        """The name of the model that answered, which may be more exact than the one in the settings."""
        name = answer.get("model")
        return storable(name)[:LONGEST_NAME] if isinstance(name, str) and name else self._name


class ChatCompletions(Interface):
    """OpenAI's, also as a server of one's own speaks it."""

    # They think, and take no temperature.
    THINKING = re.compile(r"(?:^|/)(?:o\d|gpt-(?!5-chat)[5-9])")

    def __init__(self, settings: "ModelSettings") -> None:
        key = settings.api_key
        limits = ({"max_completion_tokens": settings.max_output_tokens}, {"max_tokens": settings.max_output_tokens})
        self._thinks = self.THINKING.search(settings.name or "") is not None
        # Servers of one's own know the older name of the limit; OpenAI's thinking models, even behind a proxy, do not.
        newer_first = settings.base_url is None or self._thinks
        super().__init__(
            settings,
            f"{settings.base_url or OPENAI}/chat/completions",
            {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"},
            {
                "limit": Parameter(r"max_(?:completion_)?tokens", limits if newer_first else limits[::-1]),
                "temperature": Parameter("temperature", ({"temperature": settings.temperature}, {})),
                "tool_choice": Parameter("tool.choice", ({"tool_choice": "required"}, {"tool_choice": "auto"}, {})),
                "parallel": Parameter("parallel_tool_calls", ({"parallel_tool_calls": False}, {})),
                "strict": Parameter(r"\bstrict\b", ({"strict": True}, {})),
            },
        )

    def first_choice(self) -> Choice:
        return dict.fromkeys(self.parameters, 0) | {"temperature": int(self._thinks)}

    def body(self, question: Question, choice: Choice) -> Json:
        tool = {"name": TOOL, "description": TOOL_DESCRIPTION, "parameters": question.schema}
        return {
            "model": self._name,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.user},
            ],
            "tools": [{"type": "function", "function": tool | self._chosen(choice, "strict")}],
            "stream": False,
            **self._fields(choice, "limit", "temperature", "tool_choice", "parallel"),
        }

    def read(self, answer: object) -> Reply:
        completion = _object(answer)
        first = _object(next(iter(_list(completion.get("choices"))), None))
        calls = _list(_object(first.get("message")).get("tool_calls") or [])
        functions = [_object(_object(call).get("function")) for call in calls]
        sent, answered, total = _tokens(completion, "prompt_tokens", "completion_tokens", "total_tokens")
        return Reply(
            tuple(ToolCall(_text(each.get("name")), each.get("arguments")) for each in functions),
            first.get("finish_reason") == "length",
            sent,
            # Some servers count the thinking only in the total.
            max(answered, total - sent),
            self._model(completion),
        )


class Messages(Interface):
    """Anthropic's."""

    # Which models take no temperature, think unless told otherwise, think always, and cannot be forced to call a tool.
    NO_TEMPERATURE = re.compile(r"claude-(?:fable|mythos|opus-4-[78]|[a-z]+-(?:[5-9]|\d\d))")
    THINKING = re.compile(r"claude-(?:fable|mythos|[a-z]+-(?:[5-9]|\d\d))")
    ALWAYS_THINKING = re.compile(r"claude-(?:fable|mythos|opus-5-5)")
    THINKING_BETWEEN = re.compile(r"claude-sonnet-5-5")

    def __init__(self, settings: "ModelSettings") -> None:
        key = settings.api_key
        single = {"disable_parallel_tool_use": True}
        self._limit = {"max_tokens": settings.max_output_tokens}
        super().__init__(
            settings,
            f"{settings.base_url or ANTHROPIC}/v1/messages",
            {"anthropic-version": ANTHROPIC_VERSION} | ({} if key is None else {"x-api-key": key.get_secret_value()}),
            {
                "temperature": Parameter("temperature", ({"temperature": settings.temperature}, {})),
                # Thinking uses up the tokens of the answer, and a model that thinks cannot be forced to call the tool.
                "thinking": Parameter(
                    r"thinking|effort|output_config",
                    (
                        {},
                        {"thinking": {"type": "disabled"}},
                        {"thinking": {"type": "between_tools"}},
                        {"output_config": {"effort": "low"}},
                        {},
                    ),
                ),
                "tool_choice": Parameter(
                    r"tool_choice|tool use",
                    ({"tool_choice": {"type": "any", **single}}, {"tool_choice": {"type": "auto", **single}}),
                ),
            },
        )

    def first_choice(self) -> Choice:
        name = self._name
        always, between = self.ALWAYS_THINKING.search(name), self.THINKING_BETWEEN.search(name)
        return {
            "temperature": int(self.NO_TEMPERATURE.search(name) is not None),
            "thinking": 3 if always else 2 if between else int(self.THINKING.search(name) is not None),
            "tool_choice": int(bool(always or between)),
        }

    def body(self, question: Question, choice: Choice) -> Json:
        return {
            "model": self._name,
            "system": question.system,
            "messages": [{"role": "user", "content": [{"type": "text", "text": question.user}]}],
            "tools": [{"name": TOOL, "description": TOOL_DESCRIPTION, "input_schema": question.schema}],
            "stream": False,
            **self._limit,
            **self._fields(choice, "temperature", "thinking", "tool_choice"),
        }

    def read(self, answer: object) -> Reply:
        message = _object(answer)
        blocks = [_object(block) for block in _list(message.get("content"))]
        calls = [each for each in blocks if each.get("type") == "tool_use"]
        # Cached tokens are not among the others.
        *sent, answered = _tokens(
            message, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
        )
        return Reply(
            tuple(ToolCall(_text(each.get("name")), each.get("input")) for each in calls),
            message.get("stop_reason") in ("max_tokens", "model_context_window_exceeded"),
            sum(sent),
            answered,
            self._model(message),
        )


def interface_of(settings: "ModelSettings") -> Interface:
    """The interface in the settings."""
    return Messages(settings) if settings.provider == "anthropic" else ChatCompletions(settings)


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise NotInForm
    return cast("Json", value)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise NotInForm
    return cast("list[object]", value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotInForm
    return value


def _tokens(answer: Json, *names: str) -> list[int]:
    """The counts of tokens; all 0 where one cannot be believed, so that the reservation counts."""
    usage = answer.get("usage")
    given = cast("Json", usage) if isinstance(usage, dict) else {}
    counts = [0 if (count := given.get(name)) is None else count for name in names]
    believable = all(type(each) is int and 0 <= each <= MOST_TOKENS for each in counts)
    return counts if believable else [0] * len(names)
