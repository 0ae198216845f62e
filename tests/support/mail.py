"""Stored mail, made as in the product: ingested, leased, and dispatched; and something done with it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from postroom.core.actions.action import Actor, label_change
from postroom.core.actions.safety import Policy
from postroom.core.actions.undo import undo_hint
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.message import read_mail
from postroom.core.queue.queues import EMAIL
from postroom.intake.intake import Intake
from postroom.operations.mail.mail_page import show_mail
from postroom.operations.mail.mail_story import StoryLine
from postroom.store.actions import actions, approvals, decisions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake import inbox
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail
from postroom.store.people.audit import Signature
from support import storing

OWNER = "ada@example.com"


async def keep_account(database: Database, now: datetime, email: str = OWNER, provider: str = "gmail") -> mail.Account:
    return await database.run(mail.keep_account(new_id(), provider, f"{provider}:user:{email}", email, now))


async def keep_mail(
    database: Database,
    clock: Callable[[], datetime],
    number: object = 1,
    *,
    subject: str = "Hello",
    body: str = "Some words.",
    sender: str = "mara@lindqvist.example",
    labels: Iterable[str] = ("INBOX",),
    sent_at: str = "2026-11-15T08:00:00Z",
    owner: str = OWNER,
    tier: str = "full",
    headers: Iterable[tuple[str, str]] = (),
    event_id: str | None = None,
    files: Iterable[str] = (),
    message_id: UUID | None = None,
    policy_tier: str = "default",
    provider: str = "gmail",
) -> UUID:
    """The id of the message; of one that was known by its metadata, the same as before."""
    account = await keep_account(database, clock(), owner, provider)
    heads = [["From", sender], ["To", owner], ["Subject", subject], *(list(pair) for pair in headers)]
    full = tier == "full"
    payload: dict[str, Any] = {"headers": heads, "labels": list(labels), "sent_at": sent_at}
    envelope: dict[str, Any] = {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": provider, "endpoint_identity": account.endpoint_identity},
        "event": {"external_event_id": event_id or f"mail-{number}", "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": sender},
        "payload": {"raw": payload if full else None, "normalized_text": body if full else subject},
        "control": {"ingestion_tier": tier, "policy_tier": policy_tier},
    }
    if not full:
        envelope["payload"]["metadata"] = payload
    else:
        envelope["payload"]["attachments"] = [{"filename": each} for each in files]
    await Intake(database, None, clock).ingest(envelope)
    ((leased,), _) = await database.run(inbox.lease(EMAIL, 1, new_id(), clock(), new_id()))
    kept: list[UUID] = []

    def classify(id: UUID) -> Any:
        kept.append(id)
        return new_job(CATALOGUE, "classify", {"message_id": str(id)})

    keeping = storing.store_message(
        leased, account, (new_id(), message_id or new_id()), read_mail(leased.envelope), classify, clock()
    )
    await database.run(keeping)
    return kept[-1]


async def done(
    database: Database,
    clock: Callable[[], datetime],
    message_id: UUID,
    actor: Actor = "rule",
    asked_by: str = "test",
    *,
    hides: bool = False,
) -> UUID:
    """The id of an action that took the message out of the inbox, on somebody's behalf."""
    account_id = (await database.run(mail.load_message(message_id))).account_id
    job, action_id = new_job(CATALOGUE, "action.gmail", {}, priority=100), new_id()
    decision = decisions.Decision(new_id(), account_id, message_id, "none", "archive", {}, 1.0, "a test")
    action = decisions.NewAction(action_id, actor, "queued", "hash", job.id, asked_by=asked_by, hides=hides)
    await database.run(decisions.ask_for_action(decision, action, job, clock()))
    await carried_out(database, clock, action_id)
    return action_id


async def approved_and_done(database: Database, clock: Callable[[], datetime], action_id: UUID) -> None:
    """A person says yes to what was to be taken out of the inbox, and it is."""
    job = new_job(CATALOGUE, "action.gmail", {}, priority=100)
    shown = (await database.run(approvals.show_approval(action_id))).action_hash
    signed = Signature(new_id(), "cli:ada", "admin")
    await database.run(approvals.approve_action(action_id, shown, job, signed, clock()))
    await carried_out(database, clock, action_id)


async def carried_out(database: Database, clock: Callable[[], datetime], action_id: UUID) -> None:
    """What waits with the most urgent job there is has taken its message out of the inbox."""
    token = new_id()
    await database.run(jobs.open_lease(token, "worker", clock(), clock() + timedelta(minutes=1)))
    (claimed,) = await database.run(jobs.claim(token, 1, clock()))
    await database.run(actions.begin_action(claimed, action_id, 20, clock()))
    before = frozenset({"INBOX"})
    hint = undo_hint("archive", before, label_change("archive").effective(before))
    await database.run(actions.complete_action(claimed, action_id, actions.DoneChange(frozenset(), hint), clock()))
    await database.run(jobs.close_lease(token, clock()))


async def story_of(database: Database, name: str) -> Sequence[StoryLine]:
    """The way of the message with this id of any kind."""
    return (await show_mail(database, Policy(), name)).story
