"""Requests to connectors from both sides: waiting callers are woken, and nothing stays leased for one that left."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from mcp.client import Client

from postroom.core.errors import BadInput, LeaseLost, NotFound
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests
from postroom.sources import mcp_switchboard
from postroom.sources.mcp_switchboard import switchboard_at, switchboard_within
from postroom.sources.request_server import RequestServer
from postroom.store.engine.database import Database, Dialect, Subscription, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import Reply, load_request
from postroom.store.mail.mail import keep_account
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.switchboard import served, services_on

ENDPOINT, OTHER = "gmail:user:ada@example.com", "gmail:user:ben@example.com"
LONG = timedelta(seconds=60)
T = TypeVar("T")


class Watched:
    """The database, telling when a verb has been run, and holding back its answer while it is told to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.dialect: Dialect = database.dialect
        self.close = database.close
        self.ran: dict[str, asyncio.Event] = {}
        self.held: set[str] = set()
        self.go_on = asyncio.Event()

    async def run(self, transaction: Transaction[T]) -> T:
        result = await self._database.run(transaction)
        self.after(transaction.name).set()
        if transaction.name in self.held:
            await self.go_on.wait()
        return result

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    def after(self, verb: str) -> asyncio.Event:
        return self.ran.setdefault(verb, asyncio.Event())


@pytest.fixture
async def watched(database: Database, clock: ManualClock) -> Watched:
    await database.run(keep_account(new_id(), "gmail", ENDPOINT, "ada@example.com", clock()))
    return Watched(database)


@pytest.fixture
async def requests(watched: Watched, clock: ManualClock) -> AsyncIterator[ConnectorRequests]:
    """Polls are too rare to help a test."""
    made = ConnectorRequests(watched, clock, poll_s=600)
    async with asyncio.timeout(PATIENCE_S):
        yield made
        await made.close()


async def test_a_connector_that_waits_is_woken_by_a_request(requests: ConnectorRequests, watched: Watched):
    waiting = asyncio.create_task(requests.next(ENDPOINT, 1, LONG))
    await watched.after("any_request_due").wait()
    asked = await requests.ask(ENDPOINT, "sync_now", {"deep": True})
    [leased] = await waiting
    assert (leased.id, leased.kind, leased.arguments) == (asked.id, "sync_now", {"deep": True})


async def test_whoever_asks_is_woken_by_the_answer(requests: ConnectorRequests, watched: Watched):
    asking = asyncio.create_task(requests.ask(ENDPOINT, "sync_now", {}, LONG))
    [leased] = await requests.next(ENDPOINT, 1, LONG)
    await watched.after("load_request").wait()
    await requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply({"ingested": 2}))
    view = await asking
    assert (view.id, view.state, view.result) == (leased.id, "answered", {"ingested": 2})


async def test_whoever_asks_is_told_of_a_failure_in_plain_words(requests: ConnectorRequests):
    asking = asyncio.create_task(requests.ask(ENDPOINT, "sync_now", {}, LONG))
    [leased] = await requests.next(ENDPOINT, 1, LONG)
    await requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply(error="the mailbox\nis \0 paused " + "x" * 900))
    view = await asking
    assert view.state == "failed"
    assert (view.error or "").startswith("the mailbox is \ufffd paused xxx")
    assert len(view.error or "") <= 500


async def test_two_who_ask_for_the_same_get_the_same_answer(requests: ConnectorRequests, watched: Watched):
    first = await requests.ask(ENDPOINT, "sync_now", {})
    watched.ran.clear()
    asking = asyncio.create_task(requests.ask(ENDPOINT, "sync_now", {}, LONG))
    await watched.after("load_request").wait()
    [leased] = await requests.next(ENDPOINT, 10, LONG)
    await requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply({}))
    second = await asking
    assert (first.id, first.state) == (second.id, "queued")
    assert second.state == "answered"


async def test_a_wait_that_is_over_says_how_far_it_got(requests: ConnectorRequests):
    assert (await requests.ask(ENDPOINT, "sync_now", {}, timedelta(milliseconds=1))).state == "queued"
    await requests.next(ENDPOINT)
    assert await requests.next(ENDPOINT, 1, timedelta(milliseconds=1)) == []


async def test_a_connector_that_hangs_up_while_it_waits_takes_nothing_with_it(
    requests: ConnectorRequests, watched: Watched
):
    left = asyncio.Event()
    waiting = asyncio.create_task(requests.next(ENDPOINT, 1, LONG, left))
    await watched.after("any_request_due").wait()
    left.set()
    assert await waiting == []
    asked = await requests.ask(ENDPOINT, "sync_now", {})
    assert [each.id for each in await requests.next(ENDPOINT)] == [asked.id]


async def test_what_was_leased_in_the_moment_of_hanging_up_is_given_back(requests: ConnectorRequests, watched: Watched):
    asked = await requests.ask(ENDPOINT, "sync_now", {})
    left = asyncio.Event()
    watched.held.add("lease_requests")
    waiting = asyncio.create_task(requests.next(ENDPOINT, 1, LONG, left))
    await watched.after("lease_requests").wait()
    left.set()
    watched.go_on.set()
    assert await waiting == []
    assert (await watched.run(load_request(asked.id))).state == "queued"


