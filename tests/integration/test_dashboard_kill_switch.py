"""The kill switch on the page: only our own page may use it, and it takes effect in the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from postroom.operations.overview.overview import Overview
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import list_audit
from support.page_forms import submit
from support.scripted_feed import overview_application


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def page(database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    app = overview_application(Overview(database), database)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8025") as client:
        yield client


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "same-origin"}, {"origin": "http://127.0.0.1:8025"}], ids=["fetch site", "origin"]
)
async def test_our_own_page_stops_everything_and_lets_it_go_on(
    page: httpx2.AsyncClient, database: Database, headers: dict[str, str]
) -> None:
    answer = await submit(page, "/pause", headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert (await Overview(database).control_state()).paused_because == "on the page"
    await submit(page, "/resume", headers=headers)
    assert (await Overview(database).control_state()).paused_since is None
    assert [entry.action for entry in await database.run(list_audit(10))] == ["mutations.resume", "mutations.pause"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:8025"},
        {"sec-fetch-site": "none"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
    ],
    ids=str,
)
async def test_nobody_else_turns_it(page: httpx2.AsyncClient, database: Database, headers: dict[str, str]) -> None:
    assert (await submit(page, "/resume", headers=headers)).status_code == 403
    assert (await submit(page, "/pause", headers=headers)).status_code == 403
    assert (await Overview(database).control_state()).paused_since is None


async def test_it_is_not_turned_by_looking(page: httpx2.AsyncClient) -> None:
    assert (await page.get("/pause", headers={"sec-fetch-site": "same-origin"})).status_code == 405
