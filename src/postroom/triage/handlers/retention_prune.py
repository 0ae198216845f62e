"""The `retention.prune` job: prune mail that is past its time, once a day, if the settings are approved."""

import structlog

from postroom.core.mail.retention import RetentionPolicy
from postroom.jobs.run import JobRun
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.retention import retention_approval
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.act.retention import Retention

log = structlog.get_logger()

ACTOR = "process:retention"


class RetentionPrune:
    """Prune under the approved settings; under others, only record what they would prune."""

    def __init__(self, database: Database, policy: RetentionPolicy, clock: Clock = wall_clock) -> None:
        self._database = database
        self._policy = policy
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        if self._policy.shortest is None:
            return
        retention = Retention(self._database, self._policy, self._clock)
        approval = await self._database.run(retention_approval())
        if approval is None or approval.policy != self._policy.as_json():
            found = await retention.preview(ACTOR)
            log.warning("retention.not_approved", messages=found.counts.messages, remedy="postroom retention enable")
            return
        signed = Signature(new_id(), ACTOR, "worker")
        counts = await retention.prune(signed, approved_only=True, between=run.check_canceled)
        log.info("retention.pruned", messages=counts.messages, held=counts.held)
