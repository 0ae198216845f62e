"""The dispatcher: takes mail from the buffer in tier order and hands it to `classify`.

It hands over only while few are outstanding. The job queue keeps its own order, so whatever is handed over early has
left the tiers behind; urgent mail must still find room near the front. Jobs that sleep until a retry are nobody's
way: they do not count.
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
from postroom.core.job_types import Catalogue
from postroom.core.jobs import NewJob
from postroom.core.mail import read_mail
from postroom.core.queues import EMAIL, Policy
from postroom.store import decisions, inbox, jobs, mail
from postroom.store.acceptance import CHANNEL
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.store.listeners import signalled
from postroom.store.new_jobs import new_job
from postroom.switchboard.buffer import Buffer
from postroom.tracing import current_traceparent, span

log = structlog.get_logger()

MOST_OUTSTANDING = 20
# What no message is to blame for: it is tried again when the database is back. All else is one message's own trouble.
DATABASE_IS_AWAY = (DatabaseUnavailable, DatabaseFull, DatabaseReadOnly, DatabaseCorrupt, SchemaMismatch)
PRIORITIES = {"high_priority": 30, "interactive": 20, "default": 10, "history": 0}


class Dispatcher:
    """Moves mail from the inbox to its message row and its job."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        buffer: Buffer | None = None,
        policy: Policy = EMAIL,
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
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Until canceled. What was leased and not handed over returns when its lease runs out."""
        channels = (CHANNEL, decisions.CHANNEL)
        subscriptions = [self._database.subscribe(each, lambda _message: self._wake.set()) for each in channels]
        try:
            while True:
                self._wake.clear()
                try:
                    handed_over = await self.tick()
                except StoreError as error:
                    log.warning("dispatcher.interrupted", error=type(error).__name__)
                    handed_over = 0
                if not handed_over:
                    await signalled(self._wake, self._poll.total_seconds())
        finally:
            for subscription in subscriptions:
                subscription.close()

    async def tick(self) -> int:
        """One round: hands over as many as there is room for, and says how many."""
        if self._outstanding:
            self._outstanding = await self._database.run(jobs.active_among(sorted(self._outstanding)))
        room = self._most - len(self._outstanding)
        if room <= 0:
            return 0
        await self._buffer.return_expired_now_and_then()
        leased = await self._buffer.lease(self._policy, room)
        await self._hand_over(leased)
        return len(leased)

    async def _hand_over(self, leased: Sequence[inbox.Leased]) -> None:
        """All of them together, so that they share a commit. Once the database is away, what was not begun is left."""
        accounts, away = await self._accounts_of(leased), list[StoreError]()

        async def hand_over(message: inbox.Leased) -> None:
            if not away:
                try:
                    await self._hand_over_safely(message, accounts[message.endpoint_identity])
                except DATABASE_IS_AWAY as error:
                    away.append(error)

        await asyncio.gather(*(hand_over(message) for message in leased))
        if away:
            raise away[0]

    async def _accounts_of(self, leased: Sequence[inbox.Leased]) -> dict[str, mail.Account | Exception]:
        """Each read once, or why it cannot be: that is the trouble of its own messages only."""
        found: dict[str, mail.Account | Exception] = {}
        for identity in {message.endpoint_identity for message in leased}:
            try:
                found[identity] = await self._database.run(mail.account_of(identity))
            except DATABASE_IS_AWAY:
                raise
            except Exception as error:
                found[identity] = error
        return found

    async def _hand_over_safely(self, message: inbox.Leased, account: mail.Account | Exception) -> None:
        """Raises only when the database is away."""
        try:
            if isinstance(account, Exception):
                raise account
            await self._hand_over_one(message, account)
        except LeaseLost:
            log.warning("dispatcher.lease_lost", message=str(message.id))
        except DATABASE_IS_AWAY:
            raise
        except ConstraintBroken as error:
            await self._give_up(message, f"the database cannot keep it: {type(error).__name__}")
        except StoreError as error:
            # Nobody's fault that we know of: it comes back when its lease is over, and others go on.
            log.warning("dispatcher.message_left", message=str(message.id), error=type(error).__name__)
        except Exception as error:
            reason = str(error) if isinstance(error, PostroomError) else f"unreadable: {type(error).__name__}"
            await self._give_up(message, reason)
            log.warning("dispatcher.message_failed", message=str(message.id), error=type(error).__name__)

    async def _hand_over_one(self, message: inbox.Leased, account: mail.Account) -> None:
        with span("dispatch", message.traceparent):
            content = read_mail(message.envelope)
            ids, job_id = (new_id(), new_id()), new_id()
            classify = self._classify(account.id, job_id, message)
            now = self._clock()
            await self._database.run(mail.store_message(message, account, ids, content, classify, now))
        self._count_end(message, "done")
        self._outstanding.add(job_id)

    def _classify(self, account_id: UUID, job_id: UUID, message: inbox.Leased) -> Callable[[UUID], NewJob]:
        """Makes the job for whichever row the message becomes; the same job each time it is asked.

        The metadata has a key of its own: the whole message, coming after it, is looked at whatever became of that job.
        """
        traceparent = current_traceparent()
        extent = "" if message.ingestion_tier == "full" else f":{message.ingestion_tier}"

        def make(message_id: UUID) -> NewJob:
            job = new_job(
                self._catalogue,
                "classify",
                {"account_id": str(account_id), "message_id": str(message_id)},
                key=f"classify:{account_id}:{message_id}{extent}",
                priority=PRIORITIES[message.tier],
                traceparent=traceparent,
            )
            return job._replace(id=job_id)

        return make

    async def _give_up(self, message: inbox.Leased, reason: str) -> None:
        try:
            await self._database.run(inbox.give_up(message, reason, self._clock()))
        except LeaseLost:
            log.warning("dispatcher.lease_lost", message=str(message.id))
        else:
            self._count_end(message, "failed")

    def _count_end(self, message: inbox.Leased, state: str) -> None:
        ended = inbox.Passed(message.queue, message.tier, message.accepted_at, state)
        self._buffer.count_ends([ended], self._clock())
