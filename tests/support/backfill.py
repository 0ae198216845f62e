"""A mailbox and a switchboard in memory for backfills: nothing waits, everything can fail, and a process can be killed
between any two steps.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any, Literal
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.window import Window
from postroom.core.errors import Conflict, LeaseLost, MailboxError, MessageGone, PostroomError, Refused
from postroom.core.mail.categories import Category, queries_of
from postroom.core.mail.ingestion import IngestionPolicy
from postroom.core.tally import Tally
from postroom.mailboxes.backfill.mailbox import BackfillMailbox
from postroom.mailboxes.backfill.walk import JobStopped
from postroom.mailboxes.following.ingested_ids import IngestedIds
from postroom.mailboxes.following.ingester import MailIngester
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.refused import RefusedMail
from postroom.mailboxes.following.source import Form
from postroom.mailboxes.gmail.resources import Message, MessagePage, MessageRef, read_message
from postroom.sources.runtime import ConnectorHealth
from postroom.sources.switchboard_client import (
    BackfillAssignment,
    BackfillProgress,
    BackfillStatus,
    FailedMessage,
    Receipt,
)
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.refusal import Refusal
from support.clocks import ManualClock
from support.jumping_loop import now

OWNER = "ada@example.com"
ENDPOINT = f"gmail:user:{OWNER}"
LEASE_S = 300.0
UNTIL_2025 = Window(date(2025, 1, 1), date(2025, 3, 31), ZoneInfo("UTC"))
INVOICE = "Your invoice"

Step = Callable[[str], None]
"""Called before and after everything that a connector does to the outside; may raise."""


class Killed(BaseException):
    """The process has ended, between any two steps."""


def quietly(_step: str) -> None:
    """Nothing happens."""


@dataclass
class MemoryArchive:
    """The sandbox's mailbox as a mail source, without HTTP. `errors` are raised when a message is read."""

    mailbox: Mailbox
    step: Step = quietly
    errors: dict[str, MailboxError] = field(default_factory=dict[str, MailboxError])
    searches: list[str] = field(default_factory=list[str])
    read: list[tuple[float, list[str]]] = field(default_factory=list[tuple[float, list[str]]])
    uses: list[str] = field(default_factory=list[str])
    found_too: list[str] = field(default_factory=list[str])
    """Messages that every search finds as well, as Gmail's search is broader than the check."""

    async def room(self, most: int, within_s: float) -> int:
        del within_s
        return most

    def for_use(self, use: Literal["live", "steady", "bulk"]) -> "MemoryArchive":
        self.uses.append(use)
        return self

    async def category_queries(self, categories: Sequence[Category], user_address: str) -> Sequence[str]:
        return queries_of(categories, user_address)

    async def message_pages(
        self, query: str = "", label_ids: Collection[str] = (), most: int = 100
    ) -> AsyncGenerator[MessagePage]:
        before: tuple[int, str] | None = None
        while True:
            self.step("search")
            self.searches.append(query)
            shown, before, estimate = self.mailbox.page(most, query, label_ids, before=before)
            refs = [MessageRef(each.id, each.thread_id) for each in shown]
            if query:
                refs += [MessageRef(id, id) for id in self.found_too]
            yield MessagePage(tuple(refs), None if before is None else "more", estimate)
            if before is None:
                return

    async def message_batches(self, ids: Sequence[str]) -> AsyncGenerator[Mapping[int, Message | MailboxError]]:
        self.step("read")
        self.read.append((now(), list(ids)))
        yield {place: self._message(id) for place, id in enumerate(ids)}

    async def get_message(self, id: str, form: Form = "full") -> Message:
        outcome = self._message(id, form)
        if isinstance(outcome, MailboxError):
            raise outcome
        return outcome

    async def get_messages(
        self, ids: Sequence[str], form: Form = "full", headers: Collection[str] = ()
    ) -> list[Message | MailboxError]:
        return [self._message(id, form) for id in ids]

    def _message(self, id: str, form: Form = "full") -> Message | MailboxError:
        if id in self.errors:
            return self.errors[id]
        try:
            return read_message(self.mailbox.get(id).as_json(form))
        except Refusal:
            return MessageGone("it is gone")


