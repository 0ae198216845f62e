"""The process that looks at many backfills: `python -m bench.backfill_jobs fill|look postgres|sqlite ADDRESS COUNT`.

The COUNT jobs belong to mailboxes of 100 each. Three of five have ended; of the others, most wait, some are paused, and
one of each mailbox is active, with mail that waits for its decisions. They are listed by the MCP tool, 50 at a time,
and shown as `postroom backfill show` reads them.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncGenerator, Generator
from datetime import date, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import uvloop
from mcp import types
from mcp.client import Client
from mcp.types.version import LATEST_MODERN_VERSION

from postroom.compose.tasks import settle_memory
from postroom.core.backfill.job import HIGHEST_RATE, NewBackfill
from postroom.core.queue.queues import EMAIL
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.operations.people.audit import signature
from postroom.store.backfill.backfill import cancel_backfill, create_backfill, pause_backfill
from postroom.store.backfill.backfill_spend import Arrived, Pacing, arriving
from postroom.store.backfill.backfill_work import hand_out
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import migrate
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock

from .live_mail import services_on
from .order import Target, answer
from .ours import opened

VIEWS = PAGED, ACTIVE, NONE, SHOWN = "list, page by page", "list, those active", "list, in a state of none", "show"
OF_EACH, PAGE = 100, 50
MAIL_WAITING = 500
CALLS = 100
SEED = 2026
FIRST, LAST = date(2020, 1, 1), date(2025, 12, 31)


async def fill(target: Target, count: int) -> dict[str, list[float]]:
    """Not measured."""
    began = wall_clock() - timedelta(seconds=count)
    async with opened(target) as database:
        await migrate(database)
        for start in range(0, count, OF_EACH):
            user = f"user{start}@lindqvist.example"
            endpoint = f"gmail:user:{user}"
            await database.run(keep_account(new_id(), "gmail", endpoint, user, began))
            numbers = range(start, min(start + OF_EACH, count))
            await asyncio.gather(*(_create(database, endpoint, n, began + timedelta(seconds=n)) for n in numbers))
            await _activate(database, endpoint)
    return {}


async def _create(database: Database, endpoint: str, number: int, at: datetime) -> None:
    id, signed = new_id(), signature("bench", "admin")
    new = NewBackfill("gmail", endpoint, ("finance", "travel"), FIRST, LAST, consent=True)
    await database.run(create_backfill(id, new, 0, at, signed))
    if number % 5 < 3:
        await database.run(cancel_backfill(id, at, signature("bench", "admin")))
    elif number % 10 == 3:
        await database.run(pause_backfill(id, at, signature("bench", "admin")))


async def _activate(database: Database, endpoint: str) -> None:
    now = wall_clock()
    signed = signature("bench", "connector")
    held = await database.run(hand_out("gmail", endpoint, new_id(), EMAIL, now.date().isoformat(), now, signed))
    assert held is not None
    await database.run(_bring_in([Arrived(held.job.id, new_id(), True, True) for _ in range(MAIL_WAITING)]))


@transaction
def _bring_in(messages: list[Arrived]) -> Script[None]:
    now = wall_clock()
    yield from arriving(messages, {each.job_id: Pacing(HIGHEST_RATE, now) for each in messages}, now)


async def look(target: Target, count: int) -> dict[str, list[float]]:
    """The seconds of each call, by view."""
    seconds: dict[str, list[float]] = {view: [] for view in VIEWS}
    async with opened(target) as database:
        services = await services_on(database, ())
        server = build_server(services, Principal(Role.ADMIN))
        async with Client(server, mode=LATEST_MODERN_VERSION, cache=None) as client:
            await _list(client)
            settle_memory()
            ids = [id async for id in _pages(client, seconds[PAGED])]
            if len(set(ids)) != count:
                raise RuntimeError(f"of {count} backfills, {len(set(ids))} were listed")
            for _ in range(CALLS):
                with _timed(seconds[ACTIVE]):
                    active = await _list(client, status="active")
                with _timed(seconds[NONE]):
                    none = await _list(client, status="error")
                if len(active["backfills"]) != min(PAGE, count // OF_EACH) or none["backfills"]:
                    raise RuntimeError("the states of the backfills are not those that they were given")
        for id in Random(SEED).choices(ids, k=CALLS):
            with _timed(seconds[SHOWN]):
                await services.parts.backfills.load(id)
                await services.parts.estimates.outcome(id)
    return seconds


async def _pages(client: Client, seconds: list[float]) -> AsyncGenerator[UUID]:
    """The ids of all backfills, with the seconds that each page took."""
    arguments: dict[str, str] = {}
    while True:
        with _timed(seconds):
            page = await _list(client, **arguments)
        for each in page["backfills"]:
            yield UUID(each["job_id"])
        if page["next_before"] is None:
            return
        arguments = {"before": page["next_before"]}


async def _list(client: Client, **arguments: str) -> dict[str, Any]:
    request = types.CallToolRequest(params=types.CallToolRequestParams(name="backfill.list", arguments=arguments))
    result = await client.session.send_request(request, types.CallToolResult)
    if result.is_error or result.structured_content is None:
        raise RuntimeError(f"backfill.list was refused: {result.structured_content}")
    return result.structured_content


@contextlib.contextmanager
def _timed(seconds: list[float]) -> Generator[None]:
    started = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - started)


if __name__ == "__main__":
    verb, kind, address, number = sys.argv[1:]
    where = Target("postgres" if kind == "postgres" else "sqlite", address)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answer(json.dumps(runner.run(fill(where, int(number)) if verb == "fill" else look(where, int(number)))))
