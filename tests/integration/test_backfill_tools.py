"""The tools for backfills over real MCP: who may call which, and what they refuse."""

import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from postroom.core.backfill.job import MOST_OPEN
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from postroom.interfaces.http.services import Services
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from support.agent_client import ADMIN, AGENT, ask, audited, client_of, refused
from support.clocks import ManualClock
from support.scale import scale
from support.switchboard import mail, open_account, services_on

MAILBOX = "gmail:user:ada@example.com"
OTHER = "gmail:user:ben@example.com"
CONNECTOR = Principal(Role.CONNECTOR, MAILBOX)
STRANGER = Principal(Role.CONNECTOR, OTHER)
DASHBOARD = Principal(Role.DASHBOARD, token_id=new_id())
NEW: dict[str, Any] = {
    "connector_type": "gmail",
    "endpoint_identity": MAILBOX,
    "target_categories": ["finance", "travel"],
    "date_from": "2020-02-29",
    "date_to": "2024-12-31",
    "consent": True,
}
OPERATORS = ("create_backfill_job", "backfill.pause", "backfill.cancel", "backfill.resume", "backfill.list")
WORKERS = ("backfill.poll", "backfill.progress")
POLL = {"connector_type": "gmail", "endpoint_identity": MAILBOX}
NOTHING = {"rows_processed": 0, "rows_skipped": 0, "cost_spent_cents": 0}


@pytest.fixture
async def services(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Services]:
    database = await open_database(tmp_path, None)
    made = services_on(database, clock)
    await open_account(made)
    await open_account(made, "ben@example.com")
    yield made
    await database.close()


async def create(services: Services, **changes: Any) -> str:
    async with client_of(services, DASHBOARD) as client:
        return (await ask(client, "create_backfill_job", **{**NEW, **changes}))["job_id"]


async def test_a_backfill_goes_from_consent_to_completion(services: Services) -> None:
    job_id = await create(services)
    async with client_of(services, CONNECTOR) as connector, client_of(services, DASHBOARD) as dashboard:
        work = await ask(connector, "backfill.poll", **POLL)
        assert (work["job_id"], work["cursor"], work["batch_seq"], work["lease_s"]) == (job_id, None, 0, 300)
        assert work["params"] == {
            "target_categories": ["finance", "travel"],
            "date_from": "2020-02-29",
            "date_to": "2024-12-31",
            "time_zone": "UTC",
            "rate_limit_per_hour": 100,
            "daily_cost_cap_cents": 500,
            "message_cost_micros": 0,
            "mode": "batch",
        }
        old = mail(1, control={"backfill_job_id": job_id})
        assert not (await ask(connector, "ingest", envelope=old))["duplicate"]
        report = {"job_id": job_id, "lease_token": work["lease_token"], **NOTHING}
        answer = await ask(
            connector,
            "backfill.progress",
            **{**report, "rows_processed": 1, "rows_skipped": 2, "batch_seq": 1, "categories": {"finance": 1}},
            cursor={"day": "2024-12-31", "since": "2024-12-01", "id": "18c1"},
            failed=[{"message_id": "18c2", "reason": "it is too large"}],
        )
        assert (answer["status"], answer["batch_seq"], answer["left_today_micros"]) == ("active", 1, 5_000_000)
        end = {"day": "2020-02-28", "since": "2020-02-28", "id": ""}
        answer = await ask(
            connector, "backfill.progress", **{**report, "batch_seq": 2, "cursor": end, "status": "completed"}
        )
        assert answer["status"] == "completed"
        assert (await ask(connector, "backfill.poll", **POLL))["job_id"] is None
        [shown] = (await ask(dashboard, "backfill.list"))["backfills"]
    counts = (shown["status"], shown["rows_processed"], shown["rows_skipped"], shown["rows_failed"])
    assert counts == ("completed", 1, 2, 1)
    assert (shown["categories"], shown["reached"]) == ({"finance": 1}, "2020-02-28")


@pytest.mark.parametrize("tool", [*OPERATORS, *WORKERS])
@pytest.mark.parametrize("principal", [AGENT, DASHBOARD, ADMIN, CONNECTOR], ids=lambda each: each.role.value)
async def test_a_tool_of_the_other_side_is_refused_and_audited(
    services: Services, tool: str, principal: Principal
) -> None:
    job_id = await create(services)
    arguments = {
        "create_backfill_job": NEW,
        "backfill.list": {},
        "backfill.poll": POLL,
        "backfill.progress": {"job_id": job_id, **NOTHING},
    }.get(tool, {"job_id": job_id})
    may = principal.role in ((Role.CONNECTOR,) if tool in WORKERS else (Role.DASHBOARD, Role.ADMIN))
    async with client_of(services, principal) as client:
        result = await client.call_tool(tool, arguments)
    refusals = [each.object_id for each in await audited(services, "access.refused")]
    assert refusals == ([] if may else [tool])
    if not may:
        assert result.is_error
        assert result.structured_content["code"] == "refused"


