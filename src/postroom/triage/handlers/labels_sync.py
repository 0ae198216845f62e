"""The `labels.sync.gmail` job: store the labels of a mailbox; disable a rule whose label is gone."""

import structlog

from postroom.core.errors import MailboxError
from postroom.core.mail.mailbox import MailboxOf, job_error_of
from postroom.jobs.run import JobRun
from postroom.store.engine.database import Database
from postroom.store.mail import labels
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.handlers.payload import uuid_field

log = structlog.get_logger()


class LabelsSyncGmail:
    """Ask the mailbox, and store its labels."""

    def __init__(self, database: Database, mailbox_of: MailboxOf, clock: Clock = wall_clock) -> None:
        self._database = database
        self._mailbox_of = mailbox_of
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        account_id = uuid_field(run.job, "account_id")
        asked_at = self._clock()
        try:
            found = await (await self._mailbox_of(account_id)).labels()
        except MailboxError as error:
            raise job_error_of(error, "labels.sync", account_id) from error
        synced = await self._database.run(labels.sync_labels(account_id, labels.seen(found), self._clock(), asked_at))
        if synced.disabled:
            log.warning("rules.disabled_for_labels", account=str(account_id), rules=len(synced.disabled))
