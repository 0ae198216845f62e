"""Batches concurrent calls: calls made while one is in flight go together in the next request.

A single call is sent at once and alone. Under load, one request carries up to 25 calls, each with its own outcome: this
costs the same units as single calls, but fewer round trips. (Gmail's `batchModify` costs as much as ten label changes
and reports nothing about each message; reading one again costs 20 units, four times the change itself.)
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from contextvars import Context
from typing import Any, NamedTuple, TypeVar

from postroom.mailboxes.gmail.calls import Call
from postroom.mailboxes.gmail.client import PARTS, GmailClient
from postroom.mailboxes.gmail.errors import Withheld

T = TypeVar("T")


class _PendingCall(NamedTuple):
    call: Call[Any]
    about: str
    outcome: "asyncio.Future[Any]"


class BatchedCalls:
    """The calls of many tasks to one mailbox. Two calls on the same message never share a request: parts have
    no order.
    """

    def __init__(self, client: GmailClient) -> None:
        self._client = client
        self._waiting: list[_PendingCall] = []
        self._sending: asyncio.Task[None] | None = None

    async def run(self, call: Call[T], about: str) -> T:
        """The result of the call, which concerns this message; its error is raised."""
        asked = _PendingCall(call, about, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._sending is None:
            # In a context of its own: it continues for others when the first caller has ended.
            self._sending = asyncio.create_task(self._send(), context=Context())
        return await asked.outcome

    async def _send(self) -> None:
        """Send until nothing waits."""
        try:
            while self._waiting:
                await self._ask(self._next())
        finally:
            self._sending = None

    def _next(self) -> list[_PendingCall]:
        group: dict[str, _PendingCall] = {}
        left: list[_PendingCall] = []
        for asked in self._waiting:
            if asked.outcome.done():
                continue  # the caller was canceled before the call was sent
            if asked.about in group or len(group) == PARTS:
                left.append(asked)
            else:
                group[asked.about] = asked
        self._waiting = left
        return list(group.values())

    async def _ask(self, group: Sequence[_PendingCall]) -> None:
        try:
            if len(group) == 1:
                await self._ask_alone(group[0])
                return
            async with aclosing(self._batches(group)) as answers:
                async for outcomes in answers:
                    for place, outcome in outcomes.items():
                        _resolve(group[place], outcome)
        except Exception as error:
            for asked in group:
                _resolve(asked, error)
        finally:
            # Calls never sent because nobody waited for them, and all calls when we are stopped.
            for asked in group:
                asked.outcome.cancel()

    async def _ask_alone(self, asked: _PendingCall) -> None:
        """Run it as if the caller had made the call: if the caller is canceled, so is the call."""
        running = asyncio.ensure_future(self._client.run(asked.call))
        asked.outcome.add_done_callback(lambda _outcome: running.cancel())
        try:
            _resolve(asked, await running)
        except asyncio.CancelledError:
            if not asked.outcome.cancelled():
                raise

    def _batches(self, group: Sequence[_PendingCall]) -> AsyncGenerator[Mapping[int, Any]]:
        """Send the group. A call that nobody waits for any more is not sent: the user may have stopped it meanwhile."""
        return self._client.batches([asked.call for asked in group], lambda place: not group[place].outcome.done())


def _resolve(asked: _PendingCall, outcome: Any) -> None:
    if asked.outcome.done():
        return
    if isinstance(outcome, Withheld):
        asked.outcome.set_exception(outcome.why)
    elif isinstance(outcome, Exception):
        asked.outcome.set_exception(outcome)
    else:
        asked.outcome.set_result(outcome)
