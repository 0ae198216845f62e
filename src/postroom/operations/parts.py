"""The parts of the product that operations share: put together once for a process, in `compose`, for its interfaces.

An operation of the table names those that it needs by their types: `overview: OutboundOverview`.
"""

from datetime import timedelta
from functools import cache, cached_property
from typing import Any, get_type_hints

from postroom.core.actions.safety import Policy
from postroom.core.days import zone_named
from postroom.core.errors import Refused
from postroom.core.mail.mailbox import MailboxOf
from postroom.core.outbound.strikes import StrikeRule
from postroom.core.queue.queues import Queues
from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests
from postroom.operations.accounts.pending_consents import PendingConsents
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, paces_of
from postroom.operations.backfill.backfill_progress import BackfillReader
from postroom.operations.backfill.backfill_work import BackfillWork
from postroom.operations.backfill.estimate_runs import EstimateRuns
from postroom.operations.connectors.connector_cards import ConnectorLimits
from postroom.operations.installation.long_tasks import FromPage, LongTasks
from postroom.operations.jobs.job_bulk import BulkOutcome
from postroom.operations.mail.mail_html import HtmlReader
from postroom.operations.outbound.outbound_overview import OutboundOverview
from postroom.operations.overview.overview import Overview
from postroom.operations.rules.rule_matches import RuleMatcher
from postroom.settings.queues import queues_of
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database


class Parts:
    """Each part is made when it is first needed. Those that remember something live as long as the server.

    `others` are parts that only some processes have. `mailbox_of` opens mailboxes for reading what is not stored, such
    as the HTML of a message.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock = wall_clock,
        *others: object,
        mailbox_of: MailboxOf | None = None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.clock = clock
        self.mailbox_of = mailbox_of
        self._others: dict[Any, object] = {Settings: settings, Database: database, Clock: clock}
        self._others |= {type(each): each for each in others if each is not None}

    def get(self, type_: Any) -> Any:
        """Return the part of this type. Raises Refused if the process was put together without it."""
        if type_ in self._others:
            return self._others[type_]
        name = _names().get(type_)
        if name is None:
            raise Refused("this server only ingests mail; it does not act on it")
        return getattr(self, name)

    @cached_property
    def policy(self) -> Policy:
        return policy_of(self.settings)

    @cached_property
    def queues(self) -> Queues:
        return queues_of(self.settings.queues, self.settings.routes)

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
    def consents(self) -> PendingConsents:
        return PendingConsents(self.database, self.settings, self.clock)

    @cached_property
    def backfills(self) -> Backfills:
        return Backfills(self.database, self.settings.backfill, self.settings.model, self.clock)

    @cached_property
    def estimates(self) -> BackfillEstimates:
        return BackfillEstimates(self.backfills, self.settings.model, paces_of(self.settings))

    @cached_property
    def estimate_runs(self) -> EstimateRuns:
        return EstimateRuns(self.backfills, self.estimates, self.clock)

    @cached_property
    def backfill_reader(self) -> BackfillReader:
        return BackfillReader(self.backfills)

    @cached_property
    def backfill_work(self) -> BackfillWork:
        return BackfillWork(self.database, self.backfills, self.get(Queues)["email"], self.clock)

    @cached_property
    def requests(self) -> ConnectorRequests:
        """The questions that connectors answer."""
        return ConnectorRequests(self.database, self.clock)

    @cached_property
    def strikes(self) -> StrikeRule:
        return self.settings.outbound.strike_rule

    @cached_property
    def bulk_runs(self) -> LongTasks[FromPage, BulkOutcome]:
        """Changes of many jobs at once."""
        return LongTasks[FromPage, BulkOutcome](unwatched_s=None)

    @cached_property
    def html(self) -> HtmlReader:
        return HtmlReader(self.database, self.mailbox_of)

    @cached_property
    def matcher(self) -> RuleMatcher:
        return RuleMatcher(self.database)


@cache
def _names() -> dict[Any, str]:
    """The names of the parts by their types."""
    made = [(name, each) for name, each in vars(Parts).items() if hasattr(each, "func")]
    return {get_type_hints(each.func)["return"]: name for name, each in made}
