"""Batches concurrent calls: calls made during a flush go with the next one.

Idle, a call is flushed at once and alone. Under load, one commit answers everyone who has been waiting.

Callers that are answered together come back together: the first of them would be flushed alone, all others would wait
for it, and nothing else be done while they are written. A batcher that gathers waits until half as many as were
answered last are back, but no longer than their flush has taken. So one half is written while the other arrives.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


LONGEST_GATHER_S = 0.02


class Batcher(Generic[Item, Answer]):
    """Turns a function of many items into one that each caller awaits for its own item."""

    def __init__(
        self,
        flush: Callable[[list[Item]], Awaitable[Sequence[Answer]]],
        most: int = 1000,
        weigh: Callable[[Item], int] = lambda _item: 0,
        heaviest: int = 1,
        *,
        gathers: bool = False,
    ) -> None:
        """Batch at most `most` items, with a total weight of at most `heaviest` unless a single item weighs more."""
        self._flush = flush
        self._most = most
        self._weigh = weigh
        self._heaviest = heaviest
        self._gathers = gathers
        self._enough = 0
        """How many must wait before they are flushed."""
        self._gather_until = 0.0
        self._gathered: asyncio.Future[None] | None = None
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._flushing: asyncio.Task[None] | None = None

    def __call__(self, item: Item) -> "asyncio.Future[Answer]":
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_all())
        elif self._gathered is not None and len(self._waiting) >= self._enough:
            _release(self._gathered)
        return answer

    async def _flush_all(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            while self._waiting:
                if len(self._waiting) < self._enough and (left_s := self._gather_until - loop.time()) > 0:
                    await self._gather(left_s)
                count = self._fitting()
                group, self._waiting = self._waiting[:count], self._waiting[count:]
                started = loop.time()
                await self._flush_group(group)
                ended = loop.time()
                self._gather_until = ended + min(ended - started, LONGEST_GATHER_S)
                self._enough = len(group) // 2 if self._gathers else 0
        finally:
            self._flushing = None

    async def _gather(self, most_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._gathered = loop.create_future()
        timer = loop.call_later(most_s, _release, self._gathered)
        try:
            await self._gathered
        finally:
            timer.cancel()
            self._gathered = None

    def _fitting(self) -> int:
        weight = 0
        for count, (item, _) in enumerate(self._waiting[: self._most]):
            weight += self._weigh(item)
            if count and weight > self._heaviest:
                return count
        return self._most

    async def _flush_group(self, group: list[tuple[Item, "asyncio.Future[Answer]"]]) -> None:
        try:
            answers = await self._flush([item for item, _ in group])
            if len(answers) != len(group):
                raise RuntimeError(f"{len(group)} callers were given {len(answers)} answers")
        except Exception as error:
            for _, waiting in group:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(group, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)


def _release(gathered: "asyncio.Future[None]") -> None:
    if not gathered.done():
        gathered.set_result(None)
