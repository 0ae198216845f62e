"""A thousand messages go through the whole product, and nothing of them is in its logs, metrics or traces."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
import structlog
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from prometheus_client.parser import text_string_to_metric_families

from postroom.compose.serve import run_product
from postroom.core import metrics
from postroom.core.metrics import MESSAGE_EVENT, Metric
from postroom.core.roles import Role
from postroom.core.rules.draft import RuleDraft
from postroom.core.tally import Gauges, Tally
from postroom.intake import dispatcher
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.intake import acceptance, history
from postroom.store.intake.ingestion_rules import remove_ingestion_rule
from postroom.store.jobs import jobs
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import create_token, mint
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from postroom.telemetry.exporter import exporting
from postroom.telemetry.tracing import add_event, span
from postroom.triage.handlers import classify
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.acting import keep_acting_account
from support.canaries import Canaries, Watch, watching
from support.canary_mail import STRANGER, UNDECIDABLE, UNREADABLE, raw_mail, thousand
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN

LETTERS, OVER_HTTP, OVER_MCP = 200, 450, 350


@pytest.fixture
def canaries() -> Canaries:
    known = Canaries()
    known.note("owner", OWNER)
    known.note("stranger", STRANGER)
    return known


@pytest.fixture
def watch(canaries: Canaries) -> Iterator[Watch]:
    with watching(canaries) as running:
        yield running


@pytest.fixture
def failing_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that nobody meant, whose words quote the mail."""
    read_mail, decide = getattr(dispatcher, "read_mail"), getattr(classify, "apply_rules")  # noqa: B009 - they are theirs

    def cannot_read(envelope: Any) -> Any:
        if UNREADABLE in envelope.payload.normalized_text:
            raise RuntimeError(f"cannot read {envelope}")
        return read_mail(envelope)

    def cannot_decide(message: Any, rules: Any, now: Any) -> Any:
        if UNDECIDABLE in message.facts.body_text:
            raise RuntimeError(f"cannot decide {message}")
        return decide(message, rules, now)

    monkeypatch.setattr(dispatcher, "read_mail", cannot_read)
    monkeypatch.setattr(classify, "apply_rules", cannot_decide)


@dataclass
class Running:
    """The product, as it is reached from outside."""

    database: Database
    canaries: Canaries
    address: str
    http: httpx2.AsyncClient

    async def token(self, role: str, identity: str | None = None) -> str:
        minted = mint(Role(role), identity)
        await self.database.run(create_token(minted.token, Signature(new_id(), "test", "admin"), wall_clock()))
        return self.canaries.note("token", minted.text)

    async def post(self, secret: str, content: object, **headers: str) -> httpx2.Response:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        given = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", **headers}
        return await self.http.post(f"{self.address}/v1/ingest", content=body, headers=given)

    @contextlib.asynccontextmanager
    async def client(self, secret: str) -> AsyncGenerator[Client]:
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
            Client(streamable_http_client(f"{self.address}/mcp", http_client=http)) as client,
        ):
            yield client


@contextlib.asynccontextmanager
async def running_product(
    database: Database, folder: Path, gmail: str, watch: Watch, canaries: Canaries
) -> AsyncGenerator[Running]:
    """Everything that `postroom serve` runs, in this process."""
    settings = Settings.model_validate(
        {
            "data_dir": folder,
            "disk_reserve_mib": 0,
            "web": {"port": 0, "sign_in": False},
            "account": {"email": OWNER},
            "gmail": {"base_url": gmail, "token": TOKEN, "poll_s": 0.1, "units_per_minute": 1_000_000},
            "telemetry": {"otlp_endpoint": watch.collector.address},
        }
    )
    await keep_acting_account(database, OWNER)
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    product = asyncio.create_task(run_product(settings, database, stop, address.set_result))
    try:
        await asyncio.wait((product, address), return_when=asyncio.FIRST_COMPLETED)
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            yield Running(database, canaries, await address, http)
    finally:
        stop.set()
        await product


async def hand_in_over_http(product: Running, secret: str, envelopes: Sequence[dict[str, Any]]) -> None:
    """One at a time by several at once, and in batches."""
    single = envelopes[:150]
    answers = await asyncio.gather(*(product.post(secret, each) for each in single))
    assert {answer.status_code for answer in answers} == {200, 400, 409}
    for at in range(150, len(envelopes), 100):
        answer = await product.post(secret, envelopes[at : at + 100])
        assert answer.status_code == 200, answer.text
        assert answer.json()["refused"] > 0


async def hand_in_over_mcp(client: Client, envelopes: Sequence[dict[str, Any]]) -> None:
    refused = [(await client.call_tool("ingest", {"envelope": each})).is_error for each in envelopes[:50]]
    assert any(refused)
    for at in range(50, len(envelopes), 100):
        answer = await client.call_tool("ingest.batch", {"items": envelopes[at : at + 100]})
        assert answer.structured_content["refused"] > 0


