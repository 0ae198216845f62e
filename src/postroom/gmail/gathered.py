"""Calls that are asked for while one is under way go together in the next request.

A single call goes at once and alone. Beside many, one request carries up to 25, each with its own verdict: the units
are the same as those of single calls, the round trips are not. (Gmail's `batchModify` costs as much as ten changes of
labels and tells nothing of each message; to read them again costs 20 units each, four times the change itself.)
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from postroom.gmail.calls import Call
from postroom.gmail.client import PARTS, GmailClient
from postroom.gmail.errors import GmailError

T = TypeVar("T")


class _Asked(NamedTuple):
    call: Call[Any]
    about: str
    outcome: "asyncio.Future[Any]"


class Gathered:
    """The calls of many tasks to one mailbox. Two about the same message never share a request: parts have no order."""

    def __init__(self, client: GmailClient) -> None:
        self._client = client
        self._waiting: list[_Asked] = []
        self._sending: asyncio.Task[None] | None = None

    async def run(self, call: Call[T], about: str) -> T:
        """The result of the call, which is about this message; its error is raised."""
        asked = _Asked(call, about, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        return await asked.outcome

    async def _send(self) -> None:
        """Until nobody waits."""
        try:
            while self._waiting:
                await self._ask(self._next())
        finally:
            self._sending = None

    def _next(self) -> list[_Asked]:
        group: dict[str, _Asked] = {}
        left: list[_Asked] = []
        for asked in self._waiting:
            if asked.outcome.done():
                continue  # whoever asked was canceled before it was sent
            if asked.about in group or len(group) == PARTS:
                left.append(asked)
            else:
                group[asked.about] = asked
        self._waiting = left
        return list(group.values())

    async def _ask(self, group: Sequence[_Asked]) -> None:
        try:
            outcomes = await self._outcomes([asked.call for asked in group])
        except BaseException as error:
            outcomes = [error] * len(group)
            if not isinstance(error, Exception):
                _tell(group, outcomes)
                raise
        _tell(group, outcomes)

    async def _outcomes(self, calls: Sequence[Call[Any]]) -> list[Any]:
        if not calls:
            return []
        return [await self._client.run(calls[0])] if len(calls) == 1 else await self._client.batch(calls)


def _tell(group: Sequence[_Asked], outcomes: Sequence[Any]) -> None:
    for asked, outcome in zip(group, outcomes, strict=True):
        if asked.outcome.done():
            continue
        match outcome:
            case GmailError() | Exception():
                asked.outcome.set_exception(outcome)
            case BaseException():
                asked.outcome.cancel()
            case _:
                asked.outcome.set_result(outcome)