@dataclass
class MemorySwitchboard:
    """One backfill job and the intake, as far as connectors see them. The times are those of the jumping loop."""

    window: Window = UNTIL_2025
    categories: tuple[str, ...] = ("finance",)
    rate_limit_per_hour: int = 1_000_000
    message_cost_micros: int = 0
    in_background: bool = False
    step: Step = quietly
    job_id: UUID = field(default_factory=uuid4)
    status: str = "pending"
    error: str | None = None
    cursor: BackfillCursor | None = None
    batch_seq: int = 0
    lease_token: str | None = None
    lease_until: float = 0.0
    wait_s: float = 0.0
    processed: int = 0
    skipped: int = 0
    spent_micros: int = 0
    cap_micros: int | None = None
    live_backlog: bool = False
    failed: list[FailedMessage] = field(default_factory=list[FailedMessage])
    by_category: Counter[str] = field(default_factory=Counter[str])
    envelopes: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    refuse: dict[str, PostroomError] = field(default_factory=dict[str, PostroomError])
    polls: list[float] = field(default_factory=list[float])
    reports: list[tuple[float, BackfillProgress]] = field(default_factory=list[tuple[float, BackfillProgress]])
    poll_errors: list[PostroomError] = field(default_factory=list[PostroomError])
    """Errors of the next polls."""
    fail_reports: list[PostroomError] = field(default_factory=list[PostroomError])
    """Errors of the next reports, which are lost on the way."""
    lose_answers: list[PostroomError] = field(default_factory=list[PostroomError])
    """Errors of the next reports, which are counted first."""

    async def poll_backfill(
        self, connector_type: str, endpoint_identity: str, lease_token: str | None = None
    ) -> BackfillAssignment | None:
        self.step("poll")
        self.polls.append(now())
        if self.poll_errors:
            raise self.poll_errors.pop(0)
        is_free = self.status == "pending" or (
            self.status == "active" and (now() >= self.lease_until or lease_token == self.lease_token)
        )
        if not is_free:
            return None
        self.status, self.lease_token, self.lease_until = "active", uuid4().hex, now() + LEASE_S
        self.step("poll")
        return BackfillAssignment(
            self.job_id,
            self.lease_token,
            self.batch_seq,
            self.wait_s,
            self.categories,
            self.window,
            self.cursor or BackfillCursor.first(self.window),
            self.rate_limit_per_hour,
            self.message_cost_micros,
            self.in_background,
        )

    async def report_backfill(self, progress: BackfillProgress) -> BackfillStatus:
        self.step("report")
        if self.fail_reports:
            raise self.fail_reports.pop(0)
        self.reports.append((now(), progress))
        if progress.lease_token != self.lease_token:
            raise LeaseLost("another connector has the job")
        self._apply(progress)
        self.step("report")
        if self.lose_answers:
            raise self.lose_answers.pop(0)
        left = None if self.cap_micros is None else self.cap_micros - self.spent_micros
        return BackfillStatus(self.status, self.live_backlog, left)

    def _apply(self, progress: BackfillProgress) -> None:
        if progress.batch_seq == self.batch_seq or self.status != "active":
            return
        if progress.batch_seq != self.batch_seq + 1:
            raise Conflict("batch_seq", f"is {progress.batch_seq}", f"use {self.batch_seq + 1}")
        assert self.cursor is None or self.cursor == progress.cursor or self.cursor.is_behind(progress.cursor)
        assert progress.status != "completed" or progress.cursor.at_end(self.window)
        self.batch_seq, self.cursor, self.lease_until = progress.batch_seq, progress.cursor, now() + LEASE_S
        self.processed += progress.processed
        self.skipped += progress.skipped
        self.spent_micros += progress.spent_micros
        self.failed += progress.failed
        self.by_category.update(progress.categories)
        self.status, self.error = progress.status, progress.error
        if self.cap_micros is not None and self.spent_micros >= self.cap_micros:
            self.status = "cost_capped"

    async def ingest_batch(self, envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        results: list[Receipt | PostroomError] = []
        for envelope in envelopes:
            self.step("ingest")
            results.append(self._ingest(dict(envelope)))
        self.step("ingest")
        return results

    async def ingest(self, envelope: Mapping[str, Any]) -> Receipt:
        result = self._ingest(dict(envelope))
        if isinstance(result, PostroomError):
            raise result
        return result

    def _ingest(self, envelope: dict[str, Any]) -> Receipt | PostroomError:
        id = envelope["event"]["external_event_id"]
        if id in self.refuse:
            return self.refuse[id]
        if envelope["control"].get("backfill_job_id") and self.status != "active":
            return Refused("the backfill job is not active")
        duplicate = id in self.envelopes
        self.envelopes.setdefault(id, envelope)
        return Receipt(uuid4(), duplicate)

    async def changes(self, reports: Sequence[Mapping[str, Any]]) -> None: ...

    async def heartbeat(self, report: Mapping[str, Any]) -> None: ...


@dataclass
class MemoryLive:
    """The live side: counts its rounds."""

    step: Step = quietly
    rounds: int = 0
    waits: Callable[[], Any] | None = None
    on_sync: Callable[[], object] = lambda: None

    async def sync(self) -> int:
        self.step("sync")
        self.rounds += 1
        self.on_sync()
        return 0

    async def idle(self) -> None:
        if self.waits is not None:
            await self.waits()


@dataclass
class BackfillSetup:
    """A mailbox, a switchboard, and what a connector makes of them: each `mailbox` is a new start."""

    source: MemoryArchive
    board: MemorySwitchboard
    live: MemoryLive = field(default_factory=MemoryLive)
    policy: Callable[[], IngestionPolicy] = IngestionPolicy
    interval: int = 50
    clock: ManualClock = field(default_factory=ManualClock)
    folder: Path | None = None

    def step_with(self, step: Step) -> None:
        self.source.step = self.board.step = self.live.step = step

    def mailbox(self) -> BackfillMailbox:
        knowledge = Knowledge([OWNER], policy=self.policy)
        health = ConnectorHealth(self.clock)
        ingested, refused = IngestedIds(), RefusedMail(self.folder, self.clock)
        ingester = MailIngester(
            self.board, ENDPOINT, knowledge, ingested, refused, clock=self.clock, tally=Tally(), health=health
        )
        return BackfillMailbox(
            source=self.source,
            switchboard=self.board,
            ingester=ingester,
            knowledge=knowledge,
            live=self.live,
            email=OWNER,
            endpoint_identity=ENDPOINT,
            progress_interval=self.interval,
            clock=self.clock,
            seconds=now,
        )


def backfill_setup(**job: Any) -> BackfillSetup:
    mailbox = Mailbox(OWNER, Random(7), clock=ManualClock())
    return BackfillSetup(MemoryArchive(mailbox), MemorySwitchboard(**job))


def deliver(
    setup: BackfillSetup,
    *moments: datetime,
    subject: str = INVOICE,
    labels: Collection[str] = ("INBOX",),
    more: str = "",
) -> list[str]:
    """Mail that came at these moments; the ids."""
    return [
        setup.source.mailbox.deliver(
            f"From: shop@example.org\r\nTo: {OWNER}\r\nSubject: {subject}\r\n{more}"
            f"Message-ID: <{uuid4().hex}@example.org>\r\n\r\nThank you.\r\n".encode(),
            labels,
            moment,
        ).id
        for moment in moments
    ]


def at(month: int, day: int, hour: int = 12, minute: int = 0, second: int = 0, year: int = 2025) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


async def walk(setup: BackfillSetup) -> str:
    """One connector process that polls and walks until the job stops; its last status."""
    assignment = await setup.board.poll_backfill("gmail", ENDPOINT)
    assert assignment is not None, "there is no job"
    try:
        await setup.mailbox().begin(assignment).work()
    except JobStopped as stopped:
        return stopped.status
    raise AssertionError("a walk ends with the job")
