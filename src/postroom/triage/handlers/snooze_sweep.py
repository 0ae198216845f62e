"""Find snoozed mail that nothing would ever bring back, and wake it.

The database may have been restored to a time before the snooze, or have lost its jobs with the account. Called when a
mailbox is compared with a restored database; it can be called at any time.
"""

from uuid import UUID

import structlog

from postroom.core.errors import LabelMissing
from postroom.core.mail.mailbox import MailboxOf
from postroom.store.actions.snooze_wakes import wake_overdue_snoozes
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

AT_ONCE = 100


class SnoozeSweep:
    """Check the mail under the snooze label. It changes nothing itself: the jobs do, unless changes are paused."""

    def __init__(self, database: Database, mailbox_of: MailboxOf, snooze_label: str, clock: Clock = wall_clock) -> None:
        self._database = database
        self._mailbox_of = mailbox_of
        self._snooze_label = snooze_label
        self._clock = clock

    async def __call__(self, account_id: UUID) -> int:
        """Return how many messages are woken. List them before reading their jobs: hidden mail has a job by then."""
        mailbox = await self._mailbox_of(account_id)
        try:
            label_id = await mailbox.label_id(self._snooze_label, create=False)
        except LabelMissing:
            return 0
        listed = await mailbox.find(label_ids=[label_id])
        woken = 0
        for at in range(0, len(listed), AT_ONCE):
            ids = listed[at : at + AT_ONCE]
            woken += await self._database.run(wake_overdue_snoozes(account_id, ids, label_id, self._clock()))
        if woken:
            log.warning("snoozes.forgotten", account=account_id, woken=woken)
        return woken
