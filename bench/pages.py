"""How long the pages take over a filled database: `python -m bench.pages KIND ADDRESS REQUESTS`.

One visitor, signed in, asks for one page after another over a connection that is kept. Beside them, as a floor, a file
that every page loads, and the newest messages as one bare statement.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import apsw
import asyncpg
import httpx2
import uvloop

from postroom.interfaces.dashboard.assets import load_assets

from .install import ROOT
from .order import Target, answer
from .page_fill import filling
from .page_history import Span
from .page_server import HEADER
from .page_visits import Visit, visits

WARM_UP = 3
PASSWORD = "four unrelated words in a row"
_NEWEST = """SELECT m.id, m.created_at, m.sender, m.subject FROM {schema}messages m WHERE m.pruned_at IS NULL
    ORDER BY m.created_at DESC, m.id DESC LIMIT 50"""


@dataclass
class Seen:
    """What each visit of one page took, in milliseconds: by the clock, in the application, and of the processor."""

    name: str
    clock: list[float] = field(default_factory=list[float])
    app: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    size: int = 0
    error: str = ""


class Backends:
    """The processor time of the database's processes, if it has any."""

    def __init__(self, connection: asyncpg.Connection | None) -> None:
        self._connection = connection
        self._pids: list[int] = []

    async def look(self) -> None:
        if self._connection is not None:
            rows = await self._connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            self._pids = [row[0] for row in rows]

    def used_ms(self) -> float:
        return sum(_used_ns(pid) for pid in self._pids) / 1e6


def _used_ns(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


async def look(target: Target, requests: int) -> list[Seen]:
    span = await _span_of(target)
    async with _served(target) as (http, cookie), _database(target) as (backends, newest):
        seen = [await _floor(newest, requests), await _static(http, requests)]
        for visit in visits(span):
            seen.append(await _measured(http, cookie, visit, requests, backends))
            print(_in_words(seen[-1]), file=sys.stderr, flush=True)
    return seen


async def _measured(
    http: httpx2.AsyncClient, cookie: Mapping[str, str], visit: Visit, requests: int, backends: Backends
) -> Seen:
    seen = Seen(visit.name)
    for number in range(-WARM_UP, requests):
        if number <= 0:
            await backends.look()
        used, began = backends.used_ms(), time.perf_counter()
        found = await http.get(visit.path, headers=cookie)
        took = (time.perf_counter() - began) * 1000
        if found.status_code != 200:
            seen.error = f"{visit.path} was answered with {found.status_code}"
            return seen
        if number >= 0:
            app, cpu = _timing(found.headers[HEADER])
            seen.clock.append(took)
            seen.app.append(app)
            seen.cpu.append(cpu + backends.used_ms() - used)
            seen.size = len(found.content)
    return seen


def _timing(header: str) -> tuple[float, float]:
    app, cpu = (float(part.partition("=")[2]) for part in header.split(","))
    return app, cpu


async def _static(http: httpx2.AsyncClient, requests: int) -> Seen:
    path = load_assets()["postroom.css"].address
    return await _measured(http, {}, Visit("floor: a file that every page loads", path), requests, Backends(None))


async def _floor(newest: Callable[[], Awaitable[object]], requests: int) -> Seen:
    seen = Seen("floor: one bare statement, 50 newest messages")
    for number in range(-WARM_UP, requests):
        began = time.perf_counter()
        await newest()
        if number >= 0:
            took = (time.perf_counter() - began) * 1000
            seen.clock.append(took)
            seen.app.append(took)
            seen.cpu.append(took)
    return seen


@asynccontextmanager
async def _served(target: Target) -> AsyncGenerator[tuple[httpx2.AsyncClient, Mapping[str, str]]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.page_server", json.dumps(asdict(target))),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        said = json.loads(await process.stdout.readline())
        async with httpx2.AsyncClient(base_url=said["address"], timeout=120) as http:
            yield http, {"Cookie": await sign_in(http, said["secret"])}
    finally:
        process.terminate()
        await process.wait()


async def sign_in(http: httpx2.AsyncClient, secret: str) -> str:
    """Choose a password by a link; return the cookie of the session."""
    browser = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    form = {"secret": secret, "name": "bench", "password": PASSWORD}
    found = await http.post("/sign-in/once/password", headers=browser, data=form)
    if found.status_code != 303:
        raise RuntimeError(f"the sign-in was answered with {found.status_code}: {found.text[:500]}")
    http.cookies.clear()
    return "; ".join(each.partition(";")[0] for each in found.headers.get_list("set-cookie"))


@asynccontextmanager
async def _database(target: Target) -> AsyncGenerator[tuple[Backends, Callable[[], Awaitable[object]]]]:
    if target.database == "sqlite":
        sqlite = apsw.Connection(target.address, flags=apsw.SQLITE_OPEN_READONLY)

        async def read() -> object:
            return sqlite.execute(_NEWEST.format(schema="")).fetchall()

        yield Backends(None), read
        sqlite.close()
        return
    connection = await asyncpg.connect(target.address)
    try:
        yield Backends(connection), lambda: connection.fetch(_NEWEST.format(schema="postroom."))
    finally:
        await connection.close()


async def _span_of(target: Target) -> Span:
    async with filling(target) as filled:
        schema = "" if filled.in_one_table else "postroom."
        found = await filled.run(f"SELECT count, start_ms, step_ms, last FROM {schema}page_history")
        count, start, step, last = (int(str(each)) for each in found[0])
        return Span(count, start, step, 1, last)


def _in_words(seen: Seen) -> str:
    if seen.error:
        return f"{seen.name}: {seen.error}"
    figures = (sorted(each)[int(len(each) * 0.95)] for each in (seen.app, seen.cpu))
    return "{}: p95 {:.1f} ms, of the processor {:.1f} ms".format(seen.name, *figures)


if __name__ == "__main__":
    kind, address, number = sys.argv[1:]
    where = Target("postgres" if kind == "postgres" else "sqlite", address)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seen = runner.run(look(where, int(number)))
        answer(json.dumps({"pages": [asdict(each) for each in seen]}))
