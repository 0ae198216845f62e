"""The dispatcher: takes mail from the buffer in tier order and hands it to `classify`.

It hands over only while few are outstanding. The job queue keeps its own order, so whatever is handed over early has
left the tiers behind; urgent mail must still find room near the front.
"""

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import structlog

from postroom.core.envelope import Envelope
from postroom.core.errors import LeaseLost, PostroomError, StoreError
from postroom.core.job_types import Catalogue
from postroom.core.mail import read_mail
from postroom.core.picker import EMAIL, Policy
from postroom.store import actions, inbox, jobs, mail
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.store.listeners import signalled
from postroom.store.new_jobs import new_job

log = structlog.get_logger()

TRACEPARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
LEASE = timedelta(seconds=60)
MOST_OUTSTANDING = 20
PRIORITIES = {"high_priority": 30, "interactive": 20, "default": 10, "history": 0}


class Dispatcher:
    """Moves mail from the inbox to its message row and its job."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        policy: Policy = EMAIL,
        most_outstanding: int = MOST_OUTSTANDING,
        poll: timedelta = timedelta(seconds=1),
        clock: Clock = wall_clock,
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._policy = policy
        self._most = most_outstanding
        self._poll = poll
        self._clock = clock
        self._outstanding: set[UUID] = set()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Until canceled. What was leased and not handed over returns when its lease runs out."""
        channels = (inbox.CHANNEL, actions.CHANNEL)
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
        await self._database.run(inbox.return_expired(self._clock()))
        if self._outstanding:
            self._outstanding = await self._database.run(jobs.live_among(sorted(self._outstanding)))
        room = self._most - len(self._outstanding)
        if room <= 0:
            return 0
        leased = await self._database.run(inbox.lease(self._policy, room, new_id(), self._clock() + LEASE))
        await self._hand_over(leased)
        return len(leased)

    async def _hand_over(self, leased: Sequence[inbox.Leased]) -> None:
        for message in leased:
            try:
                await self._hand_over_one(message)
            except LeaseLost:
                log.warning("dispatcher.lease_lost", message=str(message.id))
            except StoreError:
                raise
            except Exception as error:
                reason = str(error) if isinstance(error, PostroomError) else f"unreadable: {type(error).__name__}"
                await self._database.run(inbox.give_up(message, reason, self._clock()))
                log.warning("dispatcher.message_failed", message=str(message.id), error=type(error).__name__)

    async def _hand_over_one(self, message: inbox.Leased) -> None:
        account = await self._database.run(mail.account_of(message.endpoint_identity))
        envelope = message.envelope
        content = read_mail(envelope)
        thread_id, message_id = new_id(), new_id()
        job = None
        if message.ingestion_tier == "full":
            job = new_job(
                self._catalogue,
                "classify",
                {"account_id": str(account.id), "message_id": str(message_id)},
                key=f"classify:{account.id}:{message_id}",
                priority=PRIORITIES[message.tier],
                traceparent=_traceparent(envelope),
            )
        await self._database.run(
            mail.store_message(message, account, (thread_id, message_id), content, job, self._clock())
        )
        if job is not None:
            self._outstanding.add(job.id)


def _traceparent(envelope: Envelope) -> str | None:
    """A trace is a help, never a reason to refuse mail: what is malformed is dropped."""
    given = (envelope.control.trace_context or {}).get("traceparent", "")
    return given if TRACEPARENT.fullmatch(given) else None
