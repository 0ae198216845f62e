"""One of several choices, as people write it."""

from collections.abc import Iterable
from typing import TypeVar

from postroom.core.errors import BadInput

T = TypeVar("T", bound=str)


def choice(option: str, text: str, choices: Iterable[T]) -> T:
    """Return the choice that an option such as `--state`, or a field, names."""
    known = {str(each): each for each in choices}
    if text not in known:
        raise BadInput(option, f"there is no {option.lstrip('-')} {text!r}", f"use one of {', '.join(known)}")
    return known[text]
