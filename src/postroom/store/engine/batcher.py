"""Batches concurrent calls: calls made during a flush go with the next one.

Idle, a call is flushed at once and alone. Under load, one commit answers everyone who has been waiting.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Turns a function of many items into one that each caller awaits for its own item."""

    def __init__(
        self,
        flush: Callable[[list[Item]], Awaitable[Sequence[Answer]]],
        most: int = 1000,
        weigh: Callable[[Item], int] = lambda _item: 0,
        heaviest: int = 1,
    ) -> None:
        """Batch at most `most` items, with a total weight of at most `heaviest` unless a single item weighs more."""
        self._flush = flush
        self._most = most
        self._weigh = weigh
        self._heaviest = heaviest
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._flushing: asyncio.Task[None] | None = None

    def __call__(self, item: Item) -> "asyncio.Future[Answer]":
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_all())
        return answer

    async def _flush_all(self) -> None:
        try:
            while self._waiting:
                count = self._fitting()
                group, self._waiting = self._waiting[:count], self._waiting[count:]
                await self._flush_group(group)
        finally:
            self._flushing = None

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
