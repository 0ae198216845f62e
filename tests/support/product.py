"""The whole product but the page in one process, on a real emulator over a loopback socket."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from postroom.compose.gate import MailboxGate
from postroom.compose.mailboxes import Mailboxes, keep_sandbox_account
from postroom.compose.switchboard import dispatcher_of, open_services, switchboard_for
from postroom.compose.tasks import background
from postroom.compose.worker import running_jobs
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.ingestion import IngestionPolicy, as_data
from postroom.core.mail.message import read_mail
from postroom.core.queue.queues import EMAIL
from postroom.core.rules.draft import RuleDraft
from postroom.intake.intake import Intake
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.running import connector_home
from postroom.mailboxes.gmail.facts import NAME
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.watching import GmailParts, connector_parts
from postroom.outbound.queue.pace import Pace
from postroom.settings.reading import Settings
from postroom.sources.mcp_switchboard import McpSwitchboard
from postroom.sources.runtime import ConnectorHealth
from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake import inbox
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail
from postroom.store.rules.rules import add_rules
from postroom.system.checked_http import CheckedClient
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support import storing
from support.acting import keep_acting_account
from support.arrived import ArrivedMail, arrived_mail
from support.clocks import zone_at_noon
from support.patience import PATIENCE_S
from support.until import until

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
    services: Services
    switchboard: McpSwitchboard
    parts: GmailParts

    async def rule(self, name: str, conditions: dict[str, Any], action: Any, **parameters: str) -> None:
        rule = (new_id(), RuleDraft(name, conditions, action, parameters))
        await self.database.run(add_rules([rule], wall_clock()))

    async def settled(self, count: int) -> list[ArrivedMail]:
        """Waits until so many messages are decided and nothing is left to do; returns them, oldest first."""
        return await self.until_all(count, _is_settled)

    async def until_decided(self, count: int) -> list[ArrivedMail]:
        """Waits until so many messages are decided, whatever is left to do; returns them, oldest first."""
        return await self.until_all(count, lambda row: row.action_type is not None)

    async def until_all(self, count: int, holds: Callable[[ArrivedMail], bool]) -> list[ArrivedMail]:
        """Waits until this holds for so many messages; returns them, oldest first."""

        async def done() -> list[ArrivedMail]:
            return [row for row in await arrived_mail(self.database) if holds(row)]

        rows = await until(self.database, done, lambda rows: len(rows) >= count, patience_s=self.patience_s)
        return sorted(rows, key=lambda row: (row.accepted_at, row.id))


def _is_settled(row: ArrivedMail) -> bool:
    return row.action_type is not None and row.action_state in (None, "completed", "failed")


def raw_mail(subject: str, sender: str = "shop@store.example", to: str = OWNER, **headers: str) -> bytes:
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
    model: dict[str, Any] | None = None,
    time_zone: str = "UTC",
    acts: bool = True,
) -> AsyncGenerator[Product]:
    """What `postroom serve` runs, but for the pages, on an emulated mailbox; the test tells the connector when to look.

    Without a policy all mail is taken in whole. `model` is the section of the settings; `time_zone` that of backfills.
    The account acts on all mail, unless `acts` is false: then it is as `serve` creates it.
    """
    emulator, stop = Emulator(Mailbox(OWNER, Random(1)), TOKEN, fill=prepare), asyncio.Event()
    _keep_filters(folder, policy or IngestionPolicy())
    async with running_emulator(emulator) as address:
        settings = Settings.model_validate(
            {
                "data_dir": folder,
                "account": {"email": OWNER},
                "gmail": {"base_url": address, "token": TOKEN, "units_per_minute": 1_000_000},
                # Nothing answers the requests to a connector here: what waits for an answer at the end is interrupted.
                "jobs": {"poll_s": 0.1, "drain_s": 1},
                "model": model or {},
                "time_zone": str(zone_at_noon()),
                "backfill": {"time_zone": time_zone},
            }
        )
        await (keep_acting_account(database, OWNER) if acts else keep_sandbox_account(settings, database))
        async with (
            CheckedClient(timeout=PATIENCE_S) as http,
            MailboxGate.open(database) as gate,
            open_services(settings, database, http, None) as services,
            background(dispatcher_of(services).run(), stop),
            running_jobs(
                settings,
                database,
                Mailboxes(settings, database, http, None, gate),
                stop,
                concurrency=8,
                pace=SENDING,
                live=services.parts.live,
            ),
            background(services.parts.live.follow(database), stop),
        ):
            switchboard, health = switchboard_for(services, ENDPOINT), ConnectorHealth(wall_clock)
            with (
                connector_home(settings, switchboard, folder, health, NAME, [OWNER]) as home,
                connector_parts(home, http) as parts,
            ):
                mailbox, live = emulator.mailbox, parts.connector
                yield Product(database, mailbox, live, address, patience_s, emulator, services, switchboard, parts)


def _keep_filters(folder: Path, policy: IngestionPolicy) -> None:
    """As if the connector had fetched these rules before."""
    rules = [as_data(rule) for rule in policy.rules]
    (folder / "filters.json").write_text(json.dumps({"version": "of the test", "rules": rules}))


async def until_job(database: Database, id: UUID, state: str) -> None:
    """Waits until the job is in this state."""
    await until(
        database,
        lambda: database.run(jobs.show_job(id)),
        lambda shown: shown is not None and shown.state == state,
        (jobs.CHANNEL,),
    )


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
        storing.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, clock())
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
