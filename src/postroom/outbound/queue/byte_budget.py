"""Bounds how many bytes of content are under way at the same time, so that no tenant takes the room of all others."""

import contextlib
from asyncio import Future, get_running_loop
from collections import Counter
from collections.abc import AsyncGenerator
from typing import NamedTuple


class _Waiting(NamedTuple):
    tenant: str
    size: int
    turn: "Future[None]"


class ByteBudget:
    """Lets content go on while what is under way fits into `most` bytes; content larger than that goes by itself.

    A tenant gets no second content that would bring it above half of what the others leave: there is room for the next
    tenant. Otherwise whoever waits longest is next, however large, so that small contents cannot hold back a large one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = Counter[str]()
        self._waiting: list[_Waiting] = []

    @contextlib.asynccontextmanager
    async def holding(self, tenant: str, size: int) -> AsyncGenerator[None]:
        """Wait until there is room for so many bytes, and keep it during the block."""
        await self._take(_Waiting(tenant, size, get_running_loop().create_future()))
        try:
            yield
        finally:
            self._give_back(tenant, size)

    async def _take(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        self._admit()
        try:
            await waiting.turn
        except BaseException:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self._admit()
            else:
                self._give_back(waiting.tenant, waiting.size)
            raise

    def _give_back(self, tenant: str, size: int) -> None:
        self._used[tenant] -= size
        if not self._used[tenant]:
            del self._used[tenant]
        self._admit()

    def _admit(self) -> None:
        for waiting in list(self._waiting):
            used, own = self._used.total(), self._used[waiting.tenant]
            if used and used + waiting.size > self._most:
                return
            if own and 2 * (own + waiting.size) > self._most - (used - own):
                continue
            self._waiting.remove(waiting)
            self._used[waiting.tenant] += waiting.size
            if not waiting.turn.done():
                waiting.turn.set_result(None)
