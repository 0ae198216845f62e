"""Mail on demand: a search in the mailbox ingests what it finds, below live mail, and nothing is done with it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.compose.switchboard import dispatcher_of
from postroom.compose.tasks import background
from postroom.core.mail.ingestion import IngestionPolicy, parse_rule
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.operations.connectors import on_demand as manage
from postroom.operations.connectors.on_demand import MOST_PER_AGENT_AND_HOUR, OnDemand
from postroom.operations.people.audit import list_audit, next_entry
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.accounts import accounts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import account_of, keep_account
from postroom.store.people.audit import Signature
from postroom_sandbox.faults import Fault
from support.agent_client import AGENT, client_of
from support.answering import answering
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.patience import PATIENCE_S
from support.product import ENDPOINT, raw_mail

OTHER = "gmail:user:ben@example.com"
TOOL = "email_search_and_ingest"
SIGNED = Signature(new_id(), "cli:ada", "admin")


@pytest.fixture(autouse=True)
def nothing_is_stored_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dispatcher runs, so there is nothing to wait for."""
    monkeypatch.setattr(manage, "STORED_WITHIN", timedelta(0))


@pytest.fixture
async def setup(sqlite: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    async with gmail_setup(sqlite, clock, tmp_path / "state") as found:
        yield found


@contextlib.asynccontextmanager
async def connector_running(setup: GmailSetup) -> AsyncGenerator[None]:
    """The connector answers requests, as it does beside its rounds."""
    board = switchboard_within(build_server(setup.services, Principal(Role.CONNECTOR, ENDPOINT)))
    async with answering(board, setup.connector(), setup.client()), asyncio.timeout(PATIENCE_S):
        yield


async def call(setup: GmailSetup, principal: Principal = AGENT, **arguments: Any) -> Any:
    async with client_of(setup.services, principal) as client:
        return await client.call_tool(TOOL, arguments)


async def tiers(setup: GmailSetup) -> dict[str, tuple[str, str | None]]:
    """The tier and the kind of each message that waits."""
    leased = await setup.services.buffer.next("email", 100)
    found = [(each.tier, each.envelope["event"]) for each in leased]
    return {event["external_event_id"]: (tier, event["kind"]) for tier, event in found}


async def test_each_message_that_is_found_tells_what_became_of_it(setup: GmailSetup, clock: ManualClock):
    rule = parse_rule({"number": 1, "name": "no", "kind": "sender_domain", "value": "spam.example", "tier": "skip"})
    setup.policy = lambda: IngestionPolicy([rule])
    years_ago = clock() - timedelta(days=1000)
    known = setup.mailbox.deliver(raw_mail("visit 0")).id
    await setup.connector().sync()
    old = setup.mailbox.deliver(raw_mail("visit 1"), received_at=years_ago).id
    skipped = setup.mailbox.deliver(raw_mail("visit 2", sender="a@spam.example"), received_at=years_ago).id
    failing = setup.mailbox.deliver(raw_mail("visit 3"), received_at=years_ago).id
    setup.emulator.faults.order(Fault(503, path=failing, times=10))
    async with connector_running(setup):
        answer = (await call(setup, query="subject:visit")).structured_content
    assert (answer["state"], answer["found"], answer["new"], answer["more"]) == ("answered", 4, 1, False)
    ends = {each["provider_message_id"]: each for each in answer["messages"]}
    assert {id: each["outcome"] for id, each in ends.items()} == {
        known: "known",
        old: "new",
        skipped: "skipped",
        failing: "failed",
    }
    assert ends[old]["untrusted"]["subject"] == "visit 1"
    assert ends[skipped]["untrusted"]["reason"] == "an ingestion rule leaves it out"
    assert "503" in ends[failing]["untrusted"]["reason"]


async def test_the_answer_comes_with_the_ids_as_soon_as_the_mail_is_stored(
    setup: GmailSetup, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(manage, "STORED_WITHIN", timedelta(seconds=2 * PATIENCE_S))
    monkeypatch.setattr(manage, "LOOK_S", 2 * PATIENCE_S)
    await setup.connector().sync()
    setup.mailbox.deliver(raw_mail("visit"), received_at=clock() - timedelta(days=400))
    async with connector_running(setup), background(dispatcher_of(setup.services).run(), asyncio.Event()):
        answer = (await call(setup, query="subject:visit")).structured_content
    assert [each["message_id"] is not None for each in answer["messages"]] == [True]


async def test_old_mail_waits_with_the_lowest_live_mail_and_is_marked_and_new_mail_is_live(
    setup: GmailSetup, clock: ManualClock
):
    await setup.connector().sync()
    setup.contacts = lambda: frozenset({"mara@lindqvist.example"})
    old = setup.mailbox.deliver(
        raw_mail("visit", sender="mara@lindqvist.example"), received_at=clock() - timedelta(days=400)
    ).id
    fresh = setup.mailbox.deliver(raw_mail("visit", sender="mara@lindqvist.example")).id
    async with connector_running(setup):
        answer = (await call(setup, query="subject:visit", max_results=2)).structured_content
    assert [each["outcome"] for each in answer["messages"]] == ["new", "new"]
    assert await tiers(setup) == {old: ("default", "mail.on_demand"), fresh: ("high_priority", None)}


async def test_before_the_first_round_everything_that_it_will_read_is_live(setup: GmailSetup, clock: ManualClock):
    inside = setup.mailbox.deliver(raw_mail("visit"), received_at=clock() - timedelta(days=6)).id
    before = setup.mailbox.deliver(raw_mail("visit"), received_at=clock() - timedelta(days=8)).id
    async with connector_running(setup):
        await call(setup, query="subject:visit")
    kinds = {id: kind for id, (_, kind) in (await tiers(setup)).items()}
    assert kinds == {inside: None, before: "mail.on_demand"}


async def test_repeating_a_search_ingests_nothing_twice(setup: GmailSetup, clock: ManualClock):
    setup.mailbox.deliver(raw_mail("visit"), received_at=clock() - timedelta(days=400))
    async with connector_running(setup):
        first = (await call(setup, query="subject:visit")).structured_content
        second = (await call(setup, query="subject:visit")).structured_content
    assert [first["new"], second["new"]] == [1, 0]
    assert [each["outcome"] for each in second["messages"]] == ["known"]
    assert len(await tiers(setup)) == 1


async def test_every_call_is_audited_with_counts_and_without_words(setup: GmailSetup, clock: ManualClock):
    setup.mailbox.deliver(raw_mail("secretword"), received_at=clock() - timedelta(days=400))
    async with connector_running(setup):
        await call(setup, query="subject:secretword", max_results=7)
    account = await setup.services.database.run(account_of(ENDPOINT))
    result, begun = (await list_audit(setup.services.database, 10)).lines
    assert (begun.action, begun.object_id, begun.after) == ("mailbox.search", str(account.id), {"max_results": 7})
    assert result.action == "mailbox.search_result"
    assert result.after == {"new": 1, "known": 0, "skipped": 0, "gone": 0, "failed": 0}
    assert "secretword" not in str((begun, result))


async def test_an_agent_has_so_many_searches_an_hour_and_others_have_no_limit(setup: GmailSetup, clock: ManualClock):
    for _ in range(MOST_PER_AGENT_AND_HOUR):
        assert not (await call(setup, query="x", wait_s=0)).is_error
    refused = await call(setup, query="x", wait_s=0)
    assert refused.is_error
    assert "within the hour" in str(refused.content)
    assert not (await call(setup, Principal(Role.DASHBOARD), query="x", wait_s=0)).is_error
    clock.forward(3600)
    assert not (await call(setup, query="x", wait_s=0)).is_error


async def test_an_agent_bound_to_an_account_searches_no_other(setup: GmailSetup, clock: ManualClock):
    ben = await setup.services.database.run(keep_account(new_id(), "gmail", OTHER, "ben@example.com", clock()))
    bound = Principal(Role.AGENT, token_id=new_id(), account_id=ben.id)
    answer = (await call(setup, bound, query="x", wait_s=0)).structured_content
    assert answer["endpoint_identity"] == OTHER
    refused = await call(setup, bound, query="x", endpoint_identity=ENDPOINT, wait_s=0)
    unknown = await call(setup, bound, query="x", endpoint_identity="gmail:user:nobody@example.com", wait_s=0)
    assert refused.is_error
    assert "there is no mailbox" in str(refused.content)
    assert "there is no mailbox" in str(unknown.content)


async def test_with_several_mailboxes_one_must_be_named(setup: GmailSetup, clock: ManualClock):
    await setup.services.database.run(keep_account(new_id(), "gmail", OTHER, "ben@example.com", clock()))
    refused = await call(setup, query="x", wait_s=0)
    assert "endpoint_identity: is missing" in str(refused.content)
    assert OTHER in str(refused.content)
    assert not (await call(setup, query="x", endpoint_identity=OTHER, wait_s=0)).is_error


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": "x" * 1001}, "query"),
        ({"query": "a\nb"}, "query"),
        ({"query": "a\x1b[2Jb"}, "query"),
        ({"query": "a\0b"}, "query"),
        ({"query": "x", "max_results": 0}, "max_results"),
        ({"query": "x", "max_results": 51}, "max_results"),
        ({"query": "x", "wait_s": 61}, "wait_s"),
        ({"query": "x", "endpoint_identity": "gmail:user:nobody@example.com"}, "no mailbox"),
        ({"query": "x", "backfill_job_id": "y"}, "backfill_job_id"),
    ],
)
async def test_bad_input_is_refused_by_name_and_reaches_no_connector(
    setup: GmailSetup, arguments: dict[str, Any], field: str
):
    async with client_of(setup.services) as client:
        refused = await client.call_tool(TOOL, {"wait_s": 0, **arguments})
    assert refused.is_error
    assert field in str(refused.content)
    assert await setup.services.parts.requests.next(ENDPOINT) == []