async def test_a_connector_gets_and_reports_only_its_own(services: Services) -> None:
    job_id = await create(services)
    async with client_of(services, STRANGER) as stranger:
        assert (await refused(stranger, "backfill.poll", **POLL))["field"] == "endpoint_identity"
        assert (await ask(stranger, "backfill.poll", connector_type="gmail", endpoint_identity=OTHER))["job_id"] is None
        told = await refused(stranger, "backfill.progress", job_id=job_id, **NOTHING)
        assert (told["code"], told["field"]) == ("refused", "job_id")
        stolen = mail(1, source={**mail()["source"], "endpoint_identity": OTHER}, control={"backfill_job_id": job_id})
        assert (await refused(stranger, "ingest", envelope=stolen))["field"] == "control.backfill_job_id"
    async with client_of(services, CONNECTOR) as connector:
        assert (await ask(connector, "backfill.poll", **POLL))["job_id"] == job_id


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"consent": False}, "consent"),
        ({"consent": None}, "consent"),
        ({"consent": "yes"}, "consent"),
        ({"consent": 1}, "consent"),
        ({"date_from": "2025-01-01"}, "date_from"),
        ({"date_to": "2999-01-01"}, "date_to"),
        ({"date_from": "1969-12-31"}, "date_from"),
        ({"date_from": "soon"}, "date_from"),
        ({"target_categories": []}, "target_categories"),
        ({"target_categories": ["finanse"]}, "target_categories"),
        ({"connector_type": "fax"}, "connector_type"),
        ({"endpoint_identity": "gmail:user:nobody@example.com"}, "endpoint_identity"),
        ({"rate_limit_per_hour": 0}, "rate_limit_per_hour"),
        ({"rate_limit_per_hour": -5}, "rate_limit_per_hour"),
        ({"rate_limit_per_hour": "NaN"}, "rate_limit_per_hour"),
        ({"daily_cost_cap_cents": 0}, "daily_cost_cap_cents"),
        ({"daily_cost_cap_cents": -1}, "daily_cost_cap_cents"),
        ({"daily_cost_cap_cents": 2**40}, "daily_cost_cap_cents"),
        ({"mode": "fast"}, "mode"),
        ({"cap": 5}, "cap"),
    ],
)
async def test_a_backfill_that_cannot_be_is_refused_by_name(
    services: Services, changes: dict[str, Any], field: str
) -> None:
    given = {name: value for name, value in {**NEW, **changes}.items() if value is not None}
    async with client_of(services, DASHBOARD) as client:
        told = await refused(client, "create_backfill_job", **given)
        assert (told["code"], told["field"]) == ("bad_input", field)
        assert told["remedy"]
        assert (await ask(client, "backfill.list"))["backfills"] == []


@pytest.mark.parametrize(
    ("report", "field"),
    [
        ({"rows_processed": -1}, "rows_processed"),
        ({"rows_processed": 10**12}, "rows_processed"),
        ({"rows_skipped": 1.5}, "rows_skipped"),
        ({"cost_spent_cents": "a lot"}, "cost_spent_cents"),
        ({"cost_spent_cents": -3}, "cost_spent_cents"),
        ({"cost_spent_micros": -3}, "cost_spent_micros"),
        ({"rows_processed": math.nan}, "rows_processed"),
        ({"cost_spent_cents": math.nan}, "cost_spent_cents"),
        ({"cost_spent_micros": "NaN"}, "cost_spent_micros"),
        ({"categories": {"finance": math.nan}}, "categories.finance"),
        ({"rows_processed": 5}, "rows_processed"),
        ({"cursor": {"day": "2030-01-01", "since": "2030-01-01"}}, "cursor"),
        ({"cursor": {"page": "token"}}, "cursor"),
        ({"cursor": {"day": "2024-12-31", "since": "2024-12-01", "id": "x" * 10_000}}, "cursor.id"),
        ({"cursor": {"day": "2024-12-31", "since": "2024-12-01", "id": {"deep": [[[]]]}}}, "cursor.id"),
        ({"cursor": [1, 2]}, "cursor"),
        ({"cursor": {"day": "x" * 10_000, "since": "2024-12-01"}}, "cursor.day"),
        ({"status": "cancelled"}, "status"),
        ({"status": "completed"}, "status"),
        ({"batch_seq": 0}, "batch_seq"),
        ({"batch_seq": 7}, "batch_seq"),
        ({"categories": {"gossip": 1}}, "categories"),
        ({"categories": {"finance": 1}}, "categories"),
        ({"rows_skipped": 1_000_000}, "rate_limit_per_hour"),
        ({"failed": [{"message_id": "m"}]}, "failed.0.reason"),
        ({"daily_cost_cap_cents": 10**6}, "daily_cost_cap_cents"),
    ],
)
async def test_a_report_that_cannot_be_true_is_refused_by_name(
    services: Services, report: dict[str, Any], field: str
) -> None:
    job_id = await create(services)
    async with client_of(services, CONNECTOR) as connector:
        work = await ask(connector, "backfill.poll", **POLL)
        whole = {"job_id": job_id, "lease_token": work["lease_token"], **NOTHING, **report}
        assert (await refused(connector, "backfill.progress", **whole))["field"] == field
    async with client_of(services, DASHBOARD) as dashboard:
        [shown] = (await ask(dashboard, "backfill.list"))["backfills"]
    assert (shown["status"], shown["rows_processed"], shown["cost_spent_cents"]) == ("active", 0, 0)


