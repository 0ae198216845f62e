"""The statements that pages run, and how the database would run each: what tests of their speed look at."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from postroom.store.engine.database import Database, Rows, Script, Single, Statement, Step, Transaction

T = TypeVar("T")


class Recorded:
    """A database that notes each statement it runs, with its parameters."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.statements: dict[str, Statement] = {}

    @property
    def dialect(self) -> Any:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        return await self._database.run(transaction._replace(begin=lambda: self._noted(transaction.begin())))

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Any:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()

    def _noted(self, script: Script[T]) -> Script[T]:
        rows: Rows | None = None
        try:
            while True:
                step: Step = script.send(rows)  # type: ignore[arg-type] - None is what starts a generator
                if isinstance(step, Single):
                    self.statements[step.statement.name] = step.statement
                elif isinstance(step, Statement):
                    self.statements[step.name] = step
                rows = yield step
        except StopIteration as end:
            return end.value
        finally:
            script.close()


@contextmanager
def recording(database: Database) -> Generator[Recorded]:
    yield Recorded(database)
