"""Read the labels of each mailbox every half minute, so that changes there are known soon.

Not a job: a failed read loses nothing, since the next one sees everything (decision 0029). Nothing is written while
nothing has changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

import structlog

from postroom.core.errors import PostroomError
from postroom.core.mail.mailbox import MailboxOf
from postroom.store.engine.database import Database
from postroom.store.mail import labels
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

# A new label should be known within a minute: this interval, and time for the call itself.
EVERY_S = 30.0


class LabelWatch:
    """Remember each mailbox's labels, and store what has changed."""

    def __init__(self, database: Database, mailbox_of: MailboxOf, clock: Clock = wall_clock) -> None:
        self._database = database
        self._mailbox_of = mailbox_of
        self._clock = clock
        self._last: dict[UUID, frozenset[labels.SeenLabel]] = {}

    async def run(
        self,
        accounts: Callable[[], Awaitable[Iterable[UUID]]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Run until canceled."""
        while True:
            try:
                await asyncio.gather(*map(self.look, await accounts()))
            except PostroomError as error:
                log.warning("labels.watch_interrupted", error=type(error).__name__)
            await sleep(EVERY_S)

    async def look(self, account_id: UUID) -> bool:
        """Return whether something has changed. Errors are left to the next read, and to the job for the same task,
        which tells the user about a lost consent."""
        asked_at = self._clock()
        try:
            async with asyncio.timeout(EVERY_S):
                seen = frozenset(labels.seen(await (await self._mailbox_of(account_id)).labels()))
            if seen == self._last.get(account_id):
                return False
            synced = await self._database.run(labels.sync_labels(account_id, sorted(seen), self._clock(), asked_at))
        except (PostroomError, TimeoutError) as error:
            log.info("labels.not_seen", account=str(account_id), error=type(error).__name__)
            return False
        self._last[account_id] = seen
        if synced.disabled:
            log.warning("rules.disabled_for_labels", account=str(account_id), rules=len(synced.disabled))
        return True
