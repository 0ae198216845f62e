"""Mail whose key or sender was misused by somebody else still arrives, through the real connector."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from postroom.core.mail.tiers import Known
from postroom.core.queue.envelope import parse_envelope
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.envelopes import prepare
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.resources import Body, GmailPart, Header, Message
from postroom.operations.jobs.queues import peek
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.sources.runtime import ConnectorHealth
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.switchboard import envelope, mail, open_account, services_on


@dataclass
class Watch:
    """A mailbox, and the connector that watches it."""

    mailbox: Mailbox
    live: GmailConnector
    health: ConnectorHealth
    services: Services

    async def waiting(self) -> list[dict[str, Any]]:
        return [each.envelope for each in await peek(self.services.database, self.services.queues, "email", 100)]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    yield opened
    await opened.close()


@contextlib.asynccontextmanager
async def watching(database: Database, clock: ManualClock, folder: Path) -> AsyncGenerator[Watch]:
    mailbox, services, health = Mailbox(OWNER, Random(1)), services_on(database, clock), ConnectorHealth(clock)
    await open_account(services, OWNER)

    async def token() -> str:
        return TOKEN

    async with running_emulator(Emulator(mailbox, TOKEN)) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        live = GmailConnector(
            GmailClient(http, address, token),
            switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT))),
            Checkpoint(folder / "checkpoint.json"),
            email=OWNER,
            endpoint_identity=ENDPOINT,
            clock=clock,
            health=health,
        )
        yield Watch(mailbox, live, health, services)


async def test_mail_whose_key_stands_for_something_else_arrives_without_its_key(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with watching(database, clock, tmp_path) as watch:
        ids = [watch.mailbox.deliver(raw_mail(f"Subject {number}")).id for number in range(3)]
        taken = {"idempotency_key": f"gmail:{ENDPOINT}:{ids[1]}"}
        await watch.services.intake.ingest(envelope("thief", control=taken))
        assert await watch.live.sync() == 3
        arrived = {each["event"]["external_event_id"]: each for each in await watch.waiting()}
        assert set(arrived) == set(ids)
        assert arrived[ids[1]]["control"]["idempotency_key"] is None
        assert arrived[ids[0]]["control"]["idempotency_key"] == f"gmail:{ENDPOINT}:{ids[0]}"
        assert (watch.health.counters["ingested"], watch.health.counters["refused"]) == (3, 0)


async def test_it_is_delivered_once_however_often_it_is_looked_at(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with watching(database, clock, tmp_path) as watch:
        id = watch.mailbox.deliver(raw_mail("Subject")).id
        taken = {"idempotency_key": f"gmail:{ENDPOINT}:{id}"}
        await watch.services.intake.ingest(envelope("thief", control=taken))
        assert await watch.live.sync() == 1
        (tmp_path / "checkpoint.json").unlink()
        assert await watch.live.sync() == 0
        assert len(await watch.waiting()) == 1


async def test_an_event_that_is_someone_elses_altogether_is_noted_and_holds_up_nobody(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with watching(database, clock, tmp_path) as watch:
        ids = [watch.mailbox.deliver(raw_mail(f"Subject {number}")).id for number in range(3)]
        source = {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT}
        forged = mail(source=source, event={"external_event_id": ids[1]}, sender={"identity": "mallory@example.com"})
        await watch.services.intake.ingest(forged)
        assert await watch.live.sync() == 2
        assert {each["event"]["external_event_id"] for each in await watch.waiting()} == set(ids)
        assert watch.health.counters["refused"] == 1


@pytest.mark.parametrize(
    "sender",
    [
        "a\x01b@example.com",
        "a\tb@example.com",
        "a\x7f@example.com",
        '"a\r\n b"@example.com',
        "\x00@example.com",
        "\x1f",
    ],
    ids=ascii,
)
def test_control_characters_of_a_sender_are_replaced(sender: str) -> None:
    message = Message(
        "m1",
        "t1",
        frozenset({"INBOX"}),
        1,
        datetime(2026, 11, 15, tzinfo=UTC),
        100,
        "snippet",
        GmailPart("", "text/plain", "", (Header("From", sender), Header("Subject", "x")), Body(2, b"hi"), ()),
    )
    known = Known(frozenset(), frozenset(), set())
    made = prepare(message, ENDPOINT, known, datetime(2026, 11, 15, tzinfo=UTC))
    identity = parse_envelope(made.envelope).sender.identity
    assert identity.isprintable()
    assert identity.strip() == identity != ""
