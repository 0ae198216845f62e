"""The parts of the product that operations share: put together once for a server, in `compose`, for its interfaces."""

from datetime import timedelta
from functools import cached_property

from postroom.core.actions.safety import Policy
from postroom.core.days import zone_named
from postroom.core.mail.mailbox import MailboxOf
from postroom.core.queue.queues import Queues
from postroom.operations.accounts.pending_consents import PendingConsents
from postroom.operations.backfill.backfill import backfills_of
from postroom.operations.backfill.backfill_estimate import estimates_of
from postroom.operations.backfill.backfill_progress import BackfillReader
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

    `mailbox_of` opens mailboxes for reading what is not stored, such as the HTML of a message.
    """

    def __init__(
        self, settings: Settings, database: Database, clock: Clock = wall_clock, mailbox_of: MailboxOf | None = None
    ) -> None:
        self.settings = settings
        self.database = database
        self.clock = clock
        self._mailbox_of = mailbox_of

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
    def estimate_runs(self) -> EstimateRuns:
        settings, database, clock = self.settings, self.database, self.clock
        return EstimateRuns(backfills_of(database, settings, clock), estimates_of(database, settings, clock), clock)

    @cached_property
    def backfills(self) -> BackfillReader:
        return BackfillReader(self.estimate_runs.backfills)

    @cached_property
    def bulk_runs(self) -> LongTasks[FromPage, BulkOutcome]:
        """Changes of many jobs at once."""
        return LongTasks[FromPage, BulkOutcome](unwatched_s=None)

    @cached_property
    def html(self) -> HtmlReader:
        return HtmlReader(self.database, self._mailbox_of)

    @cached_property
    def matcher(self) -> RuleMatcher:
        return RuleMatcher(self.database)
