"""Reads and writes of mail that leaves by SMTP: calls of one process at the same time share a transaction.

A mail by itself costs the database as much as ten in one transaction. Idle, a call goes at once and alone.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeVar

from postroom.core.actions.permits import DeliveryLease
from postroom.core.errors import DatabaseUnavailable, LeaseLost, PostroomError, StoreError
from postroom.core.lifecycle import DeliveryState
from postroom.outbound.queue.byte_budget import ByteBudget
from postroom.outbound.queue.pace import Pace
from postroom.store.engine.batcher import Batcher
from postroom.store.engine.database import Database
from postroom.store.outbound.outbound_moves import lease_lost
from postroom.store.outbound.outbound_recipients import (
    Attempt,
    Departure,
    Outgoing,
    leave,
    load_outgoing,
    measure_content,
    record_outcomes,
)
from postroom.system.boot_clock import BootClock, since_boot
from postroom.system.wall_clock import Clock

Item = TypeVar("Item")
Answer = TypeVar("Answer")

TOGETHER = 100
LONGEST = 64 * 1024
"""Longer contents are loaded one by one, so that a batch stays small."""
MOST_BYTES = 256 * 1024 * 1024
"""How much of longer contents is under way at the same time, before line ends, dots and signatures are added."""


class DeliveryBatches:
    """The mails that one process delivers at the same time."""

    def __init__(self, database: Database, pace: Pace, clock: Clock, boot: BootClock = since_boot) -> None:
        self._database = database
        self._pace = pace
        self._clock = clock
        self._boot = boot
        self._budget = ByteBudget(MOST_BYTES)
        self._loads = Batcher[DeliveryLease, Outgoing | None | StoreError](self._load_all, TOGETHER)
        self._departures = Batcher[Departure, float | PostroomError](self._leave_all, TOGETHER)
        self._attempts = Batcher[Attempt, DeliveryState | PostroomError](self._record_all, TOGETHER)

    @contextlib.asynccontextmanager
    async def loaded(self, hold: DeliveryLease) -> AsyncGenerator[Outgoing]:
        """The mail, for the time that it is under way: a long one waits until there is room for it.

        Raises LeaseLost if it is not held under this lease, or its content is not kept any more.
        """
        found = _or_raise(await self._loads(hold))
        if found is not None:
            yield found
            return
        measured = await self._database.run(measure_content(hold.id))
        if measured is None:
            raise lease_lost(hold)
        async with self._budget.holding(*measured):
            (found,) = await self._database.run(load_outgoing([hold], self._clock()))
            if found is None:
                raise lease_lost(hold)
            yield found

    async def leave(self, departure: Departure) -> float:
        """Let the content leave, and renew the lease; or raise the reason why it may not. Returns the time since boot
        from which both count."""
        return _or_raise(await self._departures(departure))

    async def record(self, attempt: Attempt) -> DeliveryState:
        """Store what became of the mail. Raises LeaseLost if another sender has taken over."""
        return _or_raise(await self._attempts(attempt))

    async def _load_all(self, holds: list[DeliveryLease]) -> Sequence[Outgoing | StoreError | None]:
        return await _one_by_one_if_need_be(
            holds, lambda some: self._database.run(load_outgoing(some, self._clock(), LONGEST))
        )

    async def _leave_all(self, departures: list[Departure]) -> Sequence[float | PostroomError]:
        async def together(some: list[Departure]) -> Sequence[float | PostroomError]:
            now, started = self._clock(), self._boot()
            errors = await self._database.run(leave(some, now, now + self._pace.lease))
            return [started if error is None else error for error in errors]

        return await _one_by_one_if_need_be(departures, together)

    async def _record_all(self, attempts: list[Attempt]) -> Sequence[DeliveryState | PostroomError]:
        async def together(some: list[Attempt]) -> Sequence[DeliveryState | LeaseLost]:
            return await self._database.run(record_outcomes(some, self._clock()))

        return await _one_by_one_if_need_be(attempts, together)


async def _one_by_one_if_need_be(
    items: list[Item], together: Callable[[list[Item]], Awaitable[Sequence[Answer]]]
) -> Sequence[Answer | StoreError]:
    """Answer all together. If the database refuses that, answer each alone: only the one at fault gets the error."""
    try:
        return await together(items)
    except DatabaseUnavailable:
        raise
    except StoreError as error:
        if len(items) == 1:
            return [error]
    answers: list[Answer | StoreError] = []
    for item in items:
        answers += await _one_by_one_if_need_be([item], together)
    return answers


def _or_raise(answer: Answer | PostroomError) -> Answer:
    if isinstance(answer, PostroomError):
        raise answer
    return answer
