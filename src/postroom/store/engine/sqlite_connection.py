"""A connection to a SQLite file: its setup, running a script on it, and translating its errors."""

import contextlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from postroom.core import errors
from postroom.core.mail.folding import folded
from postroom.store.engine.codecs import sqlite_value
from postroom.store.engine.database import Notify, Rows, Script, ScriptRun, Single, Statement, Step, Text
from postroom.store.engine.statements import Block
from postroom.store.engine.write_ahead_log import KEPT_BYTES
from postroom.system.folder_errors import why_database_unusable

T = TypeVar("T")

BUSY_TIMEOUT_MS = 10_000
# With less, SQLite cannot make the index of its log, which it calls an I/O error.
_LEAST_FREE_BYTES = 64 * 1024
_SETTINGS = f"""
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 4096;
    PRAGMA journal_size_limit = {KEPT_BYTES};
"""
# Cached by statement text: looking up the columns costs as much as a small statement.
_columns: dict[str, tuple[str, ...]] = {}


class Executor:
    """Executes the steps of a script on one connection."""

    def __init__(self, connection: apsw.Connection, blocks: dict[str, Block]) -> None:
        self._cursor = connection.cursor()
        self._blocks = blocks
        self.notices: list[Notify] = []

    def __call__(self, step: Step) -> Rows:
        match step:
            case Statement(name, parameters, many=True):
                return self._execute_many(self._blocks[name], parameters)
            case Statement(name, parameters):
                rows = Rows()
                for part in self._blocks[name]:
                    self._cursor.execute(part.text, part.arguments(parameters))
                    if part.gives_rows:
                        rows.columns = _columns.get(part.text) or self._describe(part.text) or rows.columns
                        rows += self._cursor.fetchall()
                return rows
            case Single(statement, notice):
                self.notices.append(notice)
                return self(statement)
            case Notify():
                self.notices.append(step)
                return Rows()
            case Text(text):
                self._cursor.execute(text).fetchall()
                return Rows()

    def _execute_many(self, block: Block, lists: tuple[Sequence[Sequence[Any]], ...]) -> Rows:
        found = Rows()
        for part, rows in zip(block, lists, strict=True):
            bound = rows if part.picks is None else [part.arguments(tuple(row)) for row in rows]
            self._cursor.executemany(part.text, bound)
            if part.gives_rows:
                found += self._cursor.fetchall()
        return found

    def _describe(self, text: str) -> tuple[str, ...]:
        """The column names, which SQLite provides only while there are rows."""
        try:
            _columns[text] = tuple(name for name, _ in self._cursor.get_description())
        except apsw.ExecutionCompleteError:
            return ()
        return _columns[text]


def drive(script: Script[T], execute: Callable[[Step], Rows]) -> T:
    """Run a script to its end and return its result."""
    run = ScriptRun(script)
    try:
        while run.step is not None:
            run.send(execute(run.step))
    finally:
        run.close()
    return run.result  # type: ignore[return-value] - a script that has ended has a result


def connect(path: Path, read_only: bool = False) -> apsw.Connection:
    """Open a connection with the settings that durability depends on."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with translated(path):
        connection = apsw.Connection(str(path), flags=flags, statementcachesize=512)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Otherwise SQLite may plan a statement anew whenever a parameter has another value, such as that of a LIMIT:
        # that takes longer than a small statement.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.convert_binding = lambda _cursor, _number, value: sqlite_value(value)
        if read_only:
            connection.execute("PRAGMA query_only = ON; PRAGMA cache_size = -16384;")
        else:
            # Called by triggers of the search index, which trusted_schema allows to harmless functions only.
            connection.create_scalar_function("folded", folded, 1, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)
            connection.execute(_SETTINGS).fetchall()  # to the end: it stops at each PRAGMA that returns a row
    return connection


@contextlib.contextmanager
def translated(path: Path) -> Any:
    """Translate SQLite's errors into ours, each with a remedy."""
    try:
        yield
    except apsw.FullError as error:
        raise errors.DatabaseFull(f"the disk that holds {path} is full; free some space") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        problem = f"{path} cannot be written; check the permissions of the file and its folder"
        raise errors.DatabaseReadOnly(why_database_unusable(path) or problem) from error
    except apsw.CantOpenError as error:
        problem = why_database_unusable(path) or f"{path} cannot be opened; check that its folder exists and is yours"
        raise errors.DatabaseUnavailable(problem) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise errors.DatabaseCorrupt(
            f"{path} is damaged or not a SQLite database ({error}); restore a backup, or use another --data-dir"
        ) from error
    except apsw.BusyError as error:
        raise errors.DatabaseUnavailable(
            f"{path} has been locked by another process for over {BUSY_TIMEOUT_MS // 1000} s; end it, or try again"
        ) from error
    except apsw.InterruptError as error:
        raise errors.TookTooLong("SQLite took too long; ask for less") from error
    except apsw.ConstraintError as error:
        raise errors.ConstraintBroken(str(error)) from error
    except apsw.SQLError as error:
        if "no such table" not in str(error):
            raise errors.StoreError(f"SQLite: {error}; see `postroom doctor`") from error
        raise errors.SchemaMismatch(f"{path} is not up to date ({error}); run `postroom migrate`") from error
    except apsw.IOError as error:
        if shutil.disk_usage(path.parent).free < _LEAST_FREE_BYTES:
            raise errors.DatabaseFull(f"the disk that holds {path} is full; free some space") from error
        raise errors.StoreError(f"SQLite: {error}; see `postroom doctor`") from error
    except apsw.Error as error:
        raise errors.StoreError(f"SQLite: {error}; see `postroom doctor`") from error
