"""The pages of mail and approvals as a real application over a real database, for any visitor."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from postroom.core.actions.action import action_hash
from postroom.core.actions.undo import irreversible_hint
from postroom.core.jobs.job import Job
from postroom.core.mail.mailbox import MailboxOf
from postroom.core.rules.draft import RuleDraft
from postroom.core.visitors import PersonRole, Visitor
from postroom.intake.intake import Intake
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.pages.approvals import ApprovalsPage
from postroom.interfaces.dashboard.pages.mail import MailPage, MessagePage
from postroom.interfaces.dashboard.pages.overview import OverviewPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import VISITOR
from postroom.interfaces.http.application import create_application
from postroom.operations.parts import Parts
from postroom.settings.reading import Settings
from postroom.store.actions import approvals, decisions, undos
from postroom.store.actions.approvals import Approval
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock, zone_at_noon
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

BASE = "http://127.0.0.1:8025"
SHOPS = RuleDraft("shops", {"sender_domain": "shop.example"}, "archive")
BILLS = RuleDraft("bills", {"sender_domain": "bills.example"}, "trash", needs_approval=True)
PARCEL = Sample("done", "Ida Shop <ida@shop.example>", "Parcel", "Your parcel comes today.\n\nIda")
BILL = Sample("asked", "pay@bills.example", "Bill")
LUNCH = Sample("kept", "uta@home.example", "Lunch")
ARCHIVED = frozenset({"UNREAD"})
EVENT = {
    "schema_version": "ingest.v1",
    "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "ci"},
    "event": {"external_event_id": "e1", "observed_at": "2026-11-15T08:00:00Z", "kind": "deploy.failed"},
    "sender": {"identity": "deploy-watch"},
    "payload": {"raw": {}, "normalized_text": "Build 2214 failed on main"},
}
ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</li></ol><h1>Postroom was here</h1>",
    "{{ 7 * 7 }}{% raw %}",
    "<div hx-get='/healthz' hx-trigger='load'>",
    "evil\u202egpj.exe",
    "W" * 3_000,
)


async def new_mailbox(database: Database) -> MailSetup:
    """A mailbox without mail, at the present time."""
    return await MailSetup(JobSetup(database, ManualClock(wall_clock()))).opened()


async def filled_mailbox(database: Database) -> MailSetup:
    """One message archived by a rule, one that waits for a yes, one that no rule knows, and an event."""
    box = await new_mailbox(database)
    await box.rules(SHOPS, BILLS)
    await box.acted(PARCEL, ARCHIVED)
    await box.decide(BILL, LUNCH)
    await Intake(database, None, box.setup.clock).ingest(EVENT)
    return box


async def ask(
    box: MailSetup,
    action: Any = "trash",
    parameters: dict[str, Any] | None = None,
    *,
    actor: Any = "agent",
    life: timedelta = timedelta(hours=24),
    why: str = "it is old",
    reason: str = "agents propose, people approve",
    about: str = "m1",
) -> Approval:
    """An action on the message that waits for a yes."""
    message_id, wanted, now = box.ids[about], parameters or {}, box.setup.clock()
    safety = {"verdict": "approve", "reasons": [reason]}
    decision = decisions.Decision(new_id(), box.account.id, message_id, "none", action, wanted, 1.0, why, safety=safety)
    hashed = action_hash(message_id, action, wanted)
    new = decisions.NewAction(new_id(), actor, "approved_pending", hashed, None, now + life, asked_by="token:7")
    await box.setup.database.run(decisions.ask_for_action(decision, new, None, now))
    return await box.setup.database.run(approvals.show_approval(new.id))


async def carry_out_undo(box: MailSetup, action_id: UUID) -> None:
    """Carry out what was asked on the page: the message has its labels back."""
    [job] = [each for each in await claim_undos(box) if each.payload["original_action_id"] == str(action_id)]
    await end_undo(box, job)


async def claim_undos(box: MailSetup) -> list[Job]:
    """Claim everything that waits, and return the undos."""
    box.setup.clock.now = wall_clock() + timedelta(seconds=1)
    return [each for each in await box.setup.claim() if "original_action_id" in each.payload]


async def end_undo(box: MailSetup, job: Job) -> None:
    run, now, action_id = box.setup.database.run, box.setup.clock, UUID(job.payload["original_action_id"])
    undo, before = new_id(), frozenset({"INBOX", "UNREAD"})
    await run(undos.begin_undo(job, action_id, box.account.id, undo, now()))
    await run(undos.complete_undo(job, undo, before, irreversible_hint("archive"), None, now()))


def visitor(role: PersonRole, *, is_fresh: bool = True) -> Visitor:
    return Visitor("ida", role, f"token-of-{role}", is_fresh)


def mail_application(
    database: Database, mailbox_of: MailboxOf | None = None, patience: timedelta = timedelta()
) -> Starlette:
    """The application, in which everyone is the owner. A form waits this long for its action."""
    parts = Parts(Settings.model_validate({"time_zone": zone_at_noon().key}), database, mailbox_of=mailbox_of)
    site = Site(parts, "ada@example.com", UpdateIntervals(between_updates=0.01, reread=3600))
    pages = [OverviewPage(site), MailPage(site), MessagePage(site, patience), ApprovalsPage(site)]
    return create_application(site, pages, allowed_hosts=("127.0.0.1",))


def _visited(app: ASGIApp, seen_by: Visitor | None) -> ASGIApp:
    async def visited(scope: Scope, receive: Receive, send: Send) -> None:
        if seen_by is not None:
            scope[VISITOR] = seen_by
        await app(scope, receive, send)

    return visited


@asynccontextmanager
async def browsing(
    database: Database, seen_by: Visitor | None = None, mailbox_of: MailboxOf | None = None
) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=_visited(mail_application(database, mailbox_of), seen_by))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client
