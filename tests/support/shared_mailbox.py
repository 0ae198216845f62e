"""A mailbox in which a person and automation work at the same time, moved by hand through injected time.

The handlers, the executor, the client and the emulator are the real ones. Before every request that reaches the mailbox
the person may do something: so every place between two calls is a moment at which the user's hand can come in.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, cast
from uuid import UUID

import httpx2

from postroom.compose.gate import MailboxGate
from postroom.core.actions.permits import Permit
from postroom.core.actions.safety import Policy, ProtectedKind
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import PostroomError
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.mailbox import Mailbox
from postroom.core.rules.draft import RuleDraft
from postroom.jobs.failure import ending_of
from postroom.jobs.run import Handler, JobRun
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.store.actions import actions, approvals, decisions, protection
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import decide_again, undo_job
from postroom.store.mail import labels, mail
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import add_rules
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from postroom.triage.act.approvals import Approvals
from postroom.triage.act.executor import Executor
from postroom.triage.act.undo import UndoService
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.approval_notify import ApprovalNotify
from postroom.triage.handlers.classify import Classify
from postroom.triage.handlers.labels_sync import LabelsSyncGmail
from postroom.triage.handlers.undo_action import UndoAction
from postroom.triage.handlers.unsnooze_gmail import UnsnoozeGmail
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox as Gmail
from support.clocks import ManualClock
from support.gates import LASTING
from support.mail import keep_mail
from support.mailboxes import always, given
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.sqlite import new_sqlite

SNOOZE = "Postroom/Snoozed"
LABEL = "Receipts"
PRIVATE = "Private"
SENDERS = ("shop@store.example", "ann@family.example")
LONG = timedelta(days=400)
LEASE = timedelta(days=1000)
UNDONE = ("archive", "apply_label", "snooze")


@dataclass
class SharedMessage:
    """A message, and who has taken it out of the inbox last: `snooze` is what has to be made good.

    `left_with` are the labels that the person left it with during a job.
    """

    gmail_id: str
    id: UUID
    sender: str
    away: str | None = None
    left_with: frozenset[str] | None = None


class InterruptedMailbox:
    """The mailbox of Gmail, before each of whose calls the person may act."""

    def __init__(self, inner: GmailMailbox, before_call: Callable[[], Awaitable[None]]) -> None:
        self.provider = inner.provider
        self._inner = inner
        self._before_call = before_call

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method: Callable[..., Awaitable[Any]] = getattr(self._inner, name)

        async def called(*arguments: Any) -> Any:
            await self._before_call()
            return await method(*arguments)

        return called


@dataclass
class SharedMailbox:
    """One sequence: a database and a mailbox of its own, and what must be true of them."""

    database: Database
    gmail: Gmail
    clock: ManualClock
    handlers: dict[str, Handler]
    agents: Agents
    waiting: list[Callable[[], None]]
    messages: list[SharedMessage] = field(default_factory=list[SharedMessage])
    lost_labels: set[str] = field(default_factory=set[str])
    told: list[str] = field(default_factory=list[str])
    account_id: UUID = field(default_factory=new_id)
    token: UUID = field(default_factory=new_id)
    rng: Random = field(default_factory=lambda: Random(1))

    # The person.

    def by_hand(self, what: Callable[[], None], *, soon: bool) -> None:
        """At once, or before the next call that automation makes."""
        self.waiting.append(what) if soon else what()

    def relabel(
        self, message: SharedMessage, add: Sequence[str] = (), remove: Sequence[str] = (), away: str = "user"
    ) -> None:
        if message.gmail_id not in self.gmail:
            return
        before = self.gmail.get(message.gmail_id).labels
        known = {each.id for each in self.gmail.labels.all()}
        after = self.gmail.modify(message.gmail_id, set(add) & known, set(remove) & known & before).labels
        self.note_place(message, before, after, away)
        message.left_with = after

    def note_place(self, message: SharedMessage, before: frozenset[str], after: frozenset[str], by: str) -> None:
        if "INBOX" in after:
            message.away = None
        elif "INBOX" in before or (after - before) & {"TRASH", "SPAM"}:
            message.away = by

    def delete(self, message: SharedMessage) -> None:
        if message.gmail_id in self.gmail:
            self.gmail.delete(message.gmail_id)
            message.away = "user"

    def delete_label(self, name: str) -> None:
        if (label := self.gmail.labels.named(name)) is not None:
            self.gmail.delete_label(label.id)
            if name != SNOOZE:
                self.lost_labels.add(name)

    def rename_label(self, name: str) -> None:
        if (label := self.gmail.labels.named(name)) is not None:
            self.gmail.labels.update(label.id, f"{name} {label.id}", {})
            self.lost_labels.add(name)

    def label_id(self, name: str) -> str:
        label = self.gmail.labels.named(name)
        return "none" if label is None else label.id

    async def protect(self, kind: ProtectedKind, value: str) -> None:
        signed = Signature(new_id(), "test", "admin")
        await self.database.run(protection.protect(kind, value, "", signed, self.clock()))

    # Automation.

    async def decide(self, message: SharedMessage) -> None:
        generation = await self.database.run(decisions.latest_generation(message.id))
        job = decide_again(CATALOGUE, self.account_id, message.id, generation + 1)
        await self.database.run(jobs.enqueue_many([job], self.clock()))

    async def propose(self, message: SharedMessage, action: str, **parameters: object) -> None:
        try:
            await self.agents.propose(message.id, action, parameters, "a test", Signature(new_id(), "agent", "agent"))
        except PostroomError as error:
            self.told.append(str(error))

    async def answer(self, approve: bool) -> None:
        for each in (await self.database.run(approvals.list_waiting(10)))[:1]:
            setup, signed = Approvals(self.database, CATALOGUE, self.clock), Signature(new_id(), "test", "admin")
            if approve:
                await setup.approve(each.id, each.action_hash, signed)
                # A yes is a later word than a deletion that was noticed before.
                self.lost_labels.discard(str(each.parameters.get("label")))
            else:
                await setup.reject(each.id, signed)

    async def undo(self) -> None:
        for each in await self.database.run(actions.list_actions(20, state="completed")):
            fits = (
                each.actor != "undo"
                and each.undone is None
                and each.action_type in ("archive", "apply_label", "snooze")
            )
            if fits and why_not_undoable(each.action_type, each.state, each.undo_hint) is None:
                job = undo_job(CATALOGUE, self.account_id, (each.id,))
                await self.database.run(jobs.enqueue_many([job], self.clock()))
                return

    # Time.

    async def work(self, most: int = 100) -> int:
        """Does up to so many jobs that are due; how many there were."""
        await self.database.run(jobs.wake_due(self.clock(), 1000))
        claimed = await self.database.run(jobs.claim(self.token, most, self.clock()))
        for job in claimed:
            await self.run_job(job)
        return len(claimed)

    async def run_job(self, job: Job) -> None:
        before = {each.gmail_id: self.labels_of(each) for each in self.messages}
        for each in self.messages:
            each.left_with = None
        protected = [each for each in self.messages if await self.is_protected(each)]
        run, acted = JobRun(job, self.database, self.clock, LASTING), len(self.waiting)
        try:
            await self.handlers[job.type](run)
        except Exception as error:
            ending = ending_of(job, error, CATALOGUE[job.type].retry, self.rng, self.clock())
            await self.database.run(ending.transaction)
        else:
            if not run.ended:
                await self.database.run(jobs.finish([job.claim], [job.seq] if job.releases_key else [], self.clock()))
        by, about = await self.doer(job)
        for each in self.messages:
            # Where the person acted meanwhile, the place was noted with that, and only what changed since is ours.
            was, now = each.left_with or before[each.gmail_id], self.labels_of(each)
            if was is None or now is None or was == now or each.id != about:
                continue
            if each in protected and job.type == "action.gmail" and acted == len(self.waiting):
                raise AssertionError(f"protected mail was touched by {by}: {sorted(was)} became {sorted(now)}")
            put_away = by == "snooze" and now & {"TRASH", "SPAM"}
            if job.type in ("action.gmail", "undo.action", "unsnooze.gmail") and not put_away:
                self.note_place(each, was, now, by)

    async def doer(self, job: Job) -> tuple[str, UUID | None]:
        """What a job does, and to which message."""
        id = job.payload.get("action_id") or job.payload.get("original_action_id")
        if id is None:
            return job.type, None
        action = await self.database.run(actions.load_action(UUID(str(id))))
        return action.action_type if job.type == "action.gmail" else job.type, action.message_id

    def labels_of(self, message: SharedMessage) -> frozenset[str] | None:
        return self.gmail.get(message.gmail_id).labels if message.gmail_id in self.gmail else None

    async def is_protected(self, message: SharedMessage) -> bool:
        """By what the message bears in the mailbox at this moment, told or not."""
        now = self.labels_of(message) or frozenset()
        names = {each.name.casefold() for each in self.gmail.labels.all() if each.id in now}
        views = await self.database.run(protection.list_protected())
        kept = {(each.kind, each.value) for each in views}
        return ("sender", message.sender) in kept or any(("label", name) in kept for name in names)

    async def tell(self) -> None:
        """The connector tells of what was done to messages."""
        changes: list[Change] = []
        for each in self.messages:
            known = (await self.database.run(mail.load_message(each.id))).facts.labels
            now = self.labels_of(each) or frozenset()
            ids = {label.id for label in self.gmail.labels.all()}
            changes.append(Change(each.gmail_id, now - known, known & ids - now, each.gmail_id not in self.gmail))
        await self.database.run(apply_changes(ENDPOINT, changes, self.clock()))

    async def before_call(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    async def settle(self) -> None:
        """Everything that was begun comes to its end, a year and more from now."""
        await self.before_call()
        for _ in range(60):
            await self.work()
            self.clock.forward(LONG.total_seconds() / 60)
        while await self.work():
            pass

    def check(self) -> None:
        names = {each.name for each in self.gmail.labels.all()}
        assert not self.lost_labels & names, f"a label came back: {self.lost_labels & names}"

    async def check_end(self) -> None:
        self.check()
        for each in self.messages:
            assert each.away != "snooze", f"snoozed mail was lost: {sorted(self.labels_of(each) or ())}"


async def open_shared_mailbox(
    folder: Path, migrated: Path, emulator: Emulator, address: str, http: httpx2.AsyncClient
) -> SharedMailbox:
    """A new sequence. The database is a copy of a migrated one, the mailbox a new one at the same emulator."""
    clock, database = ManualClock(), await new_sqlite(folder, migrated)
    gmail = Gmail(OWNER, Random(7), clock=clock)
    emulator.add(gmail, TOKEN)
    emulator.quota.reset()

    async def token() -> str:
        return TOKEN

    client = GmailClient(http, address, token, gate=MailboxGate(database, clock))
    waiting: list[Callable[[], None]] = []

    async def before_call() -> None:
        while waiting:
            waiting.pop(0)()

    gmail_mailbox = GmailMailbox(client)

    @given
    def mailbox_of(permit: Permit) -> Mailbox:
        return cast("Mailbox", InterruptedMailbox(gmail_mailbox.under(permit), before_call))

    policy = Policy(trust_agents=True, agent_hourly_cap=3)
    requests = ActionRequests(database, CATALOGUE, policy, clock)
    executor, undoing = Executor(database, CATALOGUE, clock), UndoService(database, CATALOGUE, clock)
    handlers: dict[str, Handler] = {
        "classify": Classify(database, CATALOGUE, policy=policy, clock=clock),
        "action.gmail": ActionGmail(executor, mailbox_of, 20),
        "undo.action": UndoAction(undoing, mailbox_of),
        "unsnooze.gmail": UnsnoozeGmail(database, mailbox_of, SNOOZE, clock),
        "labels.sync.gmail": LabelsSyncGmail(database, always(gmail_mailbox), clock),
        "approval.notify": ApprovalNotify(database, (), clock),
    }
    shared = SharedMailbox(database, gmail, clock, handlers, Agents(requests), waiting)
    await _furnish(shared)
    return shared


async def _furnish(shared: SharedMailbox) -> None:
    """Two messages, the user's labels, and rules that put a label on, archive and snooze."""
    for name in (LABEL, PRIVATE):
        shared.gmail.labels.create(name, {})
    for number, sender in enumerate(SENDERS):
        gmail_id = shared.gmail.deliver(raw_mail(f"Mail {number}", sender)).id
        id = await keep_mail(
            shared.database, shared.clock, subject=f"Mail {number}", sender=sender, owner=OWNER, event_id=gmail_id
        )
        shared.messages.append(SharedMessage(gmail_id, id, sender))
    first = await shared.database.run(mail.load_message(shared.messages[0].id))
    shared.account_id = first.account_id
    seen = [
        labels.SeenLabel(each.id, each.name, "system" if each.type == "system" else "user")
        for each in shared.gmail.labels.all()
    ]
    await shared.database.run(labels.sync_labels(shared.account_id, seen, shared.clock()))
    rule = (new_id(), RuleDraft("receipts", {"subject_contains": "mail"}, "apply_label", {"label": LABEL}))
    await shared.database.run(add_rules([rule], shared.clock()))
    await shared.database.run(jobs.open_lease(shared.token, "worker", shared.clock(), shared.clock() + LEASE))
    while claimed := await shared.database.run(jobs.claim(shared.token, 100, shared.clock())):
        await shared.database.run(jobs.finish([each.claim for each in claimed], [], shared.clock()))
