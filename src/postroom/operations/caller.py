"""Who asks for an operation, and the parts that every operation needs: made once for a request, by its interface."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import Refused
from postroom.core.roles import Principal
from postroom.core.visitors import Visitor
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature, record_audit
from postroom.system.wall_clock import Clock, wall_clock

T = TypeVar("T")
Ends = tuple[Callable[[], Awaitable[object]], ...]


class AuditThrottle:
    """Recent refusals or reads, by caller and object, so that repeating them cannot fill the audit log."""

    def __init__(self, quiet: timedelta = timedelta(minutes=1), most: int = 10_000) -> None:
        self._quiet = quiet
        self._most = most
        self._last: dict[tuple[str, ...], tuple[datetime, int]] = {}

    def since_last(self, what: tuple[str, ...], now: datetime) -> int | None:
        """How many were skipped since the last audited one; None if this one is to be skipped too."""
        written_at, skipped = self._last.get(what, (None, 0))
        if written_at is not None and now - written_at < self._quiet:
            self._last[what] = written_at, skipped + 1
            return None
        if len(self._last) >= self._most:
            self._last.clear()
        self._last[what] = now, 0
        return skipped


@dataclass(frozen=True, slots=True)
class Caller:
    """The person or program that asks for an operation.

    Its signature goes into the audit log, so no change can go unsigned.

    `who` is the person in front of a page or the holder of a token; None for the person at the command line.
    `audited_reads` are the reads of programs that were audited lately. `ends` are awaitables that end when nobody waits
    for the answer any more.
    """

    database: Database
    signature: Signature
    clock: Clock = wall_clock
    who: Visitor | Principal | None = None
    audited_reads: AuditThrottle | None = None
    ends: Ends = ()

    @property
    def program(self) -> Principal:
        """The holder of a token who asks. Raises Refused if it is a person."""
        if not isinstance(self.who, Principal):
            raise Refused("this is for programs with a token of their own")
        return self.who

    @property
    def account_id(self) -> UUID | None:
        """The only account whose mail the caller may see; None for all."""
        return self.who.account_id if isinstance(self.who, Principal) else None

    async def run(self, transaction: Transaction[T]) -> T:
        return await self.database.run(transaction)

    def again(self) -> "Caller":
        """The same caller, for one more change: each has an entry of its own in the audit log."""
        return replace(self, signature=self.signature._replace(entry_id=new_id()))

    def because(self, reason: str) -> "Caller":
        """The same caller, who gives this reason."""
        return replace(self, signature=self.signature._replace(reason=reason))

    async def audit(self, action: AuditedAction, object_type: str, object_id: str, **after: object) -> None:
        """Write an entry of its own in the audit log, beside those of changes."""
        entry = self.again().signature.under(action, object_type, object_id, after=after or None)
        await self.run(record_audit(entry, self.clock()))

    @contextlib.asynccontextmanager
    async def left(self, wait: timedelta) -> AsyncGenerator[asyncio.Event]:
        """An event that is set when nobody waits for the answer to this long poll any more."""
        left = asyncio.Event()
        leaving = [asyncio.create_task(_set_when(end, left)) for end in self.ends] if wait else []
        try:
            yield left
        finally:
            for task in leaving:
                task.cancel()

    async def audit_read(self, action: AuditedAction, object_type: str, object_id: str, **after: object) -> None:
        """Audit that a program read mail, without the text it read. The reads of people are not audited.

        Repeated reads are written once a minute, with their number.
        """
        if not isinstance(self.who, Principal) or self.audited_reads is None:
            return
        what = (self.signature.actor, action, object_id, str(after.get("level", "")))
        repeated = self.audited_reads.since_last(what, self.clock())
        if repeated is not None:
            await self.audit(action, object_type, object_id, **({**after, "repeated": repeated} if repeated else after))


async def _set_when(end: Callable[[], Awaitable[object]], left: asyncio.Event) -> None:
    await end()
    left.set()
