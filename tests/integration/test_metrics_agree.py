"""After a known set of messages, Prometheus and an OTLP collector read the same correct numbers."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as OtlpMetric
from prometheus_client.parser import text_string_to_metric_families

from postroom.core import metrics
from postroom.core.errors import BadInput, Conflict
from postroom.core.metrics import METRICS, Metric
from postroom.core.roles import Principal, Role
from postroom.core.tally import Gauges
from postroom.intake.buffer import Delivery
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.operations.backfill.keeper import Keeper
from postroom.settings.sections import TelemetrySettings
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.engine.database import Database
from postroom.store.intake.inbox import LeaseRef
from postroom.telemetry.exporter import Exporter
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.clocks import ManualClock
from support.otlp import OtlpCollector, attributes, running_collector
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.switchboard import envelope, mail, open_account, services_on

NAMES = {
    "butlers.connector.gmail.priority_tier_assigned",
    "butlers.switchboard.queue.dequeue_by_tier",
    "butlers.switchboard.queue_depth",
    "butlers.switchboard.message_received",
    "butlers.switchboard.message_deduplicated",
    "butlers.switchboard.ingress_accept_latency",
    "butlers.switchboard.lifecycle_transition",
    "butlers.store.database_size",
    "butlers.jobs.count",
    "butlers.actions.count",
    "butlers.approvals.oldest_wait",
    "butlers.model.spend_today",
    "butlers.model.calls_today",
    "butlers.buffer.process_latency_ms",
}
TAKEN_IN = (metrics.TIER_1_INGESTED, metrics.TIER_2_METADATA, metrics.TIER_3_SKIPPED)
Values = dict[tuple[str, ...], float]

# By the attributes' names in the order given; what is not there was never counted.
EXPECTED: dict[Metric, tuple[tuple[str, ...], Values]] = {
    metrics.MESSAGE_RECEIVED: (
        ("channel", "queue_name", "policy_tier"),
        {
            ("email", "email", "high_priority"): 1,
            ("email", "email", "interactive"): 1,
            ("email", "email", "default"): 4,
            ("telegram", "gateway", "P0"): 4,
            ("webhook", "gateway", "P1"): 1,
            ("webhook", "gateway", "P2"): 1,
            ("webhook", "gateway", "P3"): 4,
        },
    ),
    metrics.MESSAGE_DEDUPLICATED: (
        ("queue_name", "reason"),
        {("email", "event"): 1, ("email", "key"): 1, ("email", "upgrade"): 1, ("gateway", "text"): 1},
    ),
    metrics.MESSAGE_REFUSED: (("reason",), {("bad_input",): 1, ("conflict",): 1, ("no_account",): 0, ("no_room",): 0}),
    metrics.DEQUEUE_BY_TIER: (
        ("policy_tier", "queue_name", "starvation_override"),
        {
            ("P0", "gateway", "false"): 4,
            ("P1", "gateway", "true"): 1,
            ("P2", "gateway", "false"): 2,
            ("P3", "gateway", "false"): 1,
        },
    ),
    metrics.LIFECYCLE_TRANSITION: (
        ("queue_name", "from_state", "to_state"),
        {
            ("email", "new", "waiting"): 6,
            ("gateway", "new", "waiting"): 10,
            ("gateway", "waiting", "leased"): 8,
            ("gateway", "waiting", "coalesced"): 3,
            ("gateway", "waiting", "auto_acked"): 1,
            ("gateway", "leased", "waiting"): 1,
            ("gateway", "leased", "done"): 7,
        },
    ),
    metrics.MESSAGE_EVENT: (
        ("event", "queue_name", "priority"),
        {
            ("message.queued", "email", "high_priority"): 1,
            ("message.queued", "email", "interactive"): 1,
            ("message.queued", "email", "default"): 4,
            ("message.queued", "gateway", "P0"): 4,
            ("message.queued", "gateway", "P1"): 1,
            ("message.queued", "gateway", "P2"): 1,
            ("message.queued", "gateway", "P3"): 4,
            ("message.promoted", "gateway", "P2"): 1,
            ("message.coalesced", "gateway", "P3"): 3,
            ("message.auto_acked", "gateway", "P3"): 1,
        },
    ),
    metrics.QUEUE_DEPTH: (
        ("queue_name", "policy_tier", "state"),
        {
            **{
                ("email", tier, state): 0
                for tier in ("high_priority", "interactive", "default", "history")
                for state in ("waiting", "leased")
            },
            **{("gateway", tier, state): 0 for tier in ("P0", "P1", "P2", "P3") for state in ("waiting", "leased")},
            ("email", "high_priority", "waiting"): 1,
            ("email", "interactive", "waiting"): 1,
            ("email", "default", "waiting"): 4,
        },
    ),
    # Of histograms, how many were measured.
    metrics.ACCEPT_LATENCY: (("queue_name",), {("email",): 8, ("gateway",): 11}),
    metrics.PROCESS_LATENCY: (
        ("queue_name", "policy_tier"),
        {("gateway", "P0"): 4, ("gateway", "P1"): 1, ("gateway", "P2"): 1, ("gateway", "P3"): 1},
    ),
}
# What took how long, in milliseconds, by the hands of the clock.
PROCESS_MS: Values = {("gateway", "P0"): 0, ("gateway", "P1"): 0, ("gateway", "P2"): 301_000, ("gateway", "P3"): 0}
TOLD = sorted(
    [
        *[("message.queued", "high_priority", "email", 0.0)],
        *[("message.queued", "interactive", "email", 0.0)],
        *[("message.queued", "default", "email", 0.0)] * 4,
        *[("message.queued", "P0", "gateway", 0.0)] * 4,
        *[("message.queued", tier, "gateway", 0.0) for tier in ("P1", "P2")],
        *[("message.queued", "P3", "gateway", 0.0)] * 4,
        *[("message.coalesced", "P3", "gateway", 2_000.0)] * 3,
        ("message.auto_acked", "P3", "gateway", 61_000.0),
        ("message.promoted", "P2", "gateway", 301_000.0),
    ]
)


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with running_collector() as running:
        yield running


async def morning(services: Services, clock: ManualClock) -> None:
    """Every way that a message can come and go."""
    await mail_arrives(services)
    intake, buffer = services.intake, services.buffer
    await intake.ingest_batch([envelope(f"noise-{number}", event={"kind": "test.run"}) for number in range(3)])
    clock.forward(2)
    await acked(services, await buffer.next("gateway", 5))
    await intake.ingest(envelope("forgotten", event={"kind": "test.run"}))
    clock.forward(61)
    await buffer.sweep()
    talk = {"channel": "telegram", "provider": "telegram", "endpoint_identity": "telegram:bot"}
    await intake.ingest_batch([envelope(f"talk-{number}", source=talk) for number in range(4)])
    await intake.ingest(envelope("failed", event={"kind": "deploy.failed"}))
    await intake.ingest(envelope("done"))
    said_again = envelope("done") | {"event": envelope("said-again")["event"]}
    assert (await intake.ingest(said_again)).duplicate
    *taken, last = await buffer.next("gateway", 6)
    assert [each.tier for each in taken] == ["P0", "P0", "P0", "P1", "P0"]
    await acked(services, taken)
    assert await buffer.nack([LeaseRef(last.message_id, last.lease_token)], "not now") == [None]
    clock.forward(301)
    [promoted] = await buffer.next("gateway", 6)
    assert (promoted.tier, promoted.promoted_from) == ("P1", "P2")
    await acked(services, [promoted])


async def mail_arrives(services: Services) -> None:
    await open_account(services)
    intake = services.intake
    for number, tier in enumerate(("high_priority", "interactive", "default")):
        await intake.ingest(mail(number, control={"policy_tier": tier}))
    assert (await intake.ingest(mail(2))).duplicate
    for _ in range(2):
        await intake.ingest(mail("keyed", control={"idempotency_key": "key"}))
    with pytest.raises(Conflict):
        await intake.ingest(mail("other", control={"idempotency_key": "key"}))
    with pytest.raises(BadInput):
        await intake.ingest({})
    gist: dict[str, Any] = {"payload": {"raw": None}, "control": {"ingestion_tier": "metadata"}}
    assert not (await intake.ingest(mail("gist", **gist))).duplicate
    assert (await intake.ingest(mail("gist"))).duplicate


async def acked(services: Services, deliveries: list[Delivery]) -> None:
    refs = [LeaseRef(each.message_id, each.lease_token) for each in deliveries]
    assert await services.buffer.ack(refs) == [None for _ in refs]


@dataclass
class Readings:
    """What was read when all was over: by Prometheus, and by the collector."""

    text: str = ""
    sent: dict[str, OtlpMetric] = field(default_factory=dict[str, OtlpMetric])


@asynccontextmanager
async def read(services: Services, collector: OtlpCollector) -> AsyncGenerator[Readings]:
    """Measures and reads when the block ends. The collector is sent everything once, then."""
    gauges, readings, keep = Gauges(), Readings(), timedelta(days=30)
    settings = TelemetrySettings.model_validate({"otlp_endpoint": collector.address})
    exporter = Exporter(settings, services.tally, gauges, metrics_every_s=3600)
    try:
        yield readings
        parts = (services.database, services.queues, services.buffer, gauges)
        await Keeper(*parts, keep=keep, keep_rollups=keep, clock=services.clock).measure()
        readings.text = exporter.metrics_text().decode()
    finally:
        await exporter.close(within_s=20)
    readings.sent = collector.next_metrics()


def scraped(text: str, metric: Metric, names: tuple[str, ...], suffix: str = "") -> Values:
    """What Prometheus reads of one metric; of a histogram, its counts or sums."""
    ending = suffix or ("_count" if metric.kind == "histogram" else "")
    wanted = metric.prometheus_name + ending
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == wanted:
                assert set(sample.labels) == set(names)
                found[tuple(sample.labels[name] for name in names)] = sample.value
    return found


def collected(metric: OtlpMetric, names: tuple[str, ...]) -> Values:
    """What the collector got of one metric."""
    found: Values = {}
    for point in (*metric.sum.data_points, *metric.gauge.data_points):
        found[_by_place(point, names)] = point.as_int or point.as_double
    for point in metric.histogram.data_points:
        found[_by_place(point, names)] = point.count
    return found


def _by_place(point: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    given = attributes(point)
    assert set(given) == set(names)
    return tuple(given[name] for name in names)


async def test_the_numbers_of_a_known_morning_are_right_wherever_they_are_read(
    database: Database, clock: ManualClock, collector: OtlpCollector
):
    services = services_on(database, clock)
    async with read(services, collector) as found:
        await morning(services, clock)
    text = found.text
    for metric, (names, values) in EXPECTED.items():
        assert scraped(text, metric, names) == values, metric.name
        assert collected(found.sent[metric.name], names) == values, metric.name
    latency, names = metrics.PROCESS_LATENCY, EXPECTED[metrics.PROCESS_LATENCY][0]
    assert scraped(text, latency, names, "_sum") == PROCESS_MS
    took = scraped(text, metrics.ACCEPT_LATENCY, ("queue_name",), "_sum")
    assert all(0 < seconds < 60 for seconds in took.values())


async def test_what_happens_to_messages_is_reported_in_spans_with_priority_and_wait(
    database: Database, clock: ManualClock, collector: OtlpCollector
):
    services = services_on(database, clock)
    async with read(services, collector):
        await morning(services, clock)
    spans = await asyncio.to_thread(collector.spans)
    told: list[tuple[str, str, str, float]] = []
    for span in spans:
        for event in span.events:
            given = attributes(event)
            assert set(given) - {"count"} == {"priority", "queue", "wait_ms"}
            told.append((event.name, given["priority"], given["queue"], given["wait_ms"]))
    assert sorted(told) == TOLD
    assert {span.name for span in spans if span.events} == {"ingest", "ingest.batch", "queue.next", "queue.sweep"}


async def test_tiers_of_mail_are_counted_by_the_connector_with_the_rule_that_gave_them(
    database: Database, clock: ManualClock, collector: OtlpCollector, tmp_path: Path
):
    services = services_on(database, clock)
    await open_account(services, OWNER)
    mailbox = Mailbox(OWNER, Random(1))
    mailbox.deliver(raw_mail("to a friend", sender=OWNER, Message_ID="<sent@lindqvist.example>"), ["SENT"])
    for number in range(2):
        mailbox.deliver(raw_mail(f"reply {number}", In_Reply_To="<sent@lindqvist.example>"))
    mailbox.deliver(raw_mail("to you"))
    for number in range(3):
        mailbox.deliver(raw_mail(f"newsletter {number}", List_Unsubscribe="<https://store.example/off>"))

    async def token() -> str:
        return TOKEN

    async with (
        read(services, collector) as found,
        running_emulator(Emulator(mailbox, TOKEN)) as address,
        httpx2.AsyncClient(timeout=PATIENCE_S) as http,
    ):
        live = GmailConnector(
            GmailClient(http, address, token),
            switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT))),
            Checkpoint(tmp_path / "checkpoint.json"),
            email=OWNER,
            endpoint_identity=ENDPOINT,
            clock=clock,
            tally=services.tally,
        )
        assert await live.sync() == 6
        assert await live.sync() == 0
    names = ("provider", "endpoint_identity", "policy_tier", "assignment_rule")
    values = {
        ("gmail", ENDPOINT, "high_priority", "reply_to_outbound"): 2,
        ("gmail", ENDPOINT, "interactive", "direct_correspondence"): 1,
        ("gmail", ENDPOINT, "default", "fallback_default"): 3,
    }
    assert scraped(found.text, metrics.TIER_ASSIGNED, names) == values
    assert collected(found.sent[metrics.TIER_ASSIGNED.name], names) == values


def test_the_names_are_those_that_dashboards_are_built_on():
    assert {metric.name for metric in METRICS} >= NAMES
    assert all(metric.name.startswith("butlers.") for metric in METRICS)
    covered = {metric.name for metric in EXPECTED} | {metrics.TIER_ASSIGNED.name}
    elsewhere = {metrics.ACCESS_REFUSED, metrics.CONNECTION_REFUSED, metrics.KNOWN_CONTACT_DEGRADED, *TAKEN_IN}
    elsewhere |= {metrics.LOG_SIZE, metrics.DATABASE_SIZE, metrics.JOBS, metrics.ACTIONS, metrics.APPROVAL_AGE}
    elsewhere |= {metrics.MODEL_SPEND, metrics.MODEL_CALLS}
    elsewhere |= {metric for metric in METRICS if metric.name.startswith(("butlers.outbound.", "butlers.submission."))}
    assert {metric.name for metric in METRICS} - covered == {metric.name for metric in elsewhere}
