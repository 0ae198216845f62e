"""The command line as tests drive it: commands run in this process, and their output is kept."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from postroom.compose.application import PostroomApplication, Ready
from postroom.interfaces.cli import run
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE, look_into
from postroom.store.engine.sqlite import SqliteDatabase

T = TypeVar("T")


@dataclass
class RecordingApplication(PostroomApplication):
    """An application that writes down what it was asked, and opens a real SQLite file."""

    calls: list[tuple[str, Mapping[str, object]]] = field(default_factory=list[tuple[str, Mapping[str, object]]])
    error: BaseException | None = None

    @asynccontextmanager
    async def open_database(self, settings: Settings) -> AsyncGenerator[Database]:
        if self.error is not None:
            raise self.error
        database = look_into(settings.data_dir)
        try:
            yield database
        finally:
            await database.close()

    async def serve(self, settings: Settings, *, ready: Ready, **_more: Any) -> None:
        self._called("serve", host=settings.web.host, port=settings.web.port, data_dir=settings.data_dir)
        ready("http://127.0.0.1:1/")

    async def demo(self, settings: Settings, *, port: int | None, fresh: bool, ready: Ready, **_more: Any) -> None:
        self._called("demo", port=port, fresh=fresh)
        ready("http://127.0.0.1:2/")

    async def sandbox(self, settings: Settings, *, port: int, seed: int, ready: Ready, **more: Any) -> None:
        self._called("sandbox", port=port, seed=seed)
        ready("http://127.0.0.1:3/")

    async def worker(self, settings: Settings, *, concurrency: int) -> None:
        self._called("worker", concurrency=concurrency)

    async def connector_redis_stream(self, settings: Settings, *, identity: str, ready: Ready, **reading: Any) -> None:
        self._called("connector_redis_stream", identity=identity, **reading)
        ready(identity)

    async def connector_gmail(self, settings: Settings, *, email: str, ready: Ready, **watching: Any) -> None:
        self._called("connector_gmail", email=email, once=watching["once"])
        ready(f"gmail:user:{email}")

    def _called(self, name: str, **arguments: object) -> None:
        self.calls.append((name, arguments))
        if self.error is not None:
            raise self.error


@dataclass
class Shell:
    """Runs commands in a folder of their own and keeps what they printed."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    application: RecordingApplication = field(default_factory=RecordingApplication)
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str) -> int:
        with pytest.raises(SystemExit) as ended:
            run(self.application, arguments)
        self.out, self.err = self.capture.readouterr()
        return int(ended.value.code or 0)

    def json(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def with_empty_database(shell: Shell) -> None:
    """Make a database file without a schema, as an interrupted start leaves it."""
    folder = shell.folder / "postroom-data"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("VACUUM")
    (folder / FILE).chmod(0o600)


def on_database(shell: Shell, use: Callable[[Database], Coroutine[Any, Any, T]]) -> T:
    """Use the database of the commands, between them."""

    async def used() -> T:
        database = SqliteDatabase(shell.folder / "postroom-data" / FILE)
        try:
            return await use(database)
        finally:
            await database.close()

    return asyncio.run(used())
