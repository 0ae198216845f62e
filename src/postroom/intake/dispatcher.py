"""The dispatcher: leases mail from the buffer in tier order and enqueues a `classify` job for each.

The picker decides the order, and nothing after it may change that. So all these jobs have the same priority, and are
claimed in the order in which they were dispatched. With priorities by tier the picker's guard would have no effect: as
soon as jobs have to wait, urgent ones would overtake the others forever.

It dispatches only while few jobs are outstanding, so that urgent mail has few ahead of it. Jobs waiting for a retry do
not count. Of old mail, from a backfill, very few may be outstanding: however slow a model is, it keeps no worker from
mail that has just arrived.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

import structlog

from postroom.core.errors import (
    ConstraintBroken,
    DatabaseCorrupt,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnavailable,
    LeaseLost,
    PostroomError,
    SchemaMismatch,
    StoreError,
)
from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import Catalogue
from postroom.core.lifecycle import InboxState
from postroom.core.mail.message import read_mail
from postroom.core.mail.stored_categories import stored_categories
from postroom.core.queue.queues import EMAIL, HISTORY, QueuePolicy
from postroom.intake.buffer import Buffer
from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.intake import inbox
from postroom.store.intake.acceptance import CHANNEL
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import classify_job
from postroom.store.mail import mail
from postroom.system.wall_clock import Clock, wall_clock
from postroom.telemetry.tracing import current_traceparent, span

log = structlog.get_logger()

MOST_OUTSTANDING = 20
MOST_OLD = 2
# While jobs are outstanding, or when the database failed: nothing is announced when it works again.
SOON = timedelta(seconds=1)
# Errors of the database as a whole, retried when it is back. Any other error concerns a single message.
DATABASE_IS_AWAY = (DatabaseUnavailable, DatabaseFull, DatabaseReadOnly, DatabaseCorrupt, SchemaMismatch)


class Dispatcher:
    """Moves mail from the inbox to its `messages` row and its first job."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        buffer: Buffer | None = None,
        policy: QueuePolicy = EMAIL,
        most_outstanding: int = MOST_OUTSTANDING,
        poll: timedelta = timedelta(seconds=1),
        clock: Clock = wall_clock,
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._buffer = buffer or Buffer(database, clock=clock)
        self._policy = policy
        self._most = most_outstanding
        self._poll = poll
        self._clock = clock
        self._outstanding: set[UUID] = set()
        self._old: set[UUID] = set()
        self._wake = asyncio.Event()
        self._has_begun = False

    async def run(self) -> None:
        """Run until canceled. Leased messages that were not dispatched return when their leases expire."""
        channels = (CHANNEL, decisions.CHANNEL)
        subscriptions = [self._database.subscribe(each, lambda _message: self._wake.set()) for each in channels]
        try:
            while True:
                self._wake.clear()
                dispatched, has_failed = 0, False
                try:
                    dispatched = await self.tick()
                except StoreError as error:
                    log.warning("dispatcher.interrupted", error=type(error).__name__)
                    has_failed = True
                if not dispatched:
                    poll = min(self._poll, SOON) if self._outstanding or has_failed else self._poll
                    await signalled(self._wake, poll.total_seconds())
        finally:
            for subscription in subscriptions:
                subscription.close()

    async def tick(self) -> int:
        """Dispatch as many messages as there is room for; return how many."""
        if self._outstanding:
            self._outstanding = await self._database.run(jobs.active_among(sorted(self._outstanding)))
            self._old &= self._outstanding
        room = self._most - len(self._outstanding)
        if room <= 0:
            return 0
        await self._buffer.return_expired_periodically()
        limits = {HISTORY: MOST_OLD - len(self._old)} if HISTORY in self._policy.guards else {}
        leased = await self._buffer.lease(self._policy, room, limits)
        await self._dispatch(leased)
        return len(leased)

    async def _dispatch(self, leased: Sequence[inbox.LeasedMessage]) -> None:
        """Store the messages in the order of the picks, in one transaction or, if one of them fails, one by one.

        Raises only if the database is away. Messages that were not stored return when their leases expire.
        """
        accounts = await self._accounts_of(leased)
        ready: list[mail.NewMessage] = []
        for message in leased:
            if (prepared := await self._prepare(message, accounts[message.endpoint_identity])) is not None:
                ready.append(prepared)
        if not ready:
            return
        try:
            await self._database.run(mail.store_messages(ready, self._clock()))
        except DATABASE_IS_AWAY:
            raise
        except Exception:
            for each in ready:
                await self._dispatch_alone(each)
        else:
            for each in ready:
                self._note_dispatched(each)
        if self._outstanding and not self._has_begun:
            self._has_begun = True
            log.info("dispatcher.first_mail")

    async def _accounts_of(self, leased: Sequence[inbox.LeasedMessage]) -> dict[str, mail.Account | Exception]:
        """The account of each endpoint, or the error of reading it, which concerns only its own messages."""
        found: dict[str, mail.Account | Exception] = {}
        for identity in {message.endpoint_identity for message in leased}:
            try:
                found[identity] = await self._database.run(mail.account_of(identity))
            except DATABASE_IS_AWAY:
                raise
            except Exception as error:
                found[identity] = error
        return found

    async def _prepare(self, message: inbox.LeasedMessage, account: mail.Account | Exception) -> mail.NewMessage | None:
        """Prepare a message for storing; None, and failed, if it cannot be read or has no account."""
        try:
            if isinstance(account, Exception):
                raise account
            with span("dispatch", message.traceparent):
                job_id = new_id()
                classify = self._classify(account.id, job_id, message)
                envelope = message.envelope
                content = read_mail(envelope)
                categories = stored_categories(content, account.email, message.policy_tier)
        except DATABASE_IS_AWAY:
            raise
        except Exception as error:
            await self._give_up(message, error)
            return None
        return mail.NewMessage(
            message,
            account,
            (new_id(), new_id()),
            content,
            job_id,
            classify,
            categories,
            is_backfilled=envelope.control.backfill_job_id is not None,
            is_on_demand=envelope.is_on_demand,
        )

    async def _dispatch_alone(self, ready: mail.NewMessage) -> None:
        """Store one message. Raises only if the database is away."""
        message = ready.leased
        try:
            await self._database.run(mail.store_messages([ready], self._clock()))
        except LeaseLost:
            log.warning("dispatcher.lease_lost", message=str(message.id))
        except DATABASE_IS_AWAY:
            raise
        except ConstraintBroken as error:
            await self._give_up(message, error)
        except StoreError as error:
            # Perhaps not the message's fault: it returns when its lease expires, and the others continue.
            log.warning("dispatcher.message_left", message=str(message.id), error=type(error).__name__)
        except Exception as error:
            await self._give_up(message, error)
        else:
            self._note_dispatched(ready)

    def _note_dispatched(self, ready: mail.NewMessage) -> None:
        self._count_end(ready.leased, "done")
        self._outstanding.add(ready.job_id)
        if ready.leased.tier == HISTORY:
            self._old.add(ready.job_id)

    def _classify(self, account_id: UUID, job_id: UUID, message: inbox.LeasedMessage) -> Callable[[UUID], NewJob]:
        """Return a function that makes the job for the row the message becomes; the same job each time."""
        traceparent = current_traceparent()

        def make(message_id: UUID) -> NewJob:
            job = classify_job(self._catalogue, account_id, message_id, message.ingestion_tier, traceparent)
            return job._replace(id=job_id)

        return make

    async def _give_up(self, message: inbox.LeasedMessage, error: Exception) -> None:
        log.warning("dispatcher.message_failed", message=str(message.id), error=type(error).__name__)
        try:
            await self._database.run(inbox.give_up(message, _reason(error), self._clock()))
        except LeaseLost:
            log.warning("dispatcher.lease_lost", message=str(message.id))
        else:
            self._count_end(message, "failed")

    def _count_end(self, message: inbox.LeasedMessage, state: InboxState) -> None:
        ended = inbox.EndedMessage(message.queue, message.tier, message.accepted_at, state)
        self._buffer.count_ends([ended], self._clock())


def _reason(error: Exception) -> str:
    match error:
        case ConstraintBroken():
            return f"the database cannot store it: {type(error).__name__}"
        case PostroomError():
            return str(error)
        case _:
            return f"unreadable: {type(error).__name__}"