async def test_a_call_that_is_canceled_in_the_middle_leaves_nothing_leased(
    requests: ConnectorRequests, watched: Watched
):
    asked = await requests.ask(ENDPOINT, "sync_now", {})
    watched.held.add("lease_requests")
    waiting = asyncio.create_task(requests.next(ENDPOINT, 1, LONG))
    await watched.after("lease_requests").wait()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert (await watched.run(load_request(asked.id))).state == "leased"
    watched.go_on.set()
    await requests.close()
    assert (await watched.run(load_request(asked.id))).state == "queued"


async def test_a_connector_with_nothing_to_do_only_reads(requests: ConnectorRequests, watched: Watched):
    assert await requests.next(ENDPOINT) == []
    assert "lease_requests" not in watched.ran


async def test_a_connector_that_never_was_is_not_asked(requests: ConnectorRequests):
    with pytest.raises(NotFound, match=r"connector\.list"):
        await requests.ask(OTHER, "sync_now", {})


async def test_what_is_invalid_is_refused(requests: ConnectorRequests):
    await requests.ask(ENDPOINT, "sync_now", {})
    [leased] = await requests.next(ENDPOINT)
    calls: list[Any] = [
        requests.next(ENDPOINT, 0),
        requests.next(ENDPOINT, 11),
        requests.next(ENDPOINT, 1, timedelta(seconds=61)),
        requests.ask(ENDPOINT, "sync_now", {}, timedelta(seconds=-1)),
        requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply()),
        requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply({}, "both")),
    ]
    for call in calls:
        with pytest.raises(BadInput):
            await call
    await requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply({}))


@pytest.mark.parametrize("way", ["http", "in memory"])
async def test_a_dashboard_asks_and_the_connector_answers(
    database: Database, watched: Watched, clock: ManualClock, way: str, monkeypatch: pytest.MonkeyPatch
):
    """From tool to tool, each side as it does it in earnest."""
    monkeypatch.setattr(mcp_switchboard, "TIMEOUT_S", PATIENCE_S)
    services, stop = services_on(database, clock), asyncio.Event()

    async def sync(arguments: Any) -> dict[str, int]:
        return {"ingested": 3}

    async with asyncio.timeout(PATIENCE_S), served(services) as running:
        token = await running.token("connector", ENDPOINT)
        async with switchboard_at(f"{running.address}/mcp", token) as afar:
            within = switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT)))
            setup = RequestServer(afar if way == "http" else within, {"sync_now": sync})
            answering = asyncio.create_task(setup.run(stop))
            async with running.client(await running.token("dashboard"), "2026-07-28") as dashboard:
                asked = await dashboard.call_tool("connector.request", {"endpoint_identity": ENDPOINT, "wait_s": 50})
                while asked.structured_content["state"] in ("queued", "leased"):
                    asked = await dashboard.call_tool(
                        "connector.request", {"endpoint_identity": ENDPOINT, "wait_s": 50}
                    )
            answering.cancel()
            await asyncio.wait({answering})
    assert (asked.structured_content["state"], asked.structured_content["result"]) == ("answered", {"ingested": 3})


ASKED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "sync_now"}, {}),
    ({"kind": "ingest", "message_ids": ["18c0", "18c0", "18c1"]}, {"message_ids": ["18c0", "18c1"]}),
    ({"kind": "estimate", "query": " in:inbox "}, {"query": "in:inbox"}),
    ({"kind": "search", "query": "from:mara"}, {"query": "from:mara", "max": 20}),
    ({"kind": "search", "query": "from:mara", "max": 3}, {"query": "from:mara", "max": 3}),
]
NOT_ASKED: list[tuple[dict[str, Any], str]] = [
    ({"query": "x"}, "query"),
    ({"kind": "ingest"}, "message_ids"),
    ({"kind": "ingest", "message_ids": ["../18c0"]}, "message_ids.0"),
    ({"kind": "estimate"}, "query"),
    ({"kind": "estimate", "query": "x", "max": 3}, "max"),
    ({"kind": "search", "query": "a\nb"}, "query"),
    ({"kind": "search", "query": "x", "max": 51}, "max"),
    ({"kind": "delete"}, "kind"),
]


async def test_every_kind_can_be_asked_for_and_what_is_invalid_reaches_no_connector(
    database: Database, watched: Watched, clock: ManualClock
):
    services = services_on(database, clock)
    async with asyncio.timeout(PATIENCE_S), Client(build_server(services, Principal(Role.DASHBOARD))) as dashboard:
        for given, _ in ASKED:
            answer = await dashboard.call_tool("connector.request", {"endpoint_identity": ENDPOINT, **given})
            assert answer.structured_content["state"] == "queued"
        for given, field in NOT_ASKED:
            refused = await dashboard.call_tool("connector.request", {"endpoint_identity": ENDPOINT, **given})
            assert refused.is_error
            assert f"{field}:" in str(refused.content), given
    leased = await services.parts.requests.next(ENDPOINT, 10)
    assert [(each.kind, each.arguments) for each in leased] == [(given["kind"], passed) for given, passed in ASKED]


async def test_a_lease_that_is_lost_is_reported_to_the_connector(
    database: Database, watched: Watched, clock: ManualClock
):
    services = services_on(database, clock)
    switchboard = switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT)))
    await services.parts.requests.ask(ENDPOINT, "sync_now", {})
    [request] = await switchboard.requests(timedelta(0))
    assert (request.kind, request.expires_in) == ("sync_now", timedelta(minutes=5))
    await switchboard.fail(request, "no")
    with pytest.raises(LeaseLost):
        await switchboard.reply(request, {})
