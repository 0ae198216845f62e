"""Mailboxes in the form that handlers and senders need."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

A = TypeVar("A")
T = TypeVar("T")


def given(make: Callable[[A], T]) -> Callable[[A], Awaitable[T]]:
    """What is made of each permit, or of each account."""

    async def made(asked: A) -> T:
        return make(asked)

    return made


def always(what: T) -> Callable[[Any], Awaitable[T]]:
    """The same for everybody."""
    return given(lambda _asked: what)