async def be_a_nuisance(product: Running, canaries: Canaries, secret: str, client: Client) -> None:
    """Whatever can be asked wrongly, with a canary in every place where one fits."""
    word = canaries.word
    forged = f"postroom_{'0' * 32}_{word('forged')}"
    for wrong in (word("bearer"), forged, canaries.note("secret", "x" * 43 + word("secret"))):
        assert (await product.post(wrong, {})).status_code == 401
    assert (await product.post(secret, f'{{"{word("brokenjson")}": '.encode())).status_code == 400
    assert (await product.post(secret, {}, Host=f"{word('host')}.example")).status_code == 421
    assert (await product.post(secret, {}, Origin=f"https://{word('origin')}.example")).status_code == 403
    assert (await product.http.get(f"{product.address}/{word('path')}?{word('query')}=1")).status_code == 404
    with pytest.raises(MCPError):
        await client.call_tool(word("tool"), {})
    lost = {"message_id": str(new_id()), "lease_token": str(new_id())}
    for tool, arguments in (
        ("queue.peek", {"queue": word("queue")}),
        ("queue.next", {"queue": "gateway", word("argument"): 1}),
        ("queue.nack", {**lost, "reason": word("reason")}),
        ("queue.ack", lost),
        ("queue.replay", {"queue": "gateway", "since": word("since")}),
        ("ingest", {"envelope": word("envelope")}),
    ):
        assert (await client.call_tool(tool, arguments)).is_error, tool


async def report_in(client: Client, canaries: Canaries, endpoint: str) -> None:
    word = canaries.word
    connector = {"connector_type": "webhook", "endpoint_identity": endpoint, "instance_id": word("instance")}
    report = {
        "schema_version": "connector.heartbeat.v1",
        "connector": connector,
        "status": {"state": "error", "uptime_s": 1.0, "error_message": f"cannot read {word('errormessage')}"},
        "counters": {word("counter"): 1},
        "checkpoint": {"cursor": word("cursor"), "updated_at": "2026-11-15T08:00:00Z"},
        "sent_at": "2026-11-15T08:00:00Z",
    }
    assert not (await client.call_tool("connector.heartbeat", {"report": report})).is_error
    foreign = report | {"connector": connector | {"endpoint_identity": word("foreignconnector")}}
    assert (await client.call_tool("connector.heartbeat", {"report": foreign})).is_error


async def consume(client: Client, canaries: Canaries) -> int:
    """An agent's day: everything is looked at, taken, mostly ended, sometimes given back, and replayed once."""
    taken, replayed = 0, False
    while True:
        await client.call_tool("queue.peek", {"queue": "gateway", "max": 100})
        answer = await client.call_tool("queue.next", {"queue": "gateway", "max": 100})
        messages = answer.structured_content["messages"]
        if not messages and replayed:
            return taken
        if not messages:
            since = {"queue": "gateway", "since": "2020-01-01T00:00:00Z", "max": 50}
            assert (await client.call_tool("queue.replay", since)).structured_content["replayed"] == 50
            replayed = True
            continue
        taken += len(messages)
        refs = [{name: each[name] for name in ("message_id", "lease_token")} for each in messages]
        back = refs[:2] if messages[0]["attempts"] == 1 else []
        if back:
            await client.call_tool("queue.nack", {"items": back, "reason": canaries.word("nackreason")})
        if refs[len(back) :]:
            await client.call_tool("queue.ack", {"items": refs[len(back) :]})


async def settled(database: Database, product: Running, letters: int) -> None:
    """Waits until so many letters of the mailbox were ingested, and every job was tried at least once."""
    changed = asyncio.Event()
    channels = (acceptance.CHANNEL, jobs.CHANNEL)
    subscriptions = [database.subscribe(each, lambda _message: changed.set()) for each in channels]
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                changed.clear()
                ingested = await ingested_by(product)
                states = await database.run(history.count_states("email"))
                live = [state for _, state in states if state in ("waiting", "leased")]
                fresh = [each for each in await database.run(jobs.list_jobs("queued", limit=2000)) if not each.attempts]
                busy = await database.run(jobs.list_jobs("running"))
                if not live and not fresh and not busy and ingested >= letters:
                    return
                await signalled(changed, 0.2)
    finally:
        for subscription in subscriptions:
            subscription.close()


async def ingested_by(product: Running) -> float:
    """The letters that the connector has handed in so far; other mail of the queue comes by other ways."""
    text = (await product.http.get(f"{product.address}/metrics")).text
    return sum(counted(text, metrics.TIER_ASSIGNED).values())


def counted(text: str, metric: Metric) -> dict[str, float]:
    """All of one metric, by its attributes joined."""
    return {
        ",".join(sample.labels[name] for name in metric.attributes): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == metric.prometheus_name
    }


