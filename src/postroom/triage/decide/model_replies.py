"""Replies of a provider: an answer with its usage, or a failure that may have been charged."""

from dataclasses import dataclass
from typing import Protocol

import orjson

from postroom.core.errors import BadModelAnswer, ModelError
from postroom.core.rules.model_decision import TOOL

LONGEST_ARGUMENTS = 64 * 1024


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it. Its arguments are JSON text, or already parsed."""

    name: str
    arguments: object


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer."""

    calls: tuple[ToolCall, ...]
    cut_off: bool
    input_tokens: int
    output_tokens: int
    model: str

    def arguments(self) -> object:
        """The arguments of the only tool call. Raises BadModelAnswer."""
        if self.cut_off:
            raise BadModelAnswer("the answer is cut off: it is longer than model.max_output_tokens allows")
        match self.calls:
            case ():
                raise BadModelAnswer(f"the answer is not a call of {TOOL}")
            case (call,) if call.name == TOOL:
                return _read(call.arguments)
            case (_,):
                raise BadModelAnswer(f"the answer calls a tool that does not exist; the only one is {TOOL}")
            case _:
                raise BadModelAnswer(f"the answer calls {len(self.calls)} tools; call {TOOL} exactly once")


def _read(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    if len(arguments) > LONGEST_ARGUMENTS:
        raise BadModelAnswer(f"the arguments are longer than {LONGEST_ARGUMENTS:,} characters")
    try:
        return orjson.loads(arguments)
    except (orjson.JSONDecodeError, RecursionError):
        raise BadModelAnswer("the arguments are not JSON") from None


class CallFailed(Exception):
    """A call without an answer. If it is `charged`, the provider may have done its work and bill it."""

    def __init__(self, error: ModelError, *, charged: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.charged = charged


class Client(Protocol):
    """A client for one model of one provider."""

    async def ask(self, system: str, user: str, labels: tuple[str, ...]) -> Reply:
        """Ask the model. Raises CallFailed."""
        ...

    async def close(self) -> None: ...
