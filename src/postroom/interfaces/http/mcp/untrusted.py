"""Removes characters from answers that could act on a reader.

Answers go to agents, which follow instructions, and to terminals, which follow escape sequences. So text by strangers
and models is under `untrusted` (`core/views.py`) and nowhere else, and answers contain no control characters, escape
sequences, or characters that hide or reorder text. Only connectors get text unchanged, since they need the exact bytes.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from postroom.core.harmless import harmless

Answer = TypeVar("Answer")


def cleaned(value: Answer) -> Answer:
    """The value with every text in it made harmless, including the keys of objects."""
    return cast("Answer", _cleaned(value))


def _cleaned(value: object) -> object:
    match value:
        case str():
            return harmless(value)
        case dict():
            members = cast("dict[Any, object]", value)
            return {_cleaned(name): _cleaned(each) for name, each in members.items()}
        case list() | tuple():
            return [_cleaned(each) for each in cast("Sequence[object]", value)]
        case _:
            return value
