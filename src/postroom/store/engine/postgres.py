"""The PostgreSQL runner: transactions over asyncpg, with a definite outcome even when the server goes away.

**A write whose outcome is unknown.** The connection may die after COMMIT was sent and before its answer arrived. Every
writing transaction therefore begins by inserting a receipt, a row with a token of its own (it travels in the same
message as BEGIN and costs no round trip). To find the outcome we insert the same token ourselves, marked void. While
the old transaction is still open on the server, our insert waits for it. If it committed, our insert meets its receipt,
and we return the result we already have. If it did not, our insert takes the token, so that it never can commit, and
the transaction is run again. The mark distinguishes our own insert from the other, in case its outcome is unknown too.
(`pg_xact_status` is not enough: after a crash of the server a transaction id may be reused.)

**Round trips.** `BEGIN; INSERT receipt`, the statements, `NOTIFY; COMMIT`: two messages more than the statements.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable
from functools import cache
from itertools import chain
from random import Random
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg

from postroom.core import errors
from postroom.store.engine.clock import ServerClock
from postroom.store.engine.codecs import array_text
from postroom.store.engine.database import Dialect, Notify, Rows, ScriptRun, Single, Statement, Step, Text, Transaction
from postroom.store.engine.listeners import Listener, Listeners
from postroom.store.engine.statements import blocks
from postroom.system.restore_lock import RESTORE_LOCK

T = TypeVar("T")

MOST_CONNECTIONS = 10
PATIENCE_S = 30.0
CHANNEL = "postroom"
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
MOST_DEADLOCKS = 20
LAST_RECEIPTS = 16
COMMAND_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 10.0
MIGRATION_TIMEOUT_S = 30 * 24 * 3600.0  # practically none: an attempt that gives up would start again at every start
_SESSION = {
    "application_name": "postroom",
    "search_path": "postroom,switchboard",
    "timezone": "UTC",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",  # a plan made while a table is small is kept, and must be right when it has grown
    "idle_in_transaction_session_timeout": "10s",  # a frozen process must not keep its locks, and so block the rescuer
}
# A process that is frozen in the middle of a transaction must not hold its locks forever. (PostgreSQL 17 and later;
# before that, only while it is idle between two statements.)
_BOUND_TRANSACTIONS = """
    SELECT set_config('transaction_timeout', '30s', false)
    WHERE current_setting('server_version_num')::integer >= 170000"""
# Each session itself makes commits wait for the disk, so that a later change at the server (for the role, the database,
# or everything) has no effect. A stricter setting than `on` is kept.
_WAIT_FOR_DISK = """
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, false)"""
# Every connection shares the lock that a restore holds exclusively: nothing is written to a database about to be
# replaced.
_SHARE = f"SELECT pg_try_advisory_lock_shared({RESTORE_LOCK})"
_UNBOUND_TRANSACTION = """
    SET LOCAL statement_timeout = 0;
    SELECT set_config('transaction_timeout', '0', true)
    WHERE current_setting('server_version_num')::integer >= 170000"""
_GONE = (
    OSError,
    EOFError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,  # the server's last message came between two statements
)
# The transaction was idle or open for too long: the server closed the connection, and nothing was committed.
_TIMED_OUT = frozenset({"25P03", "25P04"})
_COLLIDED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class _InDoubtError(Exception):
    """COMMIT was sent, but its answer never arrived."""

    def __init__(self, token: UUID, result: object) -> None:
        super().__init__()
        self.token = token
        self.result = result


class PostgresDatabase:
    """One PostgreSQL database, through a handful of connections."""

    dialect: Dialect = "postgres"

    def __init__(
        self,
        url: str,
        patience_s: float = PATIENCE_S,
        *,
        allow_unsafe: bool = False,
        restoring: bool = False,
    ) -> None:
        """With `restoring`, the caller holds the lock of a restore."""
        self._url = url
        self._restoring = restoring
        self._opening = _BOUND_TRANSACTIONS if allow_unsafe else f"{_BOUND_TRANSACTIONS}; {_WAIT_FOR_DISK}"
        self._patience_s = patience_s
        self._blocks = blocks("postgres")
        self._idle: list[asyncpg.Connection] = []
        self._places = asyncio.Semaphore(MOST_CONNECTIONS)
        self._listeners = Listeners()
        self._listening: asyncio.Task[None] | None = None
        self._rng = Random()  # noqa: S311 - jitter, not a secret
        self._closed = False
        self._acknowledged: deque[UUID] = deque(maxlen=LAST_RECEIPTS)
        self._acknowledged_before: deque[UUID] = deque(maxlen=4 * LAST_RECEIPTS)
        self.clock = ServerClock()

    @property
    def acknowledged(self) -> tuple[UUID, ...]:
        """The receipts of the latest transactions that were acknowledged to this process, now and before connections
        were lost: another server that answers since then must have them (see `timeline`).
        """
        return (*self._acknowledged_before, *self._acknowledged)

    def settle_acknowledged(self) -> None:
        """Forget the receipts from before connections were lost: the server that answers now was compared with them."""
        self._acknowledged_before.clear()

    async def run(self, transaction: Transaction[T]) -> T:
        """Run it exactly once, even if the server goes away repeatedly within the time limit."""
        started = asyncio.get_running_loop().time()
        patience_s = self._patience_s if transaction.patience_s is None else transaction.patience_s
        deadline = started + patience_s
        collisions, tries = 0, 0
        while True:
            try:
                async with self._connection(patience_s) as connection:
                    match transaction.kind:
                        case "read":
                            return await self._read(connection, transaction)
                        case "write":
                            result, token = await self._write(connection, transaction)
                            self._acknowledged.append(token)
                            return result
                        case "schema":
                            return await self._change_schema(connection, transaction)
            except (*_COLLIDED, errors.Collided) as error:
                collisions += 1
                if collisions > MOST_DEADLOCKS:
                    raise errors.StoreError(f"{transaction.name} collided {collisions} times: {error}") from error
            except _InDoubtError as doubt:
                self._drop_idle()
                if await self._settle(doubt.token, started + max(patience_s, self._patience_s)):
                    self._acknowledged.append(doubt.token)
                    return doubt.result  # type: ignore[return-value]
            except _GONE as error:
                tries += 1
                await self._pause(tries, deadline, error)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in _TIMED_OUT:
                    raise _translate(error) from error
                tries += 1
                await self._pause(tries, deadline, error)
            except asyncpg.InterfaceError as error:
                raise errors.StoreError(f"asyncpg: {type(error).__name__}: {error}") from error

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Listener:
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen_forever(), name="postroom-listen")
        return self._listeners.add(channel, callback)

    async def close(self) -> None:
        self._closed = True
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        idle, self._idle = self._idle, []
        for connection in idle:
            await _hang_up(connection)
        await asyncio.sleep(0)  # dropped connections close in the next iteration of the loop

    async def _read(self, connection: asyncpg.Connection, transaction: Transaction[T]) -> T:
        await connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{_time_limit(transaction.limit_s)}")
        run = ScriptRun(transaction.begin())
        await self._drive(connection, run)
        await connection.execute("COMMIT")
        return run.result  # type: ignore[return-value]

    async def _write(self, connection: asyncpg.Connection, transaction: Transaction[T]) -> tuple[T, UUID]:
        """Run and commit it; return the result and the token of its receipt."""
        token = uuid4()
        run = ScriptRun(transaction.begin())
        if isinstance(run.step, Single):
            return await self._write_at_once(connection, run, run.step, token), token
        await connection.execute(
            f"BEGIN; INSERT INTO postroom.receipts (token, written_at) VALUES ('{token}', now())"  # noqa: S608
        )
        notices = await self._drive(connection, run)
        wake = "".join(f"SELECT pg_notify('{CHANNEL}', '{_plain(each)}'); " for each in notices)
        try:
            await connection.execute(f"{wake}COMMIT")
        except (*_GONE, asyncpg.InterfaceError) as error:
            raise _InDoubtError(token, run.result) from error
        return run.result, token  # type: ignore[return-value]

    async def _write_at_once(self, connection: asyncpg.Connection, run: ScriptRun[T], step: Single, token: UUID) -> T:
        """Run one statement as its own transaction; receipt and notice travel inside it."""
        (part,) = self._blocks[step.statement.name]
        arguments = part.arguments(step.statement.parameters)
        text = _with_receipt(part.text, len(arguments))
        run.send(Rows())
        if run.step is not None:
            raise AssertionError(f"nothing may follow {step.statement.name}, which runs alone")
        try:
            await connection.fetch(text, *arguments, token, _plain(step.notice))
        except (*_GONE, asyncpg.InterfaceError) as error:
            raise _InDoubtError(token, run.result) from error
        return run.result  # type: ignore[return-value]

    async def _change_schema(self, connection: asyncpg.Connection, transaction: Transaction[T]) -> T:
        """Run without a receipt, whose table may not exist yet: a schema change itself detects whether it was made."""
        await connection.execute(f"BEGIN; {_UNBOUND_TRANSACTION}")
        run = ScriptRun(transaction.begin())
        await self._drive(connection, run)
        await connection.execute("COMMIT")
        return run.result  # type: ignore[return-value]

    async def _drive(self, connection: asyncpg.Connection, run: ScriptRun[Any]) -> set[Notify]:
        """Run a script to its end; return the notices to send."""
        notices: set[Notify] = set()
        try:
            while run.step is not None:
                if isinstance(run.step, Notify):
                    notices.add(run.step)
                    run.send(Rows())
                else:
                    run.send(await self._execute(connection, run.step))
        finally:
            run.close()
        return notices

    async def _execute(self, connection: asyncpg.Connection, step: Step) -> Rows:
        match step:
            case Statement(name, parameters, many):
                rows = Rows()
                if many:
                    parameters = tuple(map(array_text, zip(*chain(*parameters), strict=True)))
                for part in self._blocks[name] if parameters or not many else ():
                    found = await connection.fetch(part.text, *part.arguments(parameters))
                    rows.columns = tuple(found[0].keys()) if found else rows.columns
                    rows += found
                return rows
            case Text(text):
                await connection.execute(text, timeout=MIGRATION_TIMEOUT_S)
                return Rows()
            case Notify() | Single():
                raise AssertionError(f"{step} cannot be executed alone")

    async def _settle(self, token: UUID, deadline: float) -> bool:
        """Return whether the transaction with this receipt committed; if False, it never can."""
        tries = 0
        while True:
            try:
                async with self._connection() as connection:
                    await connection.fetch(
                        "INSERT INTO postroom.receipts (token, written_at, void) VALUES ($1, now(), true) "
                        "ON CONFLICT DO NOTHING",
                        token,
                    )
                    return not await connection.fetchval("SELECT void FROM postroom.receipts WHERE token = $1", token)
            except (*_GONE, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                tries += 1
                await self._pause(tries, deadline, error)

    @contextlib.asynccontextmanager
    async def _connection(self, patience_s: float | None = None) -> AsyncGenerator[asyncpg.Connection]:
        """Lend a connection of the pool; keep it if its transaction ended well, discard it otherwise."""
        if self._closed:
            raise errors.DatabaseUnavailable("the database is closed; open it again")
        patience_s = self._patience_s if patience_s is None else patience_s
        async with self._place(patience_s):
            connection = self._idle.pop() if self._idle else await self._connect(min(CONNECT_TIMEOUT_S, patience_s))
            try:
                if self.clock.is_due:
                    await self._ask_the_time(connection)
                yield connection
            except asyncpg.InterfaceError as error:
                lost = connection.is_closed()
                connection.terminate()
                if lost:
                    raise ConnectionResetError(str(error)) from error
                raise
            except BaseException as error:
                await self._give_back(connection, error)
                raise
            if self._closed:
                await _hang_up(connection)
            else:
                self._idle.append(connection)

    async def _ask_the_time(self, connection: asyncpg.Connection) -> None:
        asked_at = self.clock.asking()
        self.clock.learn(await connection.fetchval("SELECT clock_timestamp()"), asked_at)

    @contextlib.asynccontextmanager
    async def _place(self, patience_s: float) -> AsyncGenerator[None]:
        """Wait for a free connection slot, for a limited time."""
        async with asyncio.timeout(patience_s):
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()

    async def _give_back(self, connection: asyncpg.Connection, error: BaseException) -> None:
        """Roll back after an error; drop a connection whose state is unknown."""
        if isinstance(error, asyncio.CancelledError | _InDoubtError | OSError):
            connection.terminate()
            return
        try:
            await connection.execute("ROLLBACK")
        except (*_GONE, asyncpg.InterfaceError, asyncpg.PostgresError):
            connection.terminate()
        except BaseException:
            connection.terminate()
            raise
        else:
            self._idle.append(connection)

    async def _connect(self, timeout_s: float = CONNECT_TIMEOUT_S) -> asyncpg.Connection:
        try:
            connection = await asyncpg.connect(
                self._url,
                server_settings=_SESSION,
                statement_cache_size=512,
                timeout=timeout_s,
                command_timeout=COMMAND_TIMEOUT_S,
            )
            try:
                await connection.execute(self._opening)
                if not self._restoring and not await connection.fetchval(_SHARE):
                    raise errors.DatabaseInUse("this database is being restored; start again when that has ended")
            except BaseException:
                connection.terminate()
                raise
            return connection
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
            raise errors.DatabaseUnavailable(
                f"PostgreSQL refused access: {error}; check POSTROOM_DATABASE_URL"
            ) from error

    async def _pause(self, tries: int, deadline: float, error: BaseException) -> None:
        """Wait before the next attempt, or give up when the time is over."""
        self._drop_idle()
        if self._closed or asyncio.get_running_loop().time() >= deadline:
            raise errors.DatabaseUnavailable(
                f"PostgreSQL could not be reached in time ({type(error).__name__}); "
                "check that it is running and that POSTROOM_DATABASE_URL is right"
            ) from error
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tries - 1, 8))
        await asyncio.sleep(pause * self._rng.uniform(0.5, 1.0))

    def _drop_idle(self) -> None:
        self._acknowledged_before.extend(self._acknowledged)
        self._acknowledged.clear()
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.terminate()

    async def _listen_forever(self) -> None:
        """Keep one connection that receives notices. Polling finds what is missed while it is down."""
        tries = 0
        while True:
            connection: asyncpg.Connection | None = None
            try:
                connection = await self._connect()
                gone = asyncio.Event()
                connection.add_termination_listener(lambda _connection, gone=gone: gone.set())
                await connection.add_listener(CHANNEL, self._hear)
                for channel in self._listeners.channels():
                    self._listeners.call(channel, "")
                tries = 0
                await gone.wait()
            except (*_GONE, asyncpg.InterfaceError, asyncpg.PostgresError, errors.StoreError):
                tries += 1
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tries, 8)))

    def _hear(self, _connection: object, _pid: int, _channel: str, notice: object) -> None:
        channel, _, message = str(notice).partition(" ")
        self._listeners.call(channel, message)


def _time_limit(limit_s: float | None) -> str:
    return "" if limit_s is None else f"; SET LOCAL statement_timeout = {max(1, round(limit_s * 1000))}"


async def _hang_up(connection: asyncpg.Connection) -> None:
    try:
        await connection.close(timeout=2)
    except (*_GONE, asyncpg.InterfaceError, asyncpg.PostgresError):
        connection.terminate()


@cache
def _with_receipt(text: str, parameters: int) -> str:
    """Add two parts to the statement: its receipt, and the notice that is sent when it commits."""
    if not text.startswith("WITH "):
        raise ValueError(f"a statement that runs alone must begin with WITH: {text[:60]}")
    receipt = (
        f"INSERT INTO postroom.receipts (token, written_at) SELECT ${parameters + 1}::uuid, now() "  # noqa: S608
        f"FROM (SELECT pg_notify('{CHANNEL}', ${parameters + 2}::text)) AS woken"
    )
    return f"WITH receipt AS ({receipt}), {text.removeprefix('WITH ')}"


def _plain(notice: Notify) -> str:
    """A notice for the commit message. Ours are plain words and numbers; anything else is a bug."""
    if not all(part.replace("_", "").replace("-", "").isalnum() for part in notice):
        raise ValueError(f"{notice} cannot be sent as a notice")
    return f"{notice.channel} {notice.message}"


def _translate(error: asyncpg.PostgresError) -> errors.StoreError:
    match error:
        case asyncpg.DiskFullError():
            return errors.DatabaseFull(f"PostgreSQL says its disk is full ({error}); free some space there")
        case asyncpg.ReadOnlySQLTransactionError():
            return errors.DatabaseReadOnly(
                "PostgreSQL is read-only (a standby?); point POSTROOM_DATABASE_URL at the primary"
            )
        case asyncpg.IntegrityConstraintViolationError():
            return errors.ConstraintBroken(str(error))
        case _ if (error.sqlstate or "")[:2] in ("22", "54"):  # a value or a row that is too large
            return errors.ConstraintBroken(f"PostgreSQL: {type(error).__name__}: {error}")
        case asyncpg.QueryCanceledError():
            return errors.TookTooLong("PostgreSQL took too long; ask for less")
        case asyncpg.UndefinedTableError():
            return errors.SchemaMismatch(f"{error}; run `postroom migrate`")
        case asyncpg.InsufficientPrivilegeError():
            return errors.StoreError(f"PostgreSQL: {error}; grant it to the user in POSTROOM_DATABASE_URL")
        case _:
            return errors.StoreError(f"PostgreSQL: {type(error).__name__}: {error}")
