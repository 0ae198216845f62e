"""Repeated refusals fill neither the audit log nor memory: one entry a minute stands for all."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from postroom.core.errors import AccessRefused
from postroom.core.metrics import ACCESS_REFUSED
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.access import require_role
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from postroom.interfaces.http.services import Services
from postroom.operations.caller import AuditThrottle
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import AuditView, list_audit
from support.clocks import ManualClock
from support.switchboard import services_on

WHAT = ("token:1", "ingest", "role")
AGENT = Principal(Role.AGENT, None)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    yield opened
    await opened.close()


async def refuse(services: Services, principal: Principal = AGENT, tool: str = "ingest") -> None:
    with pytest.raises(AccessRefused) as refused:
        require_role(principal, TOOLS_BY_NAME[tool])
    await services.parts.refusals.note(principal, tool, refused.value)


async def audited(services: Services) -> list[AuditView]:
    return await services.database.run(list_audit(1000, action="access.refused"))


def test_the_first_is_written_and_the_next_only_after_a_minute_with_how_many_there_were(clock: ManualClock) -> None:
    refusals = AuditThrottle()
    assert [refusals.since_last(WHAT, clock()) for _ in range(4)] == [0, None, None, None]
    assert refusals.since_last(WHAT, clock.forward(59)) is None
    assert refusals.since_last(WHAT, clock.forward(1)) == 4
    assert refusals.since_last(WHAT, clock()) is None
    assert refusals.since_last(WHAT, clock.forward(60)) == 1
    assert refusals.since_last(WHAT, clock.forward(60)) == 0


def test_one_refusal_hides_no_other(clock: ManualClock) -> None:
    refusals = AuditThrottle()
    others = [("token:2", "ingest", "role"), ("token:1", "queue.next", "role"), ("token:1", "ingest", "identity")]
    assert [refusals.since_last(each, clock()) for each in (WHAT, *others, WHAT)] == [0, 0, 0, 0, None]


def test_however_many_are_refused_few_are_remembered(clock: ManualClock) -> None:
    refusals = AuditThrottle(timedelta(minutes=1), most=10)
    for number in range(1000):
        assert refusals.since_last((f"token:{number}",), clock()) == 0
        assert len(refusals._last) <= 10


async def test_a_caller_who_does_not_stop_has_one_entry_a_minute_in_the_audit_log(
    database: Database, clock: ManualClock
) -> None:
    services = services_on(database, clock)
    for _ in range(50):
        await refuse(services)
    (first,) = await audited(services)
    assert (first.object_id, first.after) == ("ingest", None)
    clock.forward(60)
    for _ in range(3):
        await refuse(services)
    latest, _ = await audited(services)
    assert latest.after == {"repeated": 49}
    assert services.tally.counts_of(ACCESS_REFUSED)[("role",)] == 53


async def test_another_tool_and_another_caller_are_written_at_once(database: Database, clock: ManualClock) -> None:
    services = services_on(database, clock)
    await refuse(services)
    await refuse(services, tool="queue.replay")
    await refuse(services, Principal(Role.DASHBOARD, None, token_id=None), "queue.replay")
    assert [(each.role, each.object_id) for each in await audited(services)] == [
        ("dashboard", "queue.replay"),
        ("agent", "queue.replay"),
        ("agent", "ingest"),
    ]