async def test_a_connector_that_names_no_job_in_its_mail_is_told_where_to(services: Services) -> None:
    job_id = await create(services)
    async with client_of(services, CONNECTOR) as connector:
        work = await ask(connector, "backfill.poll", **POLL)
        report = {"job_id": job_id, "lease_token": work["lease_token"], **NOTHING, "rows_processed": 1}
        told = await refused(connector, "backfill.progress", **report)
        assert told["field"] == "rows_processed"
        assert "control.backfill_job_id" in str(told)
        tools = {each.name: each for each in (await connector.list_tools()).tools}
    assert "control.backfill_job_id" in str(tools["backfill.poll"].description)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "name", ["rows_processed", "rows_skipped", "cost_spent_cents", "cost_spent_micros", "batch_seq"]
)
def test_a_number_that_is_none_is_no_delta(name: str, number: float) -> None:
    """Over HTTP a body may say NaN, though JSON has no such number."""
    with pytest.raises(ValidationError):
        TOOLS_BY_NAME["backfill.progress"].arguments.model_validate({"job_id": str(new_id()), **NOTHING, name: number})


async def test_backfills_in_a_status_that_does_not_exist_are_not_listed_but_refused(services: Services) -> None:
    await create(services)
    async with client_of(services, DASHBOARD) as client:
        told = await refused(client, "backfill.list", status="canceled")
        assert (told["code"], told["field"]) == ("bad_input", "status")


async def test_of_10000_backfills_of_one_mailbox_a_hundred_are_accepted(services: Services) -> None:
    """Those beyond are refused without harm to others; so as many are asked for as show it."""
    async with client_of(services, DASHBOARD) as client:
        for _ in range(MOST_OPEN):
            await ask(client, "create_backfill_job", **NEW)
        for _ in range(scale(20, 9_900)):
            told = await refused(client, "create_backfill_job", **NEW)
            assert (told["code"], told["field"]) == ("bad_input", "endpoint_identity")
        await ask(client, "create_backfill_job", **{**NEW, "endpoint_identity": OTHER})
    assert len(await services.parts.backfills.list_jobs(500)) == MOST_OPEN + 1
    async with client_of(services, CONNECTOR) as connector:
        assert (await ask(connector, "backfill.poll", **POLL))["job_id"] is not None


async def test_a_stale_lease_and_an_illegal_move_have_codes_to_act_on(services: Services) -> None:
    job_id = await create(services)
    async with client_of(services, CONNECTOR) as connector, client_of(services, DASHBOARD) as dashboard:
        await ask(connector, "backfill.poll", **POLL)
        told = await refused(connector, "backfill.progress", job_id=job_id, lease_token=str(new_id()), **NOTHING)
        assert told["code"] == "lease_lost"
        assert (await ask(dashboard, "backfill.resume", job_id=job_id))["status"] == "active", "it is going already"
        for _ in "12":
            assert (await ask(dashboard, "backfill.pause", job_id=job_id))["status"] == "paused"
        for _ in "12":
            assert (await ask(dashboard, "backfill.cancel", job_id=job_id))["status"] == "cancelled"
        assert (await refused(dashboard, "backfill.resume", job_id=job_id))["code"] == "conflict"
        assert (await refused(dashboard, "backfill.pause", job_id=str(new_id())))["code"] == "not_found"


async def test_overlapping_backfills_are_safe_and_told(services: Services) -> None:
    first = await create(services)
    async with client_of(services, DASHBOARD) as client:
        assert (await ask(client, "create_backfill_job", **NEW))["overlaps"] == [first]
