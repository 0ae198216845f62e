"""Refused programs: each refusal is counted, and audited once a minute."""

import structlog

from postroom.core.errors import AccessRefused, StoreError
from postroom.core.metrics import ACCESS_REFUSED
from postroom.core.roles import Principal
from postroom.core.tally import Tally
from postroom.operations.caller import AuditThrottle
from postroom.operations.problems import problem_of
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import AuditEntry, record_audit
from postroom.system.wall_clock import Clock

log = structlog.get_logger()


class Refusals:
    """Refusals of programs. The audit log is kept for good, so repeated refusals are written once a minute, with
    their number."""

    def __init__(self, database: Database, tally: Tally, clock: Clock) -> None:
        self._database = database
        self._tally = tally
        self._clock = clock
        self._audited = AuditThrottle()

    async def note(self, who: Principal, tool: str, refused: AccessRefused) -> None:
        """Count and audit a refusal. A failure of the database here does not change the answer."""
        self._tally.count(ACCESS_REFUSED, refused.reason)
        repeated = self._audited.since_last((who.actor, tool, refused.reason), self._clock())
        if repeated is None:
            return
        entry = AuditEntry(
            id=new_id(),
            actor=who.actor,
            role=who.role.value,
            action="access.refused",
            object_type="tool",
            object_id=tool,
            before=None,
            after={"repeated": repeated} if repeated else None,
            reason=problem_of(refused).text,
        )
        try:
            await self._database.run(record_audit(entry, self._clock()))
        except StoreError as error:
            log.error("access.refusal_not_audited", tool=tool, error=type(error).__name__)
