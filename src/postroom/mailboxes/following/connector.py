"""The work that connectors of all mailboxes share: rounds that ingest new mail, mail on request, pauses after errors.

One connector, two drivers: jobs call `sync` for one round; a separate process calls `run`, which runs rounds until it
is stopped. Ingesting twice is harmless: the switchboard recognises duplicates.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Required, TypedDict, Unpack

import structlog

from postroom.core.errors import (
    AccountUnusable,
    IntakeRefused,
    MailboxError,
    MailboxLater,
    NeedsPerson,
    NotAllowed,
    PostroomError,
    Refused,
    SettingsError,
    StoreError,
    SwitchboardUnavailable,
)
from postroom.core.tally import Tally
from postroom.mailboxes.backfill.mailbox import BackfillMailbox
from postroom.mailboxes.following.correspondents import Correspondents
from postroom.mailboxes.following.hints import Hints, NoHints, RoundPause
from postroom.mailboxes.following.ingested_ids import IngestedIds
from postroom.mailboxes.following.ingester import IngestResult, MailIngester
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.mail_reports import MailReports
from postroom.mailboxes.following.message_reader import MessageReader
from postroom.mailboxes.following.ordered_reading import OrderedReading
from postroom.mailboxes.following.reading_list import ReadingList
from postroom.mailboxes.following.refused import RefusedMail
from postroom.mailboxes.following.sent_mail import SentMail
from postroom.mailboxes.following.set_aside import SetAside
from postroom.mailboxes.following.source import CHUNK, MailSource, SourceMessage
from postroom.sources.runtime import ConnectorHealth
from postroom.sources.switchboard_client import BackfillSource, SwitchboardClient

log = structlog.get_logger()

LONGEST_PAUSE = timedelta(seconds=60)
# So long is read before new mail is looked for again; and so many times as long as looking for it has taken.
A_WHILE_S = 2.0
TIMES_AS_LONG = 4
# Errors that waiting does not fix: the user or the operator must act.
NEEDS_A_PERSON = (Refused, AccountUnusable, NeedsPerson, NotAllowed)
CONTACTS_MISSING = "the contacts are missing or too old: mail from people you know gets the tier of other mail"


class NoContacts(PostroomError):
    """Known contacts cannot be recognised."""


class ConnectorTerms(TypedDict, total=False):
    """The terms of a connector, whatever its mailbox. `folder` stores which messages were ingested, refused, and set
    aside. The first look reaches back to `acts_from`.
    """

    email: Required[str]
    endpoint_identity: Required[str]
    clock: Required[Callable[[], datetime]]
    tally: Tally | None
    health: ConnectorHealth | None
    knowledge: Knowledge | None
    folder: Path | None
    hints: Hints | None
    acts_from: datetime | None


class MailConnector(ABC):
    """The connector of one mailbox."""

    def __init__(
        self,
        source: MailSource,
        switchboard: SwitchboardClient,
        waiting: ReadingList,
        read_at_once: int = CHUNK,
        **terms: Unpack[ConnectorTerms],
    ) -> None:
        self._source = source
        self._email, self._endpoint_identity = terms["email"], terms["endpoint_identity"]
        self._clock = clock = terms["clock"]
        self._acts_from = terms.get("acts_from")
        self._health = terms.get("health") or ConnectorHealth(clock)
        self._knowledge = terms.get("knowledge") or Knowledge([self._email])
        folder = terms.get("folder")
        people = Correspondents(switchboard, self._knowledge)
        self._ingester = MailIngester(
            switchboard,
            self._endpoint_identity,
            self._knowledge,
            IngestedIds(None if folder is None else folder / "handed_in.ids"),
            RefusedMail(folder, clock),
            clock=clock,
            tally=terms.get("tally") or Tally(),
            health=self._health,
            people=people,
        )
        self.sent_mail = SentMail(source, self._knowledge.sent, people, self._health)
        reports = MailReports(switchboard, self._health)
        self._reader = MessageReader(source, self._ingester, SetAside(folder, clock), self._health, reports)
        self._waiting_mail = waiting
        self._reading = OrderedReading(
            waiting, self._reader, source, self._health, at_once=read_at_once, before=self._about_to_read
        )
        self._waiting = RoundPause(terms.get("hints") or NoHints())
        self._one_at_a_time = asyncio.Lock()

    @property
    def email(self) -> str:
        return self._email

    @property
    def knowledge(self) -> Knowledge:
        return self._knowledge

    def sync_now(self) -> None:
        """End the pause between two rounds."""
        self._waiting.end()

    async def sync(self) -> int:
        """Run one round: ingest everything new; return how many messages were new to the switchboard."""
        async with self._one_at_a_time:
            await self._check_mailbox()
            await self._knowledge.refresh()
            self._reader.begin_round()
            try:
                return await self._ingest_new() + await self._reader.try_again()
            finally:
                self.sent_mail.rest()
                self._waiting_mail.rest()

    async def _ingest_new(self) -> int:
        """Look for new mail and read for a while, until nothing waits; return how many messages were new."""
        loop, fresh = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            fresh += await self._find_new()
            a_while = max(A_WHILE_S, TIMES_AS_LONG * (loop.time() - began))
            # The mailbox may have more than there was room for.
            may_be_more = self._waiting_mail.is_full
            learns = self._is_learning
            fresh += await self._reading.read_for(a_while, only_urgent=learns)
            if learns:
                fresh += await self._learn_some()
            if not len(self._waiting_mail) and not may_be_more and not self._is_learning:
                return fresh

    async def idle(self) -> None:
        """Wait until no round is running."""
        async with self._one_at_a_time:
            pass

    def backfill(
        self, switchboard: BackfillSource, progress_interval: int, seconds: Callable[[], float]
    ) -> BackfillMailbox:
        """This mailbox for backfill. Only live mail moves the checkpoint."""
        return BackfillMailbox(
            source=self._source,
            switchboard=switchboard,
            ingester=self._ingester,
            knowledge=self._knowledge,
            live=self,
            email=self._email,
            endpoint_identity=self._endpoint_identity,
            progress_interval=progress_interval,
            clock=self._clock,
            seconds=seconds,
        )

    async def ingest(self, ids: Sequence[str]) -> dict[str, IngestResult]:
        """Ingest exactly these messages, beside a round that may be running; return the outcome of each."""
        await self._check_mailbox()
        return await self._reader.take_requested(ids)

    async def ingest_found(
        self, source: MailSource, ids: Sequence[str]
    ) -> list[tuple[IngestResult, SourceMessage | None]]:
        """Ingest what a search in this source found, beside a round that may be running."""
        await self._check_mailbox()
        return await self._reader.take_found(source, ids, self._live_since())

    @abstractmethod
    async def _check_mailbox(self) -> None:
        """Check once that it is the right mailbox, so that no mail is ingested for another account."""

    @abstractmethod
    def _live_since(self) -> datetime:
        """The time since which mail is live: rounds have ingested it or are going to. What is searched for in that time
        is treated as if a round had found it.
        """

    @abstractmethod
    async def _find_new(self) -> int:
        """Put everything new on the reading list, with a provisional tier, and report changes; return how many messages
        were ingested at once and new to the switchboard.
        """

    @property
    def _is_learning(self) -> bool:
        """Whether something is still to be learned that decides about tiers; meanwhile only urgent mail is read."""
        return False

    async def _learn_some(self) -> int:
        """Learn a part of it; return how many messages were new to the switchboard."""
        return 0

    def _about_to_read(self, ids: Sequence[str]) -> None:  # noqa: B027 - most have nothing to prepare
        """Prepare for reading these messages of the list."""

    async def run(self, poll: timedelta, stop: asyncio.Event | None = None) -> None:
        """Run rounds until `stop` or cancellation. Errors make it wait longer, but never end it."""
        stop = stop or asyncio.Event()
        failures, is_connected = 0, False
        async with self._waiting.listening():
            while not stop.is_set():
                pause, ended = poll, self._ingester.ended
                try:
                    await self.sync()
                    pause = self._pause_after_round(poll)
                    self._report_healthy()
                    if not is_connected:
                        log.info("connector.connected")
                    failures, is_connected = 0, True
                except SettingsError:
                    raise
                except (PostroomError, OSError) as error:
                    # A long round that made progress before it failed is no reason to wait longer.
                    failures = 1 if self._ingester.ended > ended else failures + 1
                    is_connected = False
                    pause = self._pause_after(error, poll, failures)
                    # Only the switchboard's address is told: errors of a mailbox may quote mail.
                    reason = {"reason": str(error)} if isinstance(error, SwitchboardUnavailable) else {}
                    log.warning(
                        "connector.waiting", error=type(error).__name__, **reason, seconds=pause.total_seconds()
                    )
                await self._waiting.wait(pause, stop, hurried=not failures)

    def _pause_after_round(self, poll: timedelta) -> timedelta:
        """The pause after a round that went well."""
        return poll

    def _report_healthy(self) -> None:
        self._health.well()
        if self._knowledge.is_degraded:
            self._health.report_problem("degraded", NoContacts(CONTACTS_MISSING))
        elif (problem := self._waiting.problem) is not None:
            self._health.report_problem("degraded", problem)

    def _pause_after(self, error: Exception, poll: timedelta, failures: int) -> timedelta:
        self._health.report_problem("error" if isinstance(error, NEEDS_A_PERSON) else "degraded", error)
        match error:
            case IntakeRefused():
                return error.retry_after
            case MailboxLater() if error.retry_after is not None:
                return error.retry_after
            case MailboxError() | StoreError() | SwitchboardUnavailable() | Refused() | OSError():
                return min(LONGEST_PAUSE, poll * 2 ** min(failures, 10))
            case _:
                return LONGEST_PAUSE
