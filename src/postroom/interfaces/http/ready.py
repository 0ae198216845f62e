"""The readiness check for load balancers: whether the product can work now."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from postroom.core.errors import IntakeRefused, PostroomError
from postroom.intake.disk import DiskReserve
from postroom.store.engine.clock import clock_of
from postroom.store.engine.database import Database
from postroom.store.installation.health import write_probe
from postroom.store.intake.history import streaks
from postroom.store.jobs.leaders import overdue_work

Endpoint = Callable[[Request], Awaitable[Response]]

WRITE_EVERY_S = 1.0
LONGEST_WRITE_S = 5.0


def ready_endpoint(
    database: Database,
    reserve: DiskReserve | None,
    write_every_s: float = WRITE_EVERY_S,
    shows_checks: Callable[[Request], bool] | None = None,
) -> Endpoint:
    """Return an endpoint that answers 200 if the database can be read and written, there is disk space, and due work is
    being done; otherwise 503. Either answer lists the checks, if `shows_checks` says so of the request.
    """
    trial = WriteProbe(database, every_s=write_every_s)

    async def readyz(request: Request) -> Response:
        found = {
            "database": await _database(database),
            "write": await trial.result(),
            "room": _room(reserve),
            "log": _log(reserve),
            "work": await _work(database),
        }
        good = all(each == "ok" for each in found.values())
        answer: dict[str, object] = {"status": "ready" if good else "not ready"}
        if shows_checks is not None and not shows_checks(request):
            return JSONResponse(answer, 200 if good else 503)
        answer["checks"] = found
        if reserve is not None and reserve.log_bytes is not None:
            answer["log_bytes"] = reserve.log_bytes
        return JSONResponse(answer, 200 if good else 503)

    return readyz


class WriteProbe:
    """Try a write, at most once per interval: all requests in between get the same result."""

    def __init__(self, database: Database, every_s: float = WRITE_EVERY_S) -> None:
        self._database = database
        self._every_s = every_s
        self._one_at_a_time = asyncio.Lock()
        self._tried_at = float("-inf")
        self._found = ""

    async def result(self) -> str:
        async with self._one_at_a_time:
            if time.monotonic() - self._tried_at >= self._every_s:
                self._found = await self._try()
                self._tried_at = time.monotonic()
            return self._found

    async def _try(self) -> str:
        try:
            async with asyncio.timeout(LONGEST_WRITE_S):
                await self._database.run(write_probe(clock_of(self._database)()))
        except TimeoutError:
            return f"no answer in {LONGEST_WRITE_S:g} s"
        except PostroomError as error:
            return type(error).__name__
        return "ok"


async def _database(database: Database) -> str:
    try:
        await database.run(streaks())
    except PostroomError as error:
        return type(error).__name__
    return "ok"


async def _work(database: Database) -> str:
    """Check that due work is being done. Without a leader, snoozed mail stays hidden and dead workers keep their
    jobs."""
    try:
        left = await database.run(overdue_work(clock_of(database)()))
    except PostroomError as error:
        return type(error).__name__
    return "due work is not being done: there is no leader" if left else "ok"


def _room(reserve: DiskReserve | None) -> str:
    try:
        if reserve is not None:
            reserve.check_space()
    except IntakeRefused:
        return "below the reserve"
    return "ok"


def _log(reserve: DiskReserve | None) -> str:
    try:
        if reserve is not None:
            reserve.check_log()
    except IntakeRefused:
        return "held by an old snapshot"
    return "ok"
