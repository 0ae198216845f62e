"""The access table of the reference against the running product: every operation, interface and role is tried.

An operation admits a caller if its answer is about the arguments, which make no sense here, and not about who asks.
"""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.core.roles import Role
from postroom.core.visitors import PERSON_ROLES, PersonRole
from support.access_table import PROVES, AccessRow, access_rows
from support.api import RunningApi, SessionCaller, running_api
from support.same_access import forms_of
from support.sqlite import new_sqlite
from support.store.dump import dump
from support.submission import added_sender
from support.switchboard import Served

NOTHING = "00000000-0000-0000-0000-000000000000"
NONSENSE = {"nonsense": 1}
AFTER_THE_PROOF_S = 10 * 60
ROWS = access_rows()
IN_THE_API = [row for row in ROWS if row.http]
TOOLS = {tool: row for row in ROWS for tool in row.tools}


@pytest.fixture
async def api(tmp_path: Path, migrated_sqlite: Path) -> AsyncIterator[RunningApi]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_api(database, tmp_path) as running:
        yield running
    await database.close()


def filled(path: str) -> str:
    """The path, with the id of nothing for each name in it."""
    return re.sub(r"\{[^}]+\}", NOTHING, path)


async def call(caller: Any, row: AccessRow) -> httpx2.Response:
    method, path = (row.http or "").split()
    return await caller.call(method, filled(path), None if method == "GET" else NONSENSE)


def access_in(answer: httpx2.Response) -> str:
    """The answer's word on the caller: `yes`, `proof`, `–`, or `unknown` for nobody whom the product knows."""
    if answer.status_code in (200, 400, 404):
        return "yes"
    code = answer.json()["error"]["code"]
    return {(403, "refused"): "–", (403, "proof_needed"): PROVES, (401, "no_token"): "unknown"}[
        answer.status_code, code
    ]


async def test_the_api_admits_the_tokens_of_the_table(api: RunningApi) -> None:
    before = _without_traces(await dump(api.pages.database))
    for role in Role:
        caller = await api.token(role)
        found = {row.http: access_in(await call(caller, row)) for row in IN_THE_API}
        assert found == {row.http: "yes" if "API" in row.tokens.get(role, ()) else "–" for row in IN_THE_API}, role
    assert _without_traces(await dump(api.pages.database)) == before


async def test_the_api_admits_the_people_of_the_table_and_asks_for_a_proof_where_it_says_so(api: RunningApi) -> None:
    callers: dict[PersonRole, SessionCaller] = {role: await api.person(role, role) for role in PERSON_ROLES}
    for role, caller in callers.items():
        found = {row.http: access_in(await call(caller, row)) for row in IN_THE_API}
        assert found == {row.http: "yes" if role in row.people else "–" for row in IN_THE_API}, role
    api.pages.clock.forward(AFTER_THE_PROOF_S)
    for role, caller in callers.items():
        found = {row.http: access_in(await call(caller, row)) for row in IN_THE_API}
        assert found == {row.http: row.people.get(role, "–") for row in IN_THE_API}, role


async def test_the_api_admits_nobody_without_a_token_or_a_session(api: RunningApi) -> None:
    stranger = SessionCaller(api.pages.visitor())
    for row in IN_THE_API:
        method, path = (row.http or "").split()
        answer = await stranger.visiting.request(method, f"/api/v1{filled(path)}", {"Accept": "application/json"})
        assert access_in(answer) == "unknown", row.http


async def test_the_pages_admit_the_people_of_the_table(api: RunningApi) -> None:
    """The role is checked before the token of the form: with a wrong token nothing is done."""
    for role in PERSON_ROLES:
        person = (await api.person(role, role)).visiting
        for form, people in _forms().items():
            answer = await person.post(filled(form), form_token="wrong")
            assert answer.status_code == 403, (role, form)
            assert ("this needs the role" in answer.text) == (role not in people), (role, form)


async def test_the_pages_ask_for_a_proof_where_the_table_says_so(api: RunningApi) -> None:
    forms = forms_of(api.pages)
    assert forms.keys() == _forms().keys()
    asking = {form for form, people in _forms().items() if PROVES in people.values()}
    assert {form for form, route in forms.items() if route.access.is_fresh} == asking
    mara = (await api.person()).visiting
    token = await mara.form_token()
    api.pages.clock.forward(AFTER_THE_PROOF_S)
    before = _without_traces(await dump(api.pages.database))
    for form in sorted(asking):
        answer = await mara.post(filled(form), form_token=token)
        assert answer.status_code in (200, 303), form
        assert "/sign-in/again" in answer.headers.get("location", answer.text), form
    assert _without_traces(await dump(api.pages.database)) == before


@pytest.mark.parametrize("role", Role)
async def test_mcp_lists_and_admits_the_tokens_of_the_table(switchboard: Served, role: Role) -> None:
    sender = await added_sender(switchboard.services.database, "grace@example.org", switchboard.services.clock)
    identity = "webhook:ci" if role is Role.CONNECTOR else None
    token = await switchboard.token(role, identity, sender_id=sender.id if role is Role.SENDER else None)
    expected = {tool for tool, row in TOOLS.items() if "MCP" in row.tokens.get(role, ())}
    async with switchboard.client(token) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == expected
        codes = {tool: (await client.call_tool(tool, NONSENSE)).structured_content["code"] for tool in TOOLS}
    assert codes == {tool: "bad_input" if tool in expected else "refused" for tool in TOOLS}


def _forms() -> dict[str, Mapping[PersonRole, str]]:
    return {form: row.people for row in ROWS for form in row.forms}


def _without_traces(tables: Mapping[str, object]) -> Mapping[str, object]:
    """Without the traces of every call: refusals in the audit log, and when a token or a session was last used."""
    traces = ("audit", "sqlite_sequence", "tokens", "sessions")
    return {name: rows for name, rows in tables.items() if name not in traces}
