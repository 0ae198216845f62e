"""Whether the product can do its work now: what a load balancer asks before it sends anyone."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from postroom.core.errors import IntakeRefused, PostroomError
from postroom.store.clock import clock_of
from postroom.store.database import Database
from postroom.store.history import streaks
from postroom.store.leaders import neglected
from postroom.switchboard.disk import DiskReserve

Endpoint = Callable[[Request], Awaitable[Response]]


def ready_endpoint(database: Database, reserve: DiskReserve | None) -> Endpoint:
    """Answers 200 when the database answers, there is room for more and due work is seen to, else 503; either way what
    was found.
    """

    async def readyz(_request: Request) -> Response:
        found = {
            "database": await _database(database),
            "room": _room(reserve),
            "log": _log(reserve),
            "work": await _work(database),
        }
        good = all(each == "ok" for each in found.values())
        answer: dict[str, object] = {"status": "ready" if good else "not ready", "checks": found}
        if reserve is not None and reserve.log_bytes is not None:
            answer["log_bytes"] = reserve.log_bytes
        return JSONResponse(answer, 200 if good else 503)

    return readyz


async def _database(database: Database) -> str:
    try:
        await database.run(streaks())
    except PostroomError as error:
        return type(error).__name__
    return "ok"


async def _work(database: Database) -> str:
    """Whether what is due is seen to. Without a leader, snoozed mail stays hidden and dead workers keep their jobs."""
    try:
        left = await database.run(neglected(clock_of(database)()))
    except PostroomError as error:
        return type(error).__name__
    return "due work is not seen to: no worker leads" if left else "ok"


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
