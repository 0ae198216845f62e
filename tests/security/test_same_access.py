"""Access belongs to the operation, not to the interface: what one interface refuses, no other allows."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.core.access import SEES_ALL
from postroom.core.roles import Role
from postroom.interfaces.dashboard.forms import FormRoute
from postroom.interfaces.http.mcp.registry import ALL_TOOLS, TOOLS_BY_NAME
from support.clocks import ManualClock
from support.same_access import (
    ONLY_FORMS,
    ONLY_TOOLS,
    ROWS,
    declared_forms,
    forms_of,
    operations,
    tools_that_differ,
)
from support.signed_in import running_pages
from support.sqlite import new_sqlite


@pytest.fixture
async def forms(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> AsyncIterator[dict[str, FormRoute]]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, clock, tmp_path) as running:
        yield forms_of(running)
    await database.close()


def test_a_tool_and_an_operation_of_the_api_are_for_the_same_tokens() -> None:
    assert tools_that_differ() == []


def test_the_api_serves_no_token_that_is_bound_to_something() -> None:
    for name, operation in operations().items():
        assert operation.access.tokens <= SEES_ALL or name in ("GET /session", "GET /openapi.json"), name


async def test_a_form_is_for_the_people_of_its_operation(forms: dict[str, FormRoute]) -> None:
    assert not declared_forms().keys() & ONLY_FORMS.keys()
    assert {form: route.access for form, route in forms.items()} == {**declared_forms(), **ONLY_FORMS}


def test_every_tool_and_operation_is_compared() -> None:
    tools, compared = (set(column) for column in zip(*ROWS, strict=True))
    assert tools | set(ONLY_TOOLS) == {each.name for each in ALL_TOOLS}
    assert not tools & set(ONLY_TOOLS)
    assert compared <= operations().keys()


def test_a_change_that_programs_may_ask_for_is_a_form_or_a_tool_too() -> None:
    tools = {operation for _, operation in ROWS}
    changes = {name: each.operation for name, each in operations().items() if not each.is_safe}
    assert {name for name, each in changes.items() if not each.forms and not each.tool} <= tools


def test_no_tool_does_what_is_a_persons_own() -> None:
    own = {operation for operation, each in operations().items() if not each.access.tokens}
    assert [row for row in ROWS if row[1] in own] == []
    assert not {"mutations.resume", "approvals.approve"} & TOOLS_BY_NAME.keys()


def test_only_over_mcp_are_tools_that_no_person_has_a_form_for() -> None:
    unbound = {name for name in ONLY_TOOLS if TOOLS_BY_NAME[name].roles & {Role.DASHBOARD}}
    assert unbound == {"contacts.add", "email_search_and_ingest"}
