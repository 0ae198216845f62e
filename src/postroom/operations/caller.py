"""Who asks for an operation, and the parts that every operation needs: made once for a request, by its interface."""

from dataclasses import dataclass, replace
from typing import TypeVar

from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks for a change. Its signature goes into the audit log, so no change can go unsigned."""

    database: Database
    signature: Signature
    clock: Clock = wall_clock

    async def run(self, transaction: Transaction[T]) -> T:
        return await self.database.run(transaction)

    def again(self) -> "Caller":
        """The same caller, for one more change: each has an entry of its own in the audit log."""
        return replace(self, signature=self.signature._replace(entry_id=new_id()))
