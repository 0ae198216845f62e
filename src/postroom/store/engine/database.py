"""Transactions, and what a database must do with one.

A store verb is one transaction, written once as a generator: it yields statements and is sent their rows. It holds no
connection and awaits nothing, so the same text is driven by the SQLite runner inside its writer thread, by the
PostgreSQL runner with `await`, and by a test runner that fails the N-th statement, for every N.

    @transaction
    def rename(old: str, new: str) -> Script[bool]:
        rows = yield sql("select_name", old)
        if not rows:
            return False
        yield sql("update_name", old, new)
        return True

    renamed = await database.run(rename("a", "b"))

A verb may call another inside its own transaction with `yield from other.script(...)`. A runner may run a verb more
than once (after a deadlock, or when the server went away before the commit): verbs have no effect but their statements,
and ids and times come in as arguments.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

Dialect = Literal["sqlite", "postgres"]
TransactionKind = Literal["read", "write", "schema"]


class Statement(NamedTuple):
    """One named statement with its parameters, in the order its header declares them.

    With `many`, the parameters are lists of rows, and the header declares their columns. SQLite executes the statement
    for each row, and where the block has several statements, each of them for the rows of its own list. PostgreSQL
    executes it once, over the rows of all lists, with each column as the text of an array (`:id::text::bigint[]`).
    """

    name: str
    parameters: tuple[Any, ...]
    many: bool = False


class Notify(NamedTuple):
    """Wakes the listeners on the channel, in any process, once the transaction has committed."""

    channel: str
    message: str


class Single(NamedTuple):
    """A whole transaction in one statement, whose rows are not needed, and the listeners to wake. Nothing may follow
    it.

    PostgreSQL then commits with the statement itself, in one round trip instead of three.
    """

    statement: Statement
    notice: Notify


class Text(NamedTuple):
    """Raw SQL without parameters, for migrations only."""

    text: str


class Rows(list[Sequence[Any]]):
    """The rows of a statement with values in column order, and the column names; no names without rows."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()

    def by_name(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary of its columns."""
        return (dict(zip(self.columns, row, strict=True)) for row in self)


Step = Statement | Single | Notify | Text
Script = Generator[Step, Rows, T]


class Transaction(NamedTuple, Generic[T]):
    """A verb with its arguments, ready to be run as often as needed."""

    name: str
    begin: Callable[[], Script[T]]
    kind: TransactionKind
    limit_s: float | None = None
    """How long a read may take before it is ended with TookTooLong."""
    patience_s: float | None = None
    """How long to wait for a database that is away, if not as long as usual. While it is in doubt whether it was
    committed, the usual time counts: whoever is told too early that nothing was written would do it again."""


class ScriptRun(Generic[T]):
    """A running script: the step it waits for, or, when that is None, its result."""

    def __init__(self, script: Script[T]) -> None:
        self._script = script
        self.step: Step | None = None
        self.result: T | None = None
        self._advance(None)

    def send(self, rows: Rows) -> None:
        """Send the script the rows of its step."""
        self._advance(rows)

    def close(self) -> None:
        self._script.close()

    def _advance(self, rows: Rows | None) -> None:
        try:
            self.step = self._script.send(rows)  # type: ignore[arg-type] - None is what starts a generator
        except StopIteration as end:
            self.step, self.result = None, end.value


class Verb(Generic[P, T]):
    """A transaction function: calling it makes a Transaction, `script` runs it inside another one."""

    def __init__(self, function: Callable[P, Script[T]], kind: TransactionKind, limit_s: float | None = None) -> None:
        self.script = function
        self.name = function.__name__
        self.kind: TransactionKind = kind
        self.limit_s = limit_s
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Transaction[T]:
        return Transaction(self.name, lambda: self.script(*args, **kwargs), self.kind, self.limit_s)


def transaction(function: Callable[P, Script[T]]) -> Verb[P, T]:
    """Declare a generator function as a store verb that writes."""
    return Verb(function, "write")


def query(function: Callable[P, Script[T]]) -> Verb[P, T]:
    """Declare a generator function as a store verb that only reads, from one snapshot."""
    return Verb(function, "read")


def bounded_query(limit_s: float) -> Callable[[Callable[P, Script[T]]], Verb[P, T]]:
    """Declare a read-only verb whose cost depends on the caller: it is ended after `limit_s`."""
    return lambda function: Verb(function, "read", limit_s)


def schema_change(function: Callable[P, Script[T]]) -> Verb[P, T]:
    """Declare a verb that changes the schema. It must itself detect whether it has already run."""
    return Verb(function, "schema")


def sql(name: str, *parameters: Any) -> Statement:
    return Statement(name, parameters)


def sql_many(name: str, *rows: Sequence[Sequence[Any]]) -> Statement:
    return Statement(name, rows, many=True)


class Subscription(Protocol):
    """A subscription, until closed."""

    def close(self) -> None: ...


class Database(Protocol):
    """A store that runs transactions: all or nothing, durable before `run` returns."""

    @property
    def dialect(self) -> Dialect: ...

    async def run(self, transaction: Transaction[T]) -> T:
        """Run it exactly once. Raises what the script raised, or a StoreError: then nothing was written, except after a
        DatabaseUnavailable raised while the outcome was still unknown.
        """
        ...

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        """Call back on the event loop for each Notify on the channel. This is a hint: notices may be lost or merged."""
        ...

    async def close(self) -> None: ...
