"""Intake: validate, recognise duplicates, persist, and only then acknowledge."""

from postroom.core.envelope import envelope_text, parse_envelope
from postroom.core.errors import DatabaseFull, IntakeRefused
from postroom.store import inbox
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.switchboard.disk import COME_BACK, DiskReserve


class Intake:
    """Where every connector and producer hands in."""

    def __init__(self, database: Database, reserve: DiskReserve | None, clock: Clock = wall_clock) -> None:
        self._database = database
        self._reserve = reserve
        self._clock = clock

    async def ingest(self, data: object) -> inbox.Accepted:
        """Accepts one envelope. What this returns for is on disk."""
        if self._reserve is not None:
            self._reserve.check()
        envelope = parse_envelope(data)
        text = envelope_text(envelope)
        tier = "history" if envelope.control.backfill_job_id is not None else envelope.control.policy_tier
        try:
            return await self._database.run(inbox.accept(new_id(), envelope, text, "email", tier, self._clock()))
        except DatabaseFull as error:
            raise IntakeRefused(f"nothing can be accepted: {error}", COME_BACK) from error
