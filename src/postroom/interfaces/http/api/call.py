"""One call of an operation: who calls, and the parts of the product that answer."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.audited_actions import AuditedAction
from postroom.core.days import zone_named
from postroom.core.queue.queues import Queues
from postroom.core.roles import Principal
from postroom.core.visitors import Visitor
from postroom.interfaces.http.mcp.tool import Call as ToolCall
from postroom.interfaces.http.services import Services
from postroom.operations.backfill.backfill_progress import BackfillReader
from postroom.operations.backfill.estimate_runs import EstimateRuns
from postroom.operations.caller import Caller
from postroom.operations.connectors.connector_cards import ConnectorLimits
from postroom.operations.installation.database import Clock, Database
from postroom.operations.outbound.outbound_overview import OutboundOverview
from postroom.operations.overview.overview import Overview
from postroom.operations.parts import Parts
from postroom.operations.people.audit import Signature, signature
from postroom.operations.rules.rule_matches import RuleMatcher
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of

USUAL_REASON = "through the API"


class ApiParts:
    """The parts that operations use, each made when it is first needed. Those that remember something live as long as
    the server."""

    def __init__(self, settings: Settings, services: Services, estimate_runs: EstimateRuns) -> None:
        self.settings = settings
        self.services = services
        self.estimate_runs = estimate_runs

    @cached_property
    def table(self) -> Parts:
        """The parts of operations that the table declares."""
        return self.services.parts

    @property
    def database(self) -> Database:
        return self.services.database

    @property
    def clock(self) -> Clock:
        return self.services.clock

    @property
    def queues(self) -> Queues:
        return self.services.queues

    @cached_property
    def policy(self) -> Policy:
        return policy_of(self.settings)

    @cached_property
    def overview(self) -> Overview:
        model = self.settings.model if self.settings.model.provider != "none" else None
        return Overview(self.database, self.clock, model=model, zone=zone_named(self.settings.time_zone))

    @cached_property
    def outbound(self) -> OutboundOverview:
        return OutboundOverview(self.database, self.settings.outbound, self.clock)

    @cached_property
    def connector_limits(self) -> ConnectorLimits:
        stale = timedelta(seconds=self.settings.connector.contacts_stale_s)
        return ConnectorLimits(self.settings.data_dir, self.settings.gmail.units_per_minute, stale)

    @cached_property
    def backfills(self) -> BackfillReader:
        return BackfillReader(self.services.parts.backfills)

    @cached_property
    def matcher(self) -> RuleMatcher:
        return RuleMatcher(self.database)


@dataclass(frozen=True, slots=True)
class Call:
    """`caller` is a person in front of a browser, or the holder of a token.

    `entry_id` is the id of the entry in the audit log, if the caller named its request by an idempotency key.
    """

    parts: ApiParts
    caller: Visitor | Principal
    entry_id: UUID | None = None

    @property
    def database(self) -> Database:
        return self.parts.database

    @property
    def clock(self) -> Clock:
        return self.parts.clock

    def signed(self, reason: str | None = None) -> Signature:
        """Return the caller's signature for the audit log."""
        who = self.caller
        actor = f"person:{who.name}" if isinstance(who, Visitor) else who.actor
        signed = signature(actor, who.role, reason or USUAL_REASON)
        return signed if self.entry_id is None else signed._replace(entry_id=self.entry_id)

    def by(self, reason: str | None = None) -> Caller:
        """Return the caller of an operation that changes something."""
        return Caller(self.database, self.signed(reason), self.clock, self.caller, self.parts.services.looks)

    async def audit_read(self, action: AuditedAction, object_type: str, object_id: str, **after: object) -> None:
        """Audit that a program read mail, as over MCP. What people look at is not audited."""
        if isinstance(self.caller, Principal):
            await ToolCall(self.parts.services, self.caller).audit_read(action, object_type, object_id, **after)