async def test_without_a_connector_the_answer_says_so_and_what_to_do(setup: GmailSetup):
    answer = (await call(setup, query="x", wait_s=0)).structured_content
    assert (answer["state"], answer["connector"], answer["messages"]) == ("queued", "never", [])
    assert "postroom serve" in answer["remedy"]


async def test_an_account_that_is_not_in_use_is_not_searched(setup: GmailSetup, clock: ManualClock):
    database = setup.services.database
    account = await database.run(account_of(ENDPOINT))
    await database.run(accounts.pause_account(account.id, SIGNED, clock()))
    refused = await call(setup, query="x", wait_s=0)
    assert "is paused" in str(refused.content)
    assert "postroom account resume" in str(refused.content)


async def test_a_failure_of_the_connector_is_told_with_a_remedy(setup: GmailSetup):
    setup.mailbox.deliver(raw_mail("visit"))
    setup.emulator.faults.order(Fault(kind="reset", times=100))
    async with connector_running(setup):
        answer = (await call(setup, query="subject:visit")).structured_content
    assert answer["state"] == "failed"
    assert answer["untrusted"]["error"]
    assert answer["remedy"]


async def test_from_the_command_line_nothing_limits_how_often(setup: GmailSetup, clock: ManualClock):
    on_demand = OnDemand(setup.services.database, setup.services.parts.requests, clock)
    account = await on_demand.mailbox(None)
    for _ in range(MOST_PER_AGENT_AND_HOUR + 1):
        result = await on_demand.search_and_ingest(account, "x", 1, next_entry(SIGNED), timedelta(0))
        assert result.state == "queued"
