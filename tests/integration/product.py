"""The whole road in one process, on a real emulator over a loopback socket: everything but the page."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from postroom.act.executor import Executor
from postroom.act.undo import UndoService
from postroom.compose.gate import MailboxGate
from postroom.connectors.checkpoint import Checkpoint
from postroom.connectors.gmail.live import GmailConnector
from postroom.connectors.mail.knowledge import Knowledge
from postroom.connectors.mcp_switchboard import switchboard_within
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.ingestion import IngestionPolicy
from postroom.core.mail.message import read_mail
from postroom.core.queue.queues import EMAIL
from postroom.core.roles import Principal, Role
from postroom.gmail.carrier import GmailCarrier
from postroom.gmail.client import GmailClient
from postroom.gmail.mailbox import GmailMailbox
from postroom.gmail.transport import CheckedClient
from postroom.handlers.action_gmail import ActionGmail
from postroom.handlers.classify import Adviser, Classify
from postroom.handlers.outbound_send import OutboundSend
from postroom.handlers.undo_action import UndoAction
from postroom.handlers.unsnooze_gmail import UnsnoozeGmail
from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.outbound.delivery import Sender
from postroom.outbound.pace import Pace
from postroom.store import decisions, feed, inbox, jobs, mail
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.new_jobs import new_job
from postroom.store.rules import NewRule, add_rules
from postroom.switchboard.dispatcher import Dispatcher
from postroom.switchboard.intake import Intake
from postroom.web.mcp_server import build_server
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.mailboxes import always, given
from support.patience import PATIENCE_S
from support.switchboard import services_on

OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
TOKEN = "sandbox-token"
# Attempts follow each other at once, and sent mail is looked for without long waits.
SENDING = Pace(first=timedelta(milliseconds=20), poll=timedelta(milliseconds=50), looks=(0.0, 0.01))


@dataclass
class Product:
    """The running parts, and what a test asks of them."""

    database: Database
    mailbox: Mailbox
    live: GmailConnector
    address: str
    patience_s: float
    emulator: Emulator

    async def rule(self, name: str, conditions: dict[str, Any], action: str, **parameters: str) -> None:
        rule = NewRule(new_id(), name, "", conditions, action, parameters)
        await self.database.run(add_rules([rule], wall_clock()))

    async def settled(self, count: int) -> list[feed.FeedRow]:
        """Waits until so many messages are decided and nothing is left to do; returns them, oldest first."""
        return await self._until(count, _is_settled)

    async def until_decided(self, count: int) -> list[feed.FeedRow]:
        """Waits until so many messages are decided, whatever is left to do; returns them, oldest first."""
        return await self._until(count, lambda row: row.action_type is not None)

    async def _until(self, count: int, holds: Callable[[feed.FeedRow], bool]) -> list[feed.FeedRow]:
        changed = asyncio.Event()
        channels = (decisions.CHANNEL, jobs.CHANNEL)
        subscriptions = [self.database.subscribe(each, lambda _message: changed.set()) for each in channels]
        try:
            async with asyncio.timeout(self.patience_s):
                while True:
                    changed.clear()
                    rows = await self.database.run(feed.recent_messages(10_000))
                    done = [row for row in rows if holds(row)]
                    if len(done) >= count:
                        return sorted(done, key=lambda row: row.seq)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), 0.2)
        finally:
            for subscription in subscriptions:
                subscription.close()


def _is_settled(row: feed.FeedRow) -> bool:
    return row.action_type is not None and row.action_state in (None, "completed", "failed")


def letter(subject: str, sender: str = "shop@store.example", to: str = OWNER, **headers: str) -> bytes:
    lines = [f"From: {sender}", f"To: {to}", f"Subject: {subject}", "Date: Sun, 15 Nov 2026 08:00:00 +0000"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\nHello.\r\n").encode()


@contextlib.asynccontextmanager
async def running_product(
    database: Database,
    folder: Path,
    prepare: Callable[[Mailbox], None] = lambda _mailbox: None,
    patience_s: float = PATIENCE_S,
    policy: IngestionPolicy | None = None,
    adviser: Adviser | None = None,
) -> AsyncGenerator[Product]:
    """Connector (driven by the test), dispatcher, worker and leadership on an emulated mailbox."""
    mailbox = Mailbox(OWNER, Random(1))
    emulator = Emulator(mailbox, TOKEN, fill=prepare)
    options = WorkerOptions(concurrency=8, poll=timedelta(seconds=0.1))

    async def token() -> str:
        return TOKEN

    async with (
        running_emulator(emulator) as address,
        CheckedClient() as http,
        MailboxGate.open(database) as gate,
    ):
        client = GmailClient(http, address, token, gate=gate)
        gmail = GmailMailbox(client)
        await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
        handlers = {
            "classify": Classify(database, CATALOGUE, adviser=adviser),
            "action.gmail": ActionGmail(Executor(database, CATALOGUE, wall_clock), given(gmail.under), 20),
            "undo.action": UndoAction(UndoService(database, CATALOGUE, wall_clock), given(gmail.under)),
            "unsnooze.gmail": UnsnoozeGmail(database, given(gmail.under), "Postroom/Snoozed"),
            "outbound.send": OutboundSend(database, always(gmail), 20, timedelta(days=7)),
        }
        worker = Worker(database, CATALOGUE, handlers, options)
        leadership = Leadership(
            database, Scheduler(database, CATALOGUE), Rescuer(database), Pruner(database), poll=options.poll
        )
        services = services_on(database, wall_clock)
        dispatching = asyncio.create_task(Dispatcher(database, CATALOGUE, services.buffer).run())
        working = asyncio.gather(worker.run(), leadership.run())
        sender = Sender(database, given(lambda permit: GmailCarrier(client.under(permit))), SENDING)
        sending = asyncio.create_task(sender.run())
        live = GmailConnector(
            client,
            switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT))),
            Checkpoint(folder / "checkpoint.json"),
            email=OWNER,
            endpoint_identity=ENDPOINT,
            clock=wall_clock,
            knowledge=Knowledge([OWNER], policy=lambda: policy or IngestionPolicy()),
        )
        try:
            yield Product(database, mailbox, live, address, patience_s, emulator)
        finally:
            worker.stop()
            leadership.stop()
            dispatching.cancel()
            sending.cancel()
            await asyncio.gather(working, dispatching, sending, return_exceptions=True)


async def until_job(database: Database, id: UUID, state: str) -> None:
    """Waits until the job is in this state."""
    changed = asyncio.Event()
    subscription = database.subscribe(jobs.CHANNEL, lambda _message: changed.set())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                changed.clear()
                shown = await database.run(jobs.show_job(id))
                if shown is not None and shown.state == state:
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), 0.1)
    finally:
        subscription.close()


async def decided_action(
    database: Database, clock: Callable[[], datetime], max_attempts: int, rule_name: str | None = None
) -> tuple[UUID, UUID]:
    """A message with a decision whose action waits for its job; returns the ids of both."""
    account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, clock()))
    await Intake(database, None, clock).ingest(envelope("m1", {}))
    ((leased,), _) = await database.run(inbox.lease(EMAIL, 1, new_id(), clock(), new_id()))
    message_id, action_id, token = new_id(), new_id(), new_id()
    classify = new_job(CATALOGUE, "classify", {})
    content = read_mail(leased.envelope)
    await database.run(
        mail.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, clock())
    )
    await database.run(jobs.open_lease(token, "decider", clock(), clock()))
    (deciding,) = await database.run(jobs.claim(token, 1, clock()))
    decision = decisions.Decision(
        new_id(), account.id, message_id, "deterministic", "archive", {}, 1.0, "a rule", rule_name=rule_name
    )
    payload = {"account_id": str(account.id), "action_id": str(action_id)}
    follow_up = new_job(CATALOGUE, "action.gmail", payload, max_attempts=max_attempts)
    action = decisions.NewAction(action_id, "rule", "queued", "hash", follow_up.id)
    await database.run(decisions.record_decision(deciding, decision, action, follow_up, clock()))
    await database.run(jobs.close_lease(token, clock()))
    return action_id, follow_up.id


def envelope(event_id: str, raw: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT},
        "event": {"external_event_id": event_id, "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": "a@b.example"},
        "payload": {"raw": raw, "normalized_text": "hello"},
    }
