"""Mail for tests: stored, decided on by the real handler, acted on, and moved by its owner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from postroom.core.actions.label_changes import LabelChange
from postroom.core.actions.safety import Policy
from postroom.core.actions.undo import undo_hint
from postroom.core.jobs.job import Job, NewJob
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.message import read_mail, to_raw
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.queue.envelope import Envelope, envelope_text, parse_envelope
from postroom.core.queue.queues import EMAIL
from postroom.core.rules.agreement import SETTLING
from postroom.core.rules.draft import RuleDraft
from postroom.jobs.run import JobRun
from postroom.store.actions import actions, decisions
from postroom.store.engine.ids import new_id
from postroom.store.intake import acceptance, inbox
from postroom.store.jobs.job_builders import decide_again
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.triage.handlers.classify import Adviser, Classify
from support import storing
from support.gates import LASTING
from support.store.job_setup import JobSetup

OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
LABELS = (
    SeenLabel("INBOX", "INBOX", "system"),
    SeenLabel("Label_1", "Receipts", "user"),
    SeenLabel("Label_2", "Travel", "user"),
)


@dataclass(frozen=True)
class Sample:
    """A message to the owner."""

    id: str
    sender: str = "ida@shop.example"
    subject: str = "Hello"
    text: str = "Hello there"
    labels: frozenset[str] = frozenset({"INBOX", "UNREAD"})
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sent_at: datetime = datetime(2026, 11, 15, 7, tzinfo=UTC)
    is_whole: bool = True
    files: tuple[Mapping[str, Any], ...] = ()
    size: int | None = None
    reply_to_mine: bool | None = None
    sender_doubt: SenderDoubt | None = None

    def envelope(self, endpoint: str) -> Envelope:
        named = {"From": self.sender, "To": OWNER, "Subject": self.subject, **self.headers}
        headers = tuple(named.items())
        told: dict[str, Any] = {
            "size": self.size,
            "reply_to_mine": self.reply_to_mine,
            "sender_doubt": self.sender_doubt,
        }
        raw = to_raw(thread_id=self.id, headers=headers, labels=self.labels, snippet="", sent_at=self.sent_at, **told)
        outline = {"headers": [list(pair) for pair in headers], "labels": sorted(self.labels), **told}
        attachments = [dict(each) for each in self.files] if self.is_whole else []
        payload = {"raw": raw} if self.is_whole else {"raw": None, "metadata": outline}
        return parse_envelope(
            {
                "schema_version": "ingest.v1",
                "source": {"channel": "email", "provider": "gmail", "endpoint_identity": endpoint},
                "event": {"external_event_id": self.id, "observed_at": self.sent_at.isoformat()},
                "sender": {"identity": self.sender},
                "payload": {**payload, "normalized_text": self.text, "attachments": attachments},
                "control": {} if self.is_whole else {"ingestion_tier": "metadata"},
            }
        )


@dataclass
class MailSetup:
    """One mailbox on the setup's database, under its clock."""

    setup: JobSetup
    endpoint: str = ENDPOINT
    policy: Policy = field(default_factory=Policy)
    adviser: Adviser | None = None
    ids: dict[str, UUID] = field(default_factory=dict[str, UUID])

    async def opened(self) -> "MailSetup":
        now = self.setup.clock()
        self.account = await self.setup.database.run(mail.keep_account(new_id(), "gmail", self.endpoint, OWNER, now))
        await self.setup.database.run(sync_labels(self.account.id, LABELS, now))
        return self

    async def rules(self, *drafts: RuleDraft) -> None:
        signed = Signature(new_id(), "test", "admin")
        given = [(new_id(), draft) for draft in drafts]
        await self.setup.database.run(rules.keep_rules(given, "replace", "user", signed, self.setup.clock()))

    async def deliver(self, *messages: Sample) -> None:
        """Accepted and stored, each with a job to classify it."""
        run, now = self.setup.database.run, self.setup.clock
        for message in messages:
            envelope = message.envelope(self.endpoint)
            text = envelope_text(envelope)
            incoming = acceptance.RoutedEnvelope(new_id(), envelope, text, EMAIL, EMAIL.tier_of(envelope))
            await run(acceptance.accept_many([incoming], now()))
            ((leased,), _) = await run(inbox.lease(EMAIL, 1, new_id(), now(), new_id()))
            ids = (new_id(), self.ids.setdefault(message.id, new_id()))
            await run(storing.store_message(leased, self.account, ids, read_mail(envelope), self._classifying, now()))

    def _classifying(self, message_id: UUID) -> NewJob:
        payload = {"account_id": str(self.account.id), "message_id": str(message_id)}
        return new_job(CATALOGUE, "classify", payload)

    async def decide(self, *messages: Sample) -> list[decisions.Decision]:
        """Delivers each and lets the real handler decide; what may not be undone begins at once."""
        for message in messages:
            await self.deliver(message)
            await self.work()
        return [await self.decision(message.id) for message in messages]

    async def work(self) -> None:
        while claimed := await self.setup.claim(1):
            await self._do(claimed[0])

    async def _do(self, job: Job) -> None:
        match job.type:
            case "classify":
                classify = Classify(
                    self.setup.database, CATALOGUE, self.setup.clock, policy=self.policy, adviser=self.adviser
                )
                await classify(JobRun(job, self.setup.database, self.setup.clock, LASTING))
            case "action.gmail":
                id = UUID(job.payload["action_id"])
                cap = self.policy.hourly_cap
                await self.setup.database.run(actions.begin_action(job, id, cap, self.setup.clock()))
            case _:
                await self.setup.finish(job)

    async def again(self, letter_id: str) -> None:
        """Has the message decided on anew."""
        generation = 1 + await self.setup.database.run(decisions.latest_generation(self.ids[letter_id]))
        job = decide_again(CATALOGUE, self.account.id, self.ids[letter_id], generation)
        await self.setup.accept(job)
        await self.work()

    async def decision(self, letter_id: str) -> decisions.Decision:
        """The one that counts."""
        found = await self.setup.database.run(decisions.decisions_about(self.ids[letter_id]))
        return next(each.decision for each in found if not each.decision.shadow)

    async def acted(self, message: Sample, after: frozenset[str], **besides: Any) -> actions.ActionView:
        """What the rules decide about the message is done: it has these labels then, and the action has its hint."""
        await self.deliver(message)
        [deciding] = await self.setup.claim(1)
        await self._do(deciding)
        [job] = await self.setup.claim(1)
        await self.complete(job, message.labels, after, **besides)
        self.setup.clock.forward(SETTLING.total_seconds() + 1)
        [view] = await self.setup.database.run(actions.list_actions(1, message_id=self.ids[message.id]))
        return view

    async def complete(self, job: Job, before: frozenset[str], after: frozenset[str], **besides: Any) -> None:
        """The job's action is done: the message had the labels before, and has the others after."""
        id = UUID(job.payload["action_id"])
        run, now = self.setup.database.run, self.setup.clock
        await run(actions.begin_action(job, id, 20, now()))
        await run(actions.keep_pre_image(job, id, {"labels": sorted(before)}, now()))
        action = await run(actions.load_action(id))
        changed = LabelChange(after - before, before - after)
        hint = {**undo_hint(action.action_type, before, changed), **besides}
        await run(actions.complete_action(job, id, actions.DoneChange(after, hint), now()))

    async def user(self, letter_id: str, add: str = "", remove: str = "", deleted: bool = False) -> None:
        """What the owner did in the mailbox itself, as its history tells."""
        change = Change(letter_id, frozenset(add.split()), frozenset(remove.split()), deleted)
        await self.setup.database.run(apply_changes(self.endpoint, [change], self.setup.clock()))
