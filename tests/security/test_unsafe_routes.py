"""Every route that changes something, from the application's own table: refused to strangers, forgers and viewers.

A new route is in these tests by itself. One that anyone may call, or that a viewer may, must be named here.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Route

from postroom.compose.sign_in import SELF_CHECKING
from postroom.interfaces.http.api.operation import PREFIX as API
from postroom.interfaces.http.sign_in import is_open
from postroom.store.people.people import change_role
from support.clocks import ManualClock
from support.signed_in import Pages, Visiting, running_pages
from support.sqlite import new_sqlite
from support.store.dump import dump
from support.store.fault_cases_registry import signed

SAFE = {"GET", "HEAD", "OPTIONS"}
# What people may do with their own ways in, whatever their role is.
OWN = ("/sign-out", "/settings/sign-in/")
# Those ask for a fresh proof.
ALWAYS_FRESH = ("/settings/sign-in/",)
NOT_READ = ("/events", "/readyz")
NOTHING = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
async def pages(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> AsyncIterator[Pages]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, clock, tmp_path) as running:
        yield running
    await database.close()


def unsafe_routes(pages: Pages) -> list[tuple[str, str]]:
    """Method and path of every route that may change something; the named parts of paths are filled in."""
    found: list[tuple[str, str]] = []
    for route in pages.app.routes:
        if not isinstance(route, Route):
            continue
        path = route.path
        for name in route.param_convertors:
            path = path.replace(f"{{{name}}}", NOTHING).replace(f"{{{name}:path}}", NOTHING)
        methods = {"POST"} if route.methods is None else route.methods - SAFE
        if not path.startswith(SELF_CHECKING):
            found += [(method, path) for method in sorted(methods)]
    return found


async def tried(person: Visiting, method: str, path: str, token: str | None, **headers: str) -> httpx2.Response:
    if path.startswith(API):
        proof = {} if token is None else {"X-Form-Token": token}
        return await person.request(method, path, {**proof, **headers}, json={})
    fields = {} if token is None else {"form_token": token}
    more: dict[str, object] = {"json": fields} if "passkey" in path and "remove" not in path else {"data": fields}
    return await person.request(method, path, headers, **more)


async def test_there_are_unsafe_routes_of_every_kind(pages: Pages) -> None:
    paths = {path for _, path in unsafe_routes(pages)}
    assert {"/pause", "/resume", "/sign-out", "/settings/sign-in/password", "/sign-in"} <= paths
    assert {f"{API}/pause", f"{API}/approvals/answers", f"{API}/settings/tokens"} <= paths


def is_sent_to_sign_in(answer: httpx2.Response) -> bool:
    """Programs are refused; a form leads to the sign-in page."""
    return answer.status_code == 401 or (
        answer.status_code == 303 and answer.headers["location"].partition("?")[0] == "/sign-in"
    )


async def test_nobody_without_a_session_gets_through(pages: Pages) -> None:
    before = await dump(pages.database)
    for method, path in unsafe_routes(pages):
        if not is_open(path):
            answer = await tried(pages.visitor(), method, path, "x" * 43)
            assert is_sent_to_sign_in(answer), (method, path, answer.headers)
    assert await dump(pages.database) == before


async def test_no_page_is_shown_without_a_session(pages: Pages) -> None:
    stranger, open_ones = pages.visitor(), {"/healthz", "/readyz", "/sign-in", "/sign-in/once", "/static/worker.js"}
    for route in pages.app.routes:
        if isinstance(route, Route) and "GET" in (route.methods or ()) and "{" not in route.path:
            answer = await stranger.get(route.path)
            if route.path in open_ones:
                assert answer.status_code == 200, route.path
            elif route.path.startswith(("/events", "/metrics", API)):
                assert answer.status_code == 401, route.path
            else:
                assert answer.status_code == 303, route.path
                assert answer.headers["location"].startswith("/sign-in"), route.path


@pytest.mark.parametrize(
    ("forged", "headers"),
    [
        ("another site", {"Sec-Fetch-Site": "cross-site"}),
        ("a sibling of this site", {"Sec-Fetch-Site": "same-site"}),
        ("an address that was typed", {"Sec-Fetch-Site": "none"}),
        ("a frame without an origin", {"Sec-Fetch-Site": "", "Origin": "null"}),
        ("an old browser on another site", {"Sec-Fetch-Site": "", "Origin": "https://evil.example"}),
    ],
)
async def test_a_form_of_another_page_is_refused(pages: Pages, forged: str, headers: dict[str, str]) -> None:
    mara = await pages.signed_in()
    token, before = await mara.form_token(), await dump(pages.database)
    if not headers["Sec-Fetch-Site"]:
        del mara.headers["Sec-Fetch-Site"]
        headers = {"Origin": headers["Origin"]}
    for method, path in unsafe_routes(pages):
        answer = await tried(mara, method, path, token, **headers)
        assert answer.status_code == 403, (forged, method, path)
    assert await dump(pages.database) == before


@pytest.mark.parametrize("token", [None, "", "x" * 43, "another session's"])
async def test_a_form_without_the_token_of_this_session_is_refused(pages: Pages, token: str | None) -> None:
    mara = await pages.signed_in()
    if token == "another session's":
        token = await (await pages.signed_in("nils")).form_token()
    before = await dump(pages.database)
    for method, path in unsafe_routes(pages):
        if not is_open(path) or path.startswith("/sign-in/again"):
            answer = await tried(mara, method, path, token)
            assert answer.status_code == 403, (method, path)
    assert await dump(pages.database) == before


async def test_a_viewer_changes_nothing_but_their_own_ways_in(pages: Pages) -> None:
    await pages.signed_in()
    nils = await pages.signed_in("nils", "viewer")
    token, before = await nils.form_token(), await dump(pages.database)
    for method, path in unsafe_routes(pages):
        if not is_open(path) and not path.startswith(OWN):
            answer = await tried(nils, method, path, token)
            assert answer.status_code == 403, (method, path)
    assert await dump(pages.database) == before


async def test_somebody_who_is_made_a_viewer_loses_their_rights_at_once(pages: Pages) -> None:
    await pages.signed_in()
    nils = await pages.signed_in("nils", "operator")
    token = await nils.form_token()
    assert (await tried(nils, "POST", "/pause", token)).status_code == 303
    await pages.database.run(change_role("nils", "viewer", signed(), pages.clock()))
    assert (await tried(nils, "POST", "/pause", token)).status_code == 403


async def test_a_session_that_has_ended_opens_nothing(pages: Pages) -> None:
    mara = await pages.signed_in()
    token = await mara.form_token()
    pages.clock.forward(31 * 60)
    before = await dump(pages.database)
    for method, path in unsafe_routes(pages):
        if not is_open(path):
            answer = await tried(mara, method, path, token)
            assert is_sent_to_sign_in(answer), (method, path)
    assert await dump(pages.database) == before


async def test_after_ten_minutes_ones_own_ways_in_ask_for_a_new_proof(pages: Pages) -> None:
    mara = await pages.signed_in()
    token = await mara.form_token()
    pages.clock.forward(10 * 60)
    before = await dump(pages.database)
    for method, path in unsafe_routes(pages):
        if path.startswith(ALWAYS_FRESH):
            answer = await tried(mara, method, path, token)
            assert answer.status_code in (200, 303, 401), (method, path)
            assert "/sign-in/again" in answer.headers.get("location", answer.text), (method, path)
    after = await dump(pages.database)
    assert {name: rows for name, rows in after.items() if name != "sessions"} == {
        name: rows for name, rows in before.items() if name != "sessions"
    }


async def test_no_get_changes_anything(pages: Pages) -> None:
    """But for the readiness check, which tries a write."""
    mara = await pages.signed_in()
    before = await dump(pages.database)
    for route in pages.app.routes:
        if isinstance(route, Route) and "GET" in (route.methods or ()) and not route.path.startswith(NOT_READ):
            await mara.get(route.path.replace("{digest}/{name:path}", "x/y"))
    assert await dump(pages.database) == before


async def test_a_nul_character_is_refused_with_the_name_of_its_field(pages: Pages) -> None:
    """PostgreSQL refuses every query with one, which would look as if the data could not be read."""
    mara = await pages.signed_in()
    for address, field in (
        ("/audit?actor=a%00b", "actor"),
        ("/audit.csv?action=%00", "action"),
        ("/jobs?error=%00", "error"),
        ("/mail/a%00b", "message"),
        ("/events/audit?actor=%00", "actor"),
    ):
        answer = await mara.get(address)
        assert (answer.status_code, f"{field}: contains a NUL" in answer.text) == (400, True), address
    answer = await mara.submit("/settings/protection", kind="label", value="a\0b")
    assert (answer.status_code, "value: contains a NUL" in answer.text) == (400, True)