def events_in(log: str) -> set[str]:
    return {json.loads(line)["event"] for line in log.splitlines()}


@pytest.mark.usefixtures("failing_work")
async def test_nothing_of_a_thousand_messages_gets_out(
    database: Database, tmp_path: Path, canaries: Canaries, watch: Watch, capfd: pytest.CaptureFixture[str]
):
    endpoint = canaries.word("endpoint")
    mailbox = Mailbox(OWNER, Random(1))
    emulator = Emulator(mailbox, TOKEN)
    emulator.faults.order(Fault(400, path="/modify", times=5))
    receipts = (new_id(), RuleDraft("receipts", {"subject_contains": "Receipt"}, "apply_label", {"label": "Receipts"}))
    await database.run(add_rules([receipts], wall_clock()))
    signed = Signature(new_id(), "test", "admin")
    await database.run(remove_ingestion_rule("list-unsubscribe", signed, wall_clock()))

    def deliver(numbers: range) -> None:
        for number in numbers:
            found = mailbox.deliver(raw_mail(canaries, number))
            canaries.note("gmail id", found.id)

    deliver(range(LETTERS // 2))
    async with (
        running_emulator(emulator) as gmail,
        running_product(database, tmp_path, gmail, watch, canaries) as product,
    ):
        connector, admin = await product.token("connector", endpoint), await product.token("admin")
        await hand_in_over_http(product, admin, list(thousand(canaries, endpoint, OVER_HTTP)))
        deliver(range(LETTERS // 2, LETTERS))
        async with product.client(connector) as bound, product.client(admin) as unbound:
            await hand_in_over_mcp(bound, list(thousand(canaries, endpoint, OVER_MCP)))
            await report_in(bound, canaries, endpoint)
            await be_a_nuisance(product, canaries, admin, unbound)
            assert await consume(unbound, canaries) > 100
        await settled(database, product, LETTERS)
        watch.scraped = (await product.http.get(f"{product.address}/metrics")).text
    assert watch.leaks(ENDPOINT) == {}
    assert canaries.found_in("".join(capfd.readouterr())) == set()
    assert_something_happened(watch)


def assert_something_happened(watch: Watch) -> None:
    """A silent product has no leaks either: what is seldom, and what goes wrong, was there."""
    text = watch.scraped
    assert sum(counted(text, metrics.MESSAGE_RECEIVED).values()) > 600
    assert {"bad_input", "conflict", "no_account"} <= {
        name for name, count in counted(text, metrics.MESSAGE_REFUSED).items() if count
    }
    again = counted(text, metrics.MESSAGE_DEDUPLICATED)
    assert {name.partition(",")[0] for name in again} == {"gateway", "email"}
    assert counted(text, metrics.ACCESS_REFUSED)["bad_token"] == 3
    assert counted(text, metrics.ACCESS_REFUSED)["identity"] > 1
    assert sum(counted(text, metrics.TIER_ASSIGNED).values()) == LETTERS
    assert "message.coalesced,gateway,P3" in counted(text, MESSAGE_EVENT)
    assert {"dispatcher.message_failed", "job.failed", "message.coalesced"} <= events_in(watch.logged)
    assert b"butlers.switchboard.message_received" in watch.sent_metrics
    assert b"message.queued" in watch.sent_spans
    assert b"job action.gmail" in watch.sent_spans


@pytest.mark.parametrize("way", ["log", "/metrics", "sent metrics", "sent spans"])
async def test_a_leak_is_found_wherever_it_is(canaries: Canaries, watch: Watch, way: str):
    tally, leak = Tally(), f"Re: {canaries.word('subject').upper()}!"
    settings = Settings.model_validate({"telemetry": {"otlp_endpoint": watch.collector.address}}).telemetry
    async with exporting(settings, tally, Gauges()) as exporter:
        with span("ingest"):
            add_event("message.queued", priority=leak if way == "sent spans" else "P1")
        structlog.get_logger().debug("mail.seen", note=leak if way == "log" else "")
        if "metrics" in way:
            tally.count(MESSAGE_EVENT, "message.queued", "email", leak)
        watch.scraped = exporter.metrics_text().decode() if way == "/metrics" else ""
    found = watch.leaks()
    assert way in found
    assert set(found) <= {way, "sent metrics"}
    assert {what.partition(":")[0] for words in found.values() for what in words} == {"subject"}


async def test_the_endpoint_of_a_connector_may_stand_in_metrics_and_nowhere_else(canaries: Canaries, watch: Watch):
    watch.scraped = f'tier{{endpoint_identity="{ENDPOINT}"}} 1'
    assert watch.leaks(ENDPOINT) == {}
    watch.scraped = f'tier{{sender="{OWNER}"}} 1'
    structlog.get_logger().info("connector.started", endpoint=ENDPOINT)
    assert set(watch.leaks(ENDPOINT)) == {"log", "/metrics"}
