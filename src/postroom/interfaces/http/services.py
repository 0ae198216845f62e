"""The services behind the MCP and HTTP endpoints of the switchboard."""

from dataclasses import dataclass, field

from postroom.core.queue.queues import Queues
from postroom.core.roles import Principal
from postroom.core.tally import Tally
from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.interfaces.http.token_check import TokenCheck
from postroom.mailboxes.providers import AccountTokens
from postroom.operations.caller import AuditThrottle, Caller, Ends
from postroom.operations.parts import Parts
from postroom.operations.people.audit import signature
from postroom.outbound.submission.submissions import Submissions
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock
from postroom.triage.act.agents import Agents


@dataclass(frozen=True, slots=True)
class Services:
    """All services that the endpoints use."""

    settings: Settings
    intake: Intake
    buffer: Buffer
    database: Database
    queues: Queues
    token_check: TokenCheck
    tally: Tally
    clock: Clock
    looks: AuditThrottle = field(default_factory=AuditThrottle)
    credentials: AccountTokens | None = None
    agents: Agents | None = None
    submissions: Submissions | None = None
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        others = (self.queues, self.intake, self.buffer, self.tally, self.agents, self.submissions)
        parts = Parts(self.settings, self.database, self.clock, *others, tokens=self.credentials)
        object.__setattr__(self, "parts", parts)

    def caller(self, principal: Principal, ends: Ends = ()) -> Caller:
        """The holder of a token, as operations know it."""
        signed = signature(principal.actor, principal.role)
        return Caller(self.database, signed, self.clock, principal, self.looks, ends)
