"""The services behind the MCP and HTTP endpoints of the switchboard."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from postroom.core.outbound.strikes import USUAL_STRIKES, StrikeRule
from postroom.core.queue.queues import Queues
from postroom.core.tally import Tally
from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.interfaces.http.searches import SearchLimiter
from postroom.interfaces.http.token_check import TokenCheck
from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests
from postroom.mailboxes.providers import AccountTokens
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, PaceOf, paces_of
from postroom.operations.backfill.backfill_work import BackfillWork
from postroom.outbound.submission.submissions import Submissions
from postroom.settings.mailboxes import BackfillSettings
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings
from postroom.store.engine.clock import Clock
from postroom.store.engine.database import Database
from postroom.triage.act.agents import Agents


class AuditThrottle:
    """Recent refusals or reads, by caller and object, so that repeating them cannot fill the audit log."""

    def __init__(self, quiet: timedelta = timedelta(minutes=1), most: int = 10_000) -> None:
        self._quiet = quiet
        self._most = most
        self._last: dict[tuple[str, ...], tuple[datetime, int]] = {}

    def since_last(self, what: tuple[str, ...], now: datetime) -> int | None:
        """How many were skipped since the last audited one; None if this one is to be skipped too."""
        written_at, skipped = self._last.get(what, (None, 0))
        if written_at is not None and now - written_at < self._quiet:
            self._last[what] = written_at, skipped + 1
            return None
        if len(self._last) >= self._most:
            self._last.clear()
        self._last[what] = now, 0
        return skipped


@dataclass(frozen=True, slots=True)
class Services:
    """All services that the endpoints use."""

    intake: Intake
    buffer: Buffer
    database: Database
    queues: Queues
    token_check: TokenCheck
    tally: Tally
    clock: Clock
    refusals: AuditThrottle = field(default_factory=AuditThrottle)
    looks: AuditThrottle = field(default_factory=AuditThrottle)
    searches: SearchLimiter = field(default_factory=SearchLimiter)
    credentials: AccountTokens | None = None
    agents: Agents | None = None
    submissions: Submissions | None = None
    backfill_settings: BackfillSettings = field(default_factory=lambda: BackfillSettings.model_validate({}))
    model_settings: ModelSettings = field(default_factory=lambda: ModelSettings.model_validate({}))
    pace_of: PaceOf = field(default_factory=lambda: paces_of(Settings.model_validate({})))
    strikes: StrikeRule = USUAL_STRIKES
    requests: ConnectorRequests = field(init=False)
    backfills: Backfills = field(init=False)
    estimates: BackfillEstimates = field(init=False)
    backfill_work: BackfillWork = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "requests", ConnectorRequests(self.database, self.clock))
        backfills = Backfills(self.database, self.backfill_settings, self.model_settings, self.clock)
        object.__setattr__(self, "backfills", backfills)
        estimates = BackfillEstimates(backfills, self.model_settings, self.pace_of)
        object.__setattr__(self, "estimates", estimates)
        work = BackfillWork(self.database, backfills, self.queues["email"], self.clock)
        object.__setattr__(self, "backfill_work", work)
