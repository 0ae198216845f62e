"""The parts of the product that operations share: put together once for a process, in `compose`, for its interfaces.

An operation of the table names those that it needs by their types: `overview: OutboundOverview`. The module of a part
is imported when the part is first needed, so that a command does not wait for what it does not use.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from postroom.core.errors import AccountUnusable, Refused
from postroom.operations.installation.live_settings import LiveSettings
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock

if TYPE_CHECKING:
    from postroom.core.actions.safety import Policy
    from postroom.core.mail.mailbox import MailboxOf
    from postroom.core.mail.retention import RetentionPolicy
    from postroom.core.outbound.strikes import StrikeRule
    from postroom.core.queue.queues import Queues
    from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests
    from postroom.mailboxes.providers import AccountTokens
    from postroom.operations.accounts.pending_consents import PendingConsents
    from postroom.operations.backfill.backfill import Backfills
    from postroom.operations.backfill.backfill_estimate import BackfillEstimates
    from postroom.operations.backfill.backfill_progress import BackfillReader
    from postroom.operations.backfill.backfill_work import BackfillWork
    from postroom.operations.backfill.estimate_runs import EstimateRuns
    from postroom.operations.connectors.connector_cards import ConnectorLimits
    from postroom.operations.installation.long_tasks import FromPage, LongTasks
    from postroom.operations.jobs.job_bulk import BulkOutcome
    from postroom.operations.mail.mail_html import HtmlReader
    from postroom.operations.mail.searches import SearchLimiter
    from postroom.operations.outbound.outbound_overview import OutboundOverview
    from postroom.operations.overview.demo_tour import DemoTour
    from postroom.operations.overview.overview import Overview
    from postroom.operations.people.refusals import Refusals
    from postroom.operations.preview.first_looks import FirstLooks
    from postroom.operations.preview.preview_account import OpenSource
    from postroom.operations.rules.rule_matches import RuleMatcher
    from postroom.vault.sealing import Vault


Made = TypeVar("Made")


class made_each_time(Generic[Made]):  # noqa: N801 - a decorator, as `cached_property` is
    """A part that remembers nothing, and is made of settings that may change meanwhile."""

    def __init__(self, func: "Callable[[Parts], Made]") -> None:
        self.func = func

    def __get__(self, parts: "Parts", _owner: type) -> Made:
        return self.func(parts)


class Parts:
    """Each part is made when it is first needed. Those that remember something live as long as the server.

    `others` are parts that only some processes have. `mailbox_of` opens mailboxes for reading what is not stored, such
    as the HTML of a message, `open_source` for reading all of it; `tokens` are the access tokens of connected accounts.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock = wall_clock,
        *others: object,
        mailbox_of: "MailboxOf | None" = None,
        open_source: "OpenSource | None" = None,
        tokens: "AccountTokens | None" = None,
    ) -> None:
        self.live = LiveSettings(settings)
        self.database = database
        self.clock = clock
        self.mailbox_of = mailbox_of
        self.open_source = open_source
        self._tokens = tokens
        self._others: dict[Any, object] = {LiveSettings: self.live, Database: database, Clock: clock}
        # Under their base classes too: a server may be put together with a kind of its own.
        self._others |= {type_: each for each in others if each is not None for type_ in type(each).mro()[:-1]}

    def get(self, type_: Any) -> Any:
        """Return the part of this type. Raises Refused if the process was put together without it."""
        if type_ is Settings:
            return self.settings
        if type_ in self._others:
            return self._others[type_]
        name = _names().get(_name_of(type_))
        if name is None:
            raise Refused("this server only ingests mail; it does not act on it")
        return getattr(self, name)

    @property
    def settings(self) -> Settings:
        """Those in effect now; a part that lives long follows changes by itself."""
        return self.live.current

    @made_each_time
    def policy(self) -> "Policy":
        from postroom.settings.safety import policy_of

        return policy_of(self.settings)

    @cached_property
    def queues(self) -> "Queues":
        from postroom.settings.queues import queues_of

        return queues_of(self.settings.queues, self.settings.routes)

    @made_each_time
    def retention(self) -> "RetentionPolicy":
        return self.settings.retention.policy

    @cached_property
    def vault(self) -> "Vault":
        from postroom.operations.installation.vault import vault_of

        return vault_of(self.settings)

    @made_each_time
    def overview(self) -> "Overview":
        from postroom.core.days import zone_named
        from postroom.operations.overview.overview import Overview

        model = self.settings.model if self.settings.model.provider != "none" else None
        zone = zone_named(self.settings.time_zone)
        return Overview(self.database, self.clock, model=model, zone=zone, outbound=self.settings.outbound)

    @cached_property
    def demo_tour(self) -> "DemoTour | None":
        from postroom.operations.installation.demo import is_demo
        from postroom.operations.overview.demo_tour import DemoTour

        folder = self.settings.data_dir
        return DemoTour(folder, self.database) if is_demo(folder) else None

    @cached_property
    def outbound(self) -> "OutboundOverview":
        from postroom.operations.outbound.outbound_overview import OutboundOverview

        return OutboundOverview(self.database, self.settings.outbound, self.clock)

    @cached_property
    def connector_limits(self) -> "ConnectorLimits":
        from postroom.operations.connectors.connector_cards import ConnectorLimits

        stale = timedelta(seconds=self.settings.connector.contacts_stale_s)
        return ConnectorLimits(self.settings.data_dir, self.settings.gmail.units_per_minute, stale)

    @cached_property
    def consents(self) -> "PendingConsents":
        from postroom.operations.accounts.pending_consents import PendingConsents

        return PendingConsents(self.database, self.settings, self.clock)

    @cached_property
    def backfills(self) -> "Backfills":
        from postroom.operations.backfill.backfill import Backfills

        return Backfills(self.database, self.settings.backfill, self.settings.model, self.clock)

    @cached_property
    def estimates(self) -> "BackfillEstimates":
        from postroom.operations.backfill.backfill_estimate import BackfillEstimates, paces_of

        return BackfillEstimates(self.backfills, self.settings.model, paces_of(self.settings))

    @cached_property
    def estimate_runs(self) -> "EstimateRuns":
        from postroom.operations.backfill.estimate_runs import EstimateRuns

        return EstimateRuns(self.backfills, self.estimates, self.clock)

    @cached_property
    def backfill_reader(self) -> "BackfillReader":
        from postroom.operations.backfill.backfill_progress import BackfillReader

        return BackfillReader(self.backfills)

    @cached_property
    def backfill_work(self) -> "BackfillWork":
        from postroom.core.queue.queues import Queues
        from postroom.operations.backfill.backfill_work import BackfillWork

        return BackfillWork(self.database, self.backfills, self.get(Queues)["email"], self.clock)

    @cached_property
    def requests(self) -> "ConnectorRequests":
        """The questions that connectors answer."""
        from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests

        return ConnectorRequests(self.database, self.clock)

    @cached_property
    def tokens(self) -> "AccountTokens":
        if self._tokens is None:
            remedy = "connect one with `postroom account add gmail`"
            raise AccountUnusable("missing", "no account is connected here", remedy)
        return self._tokens

    @cached_property
    def refusals(self) -> "Refusals":
        from postroom.core.tally import Tally
        from postroom.operations.people.refusals import Refusals

        return Refusals(self.database, self.get(Tally), self.clock)

    @cached_property
    def strikes(self) -> "StrikeRule":
        return self.settings.outbound.strike_rule

    @cached_property
    def bulk_runs(self) -> "LongTasks[FromPage, BulkOutcome]":
        """Changes of many jobs at once."""
        from postroom.operations.installation.long_tasks import LongTasks

        return LongTasks(unwatched_s=None)

    @cached_property
    def html(self) -> "HtmlReader":
        from postroom.operations.mail.mail_html import HtmlReader

        return HtmlReader(self.database, self.mailbox_of)

    @cached_property
    def first_looks(self) -> "FirstLooks":
        from postroom.operations.preview.first_looks import FirstLooks

        return FirstLooks(self.database, lambda: self.settings, self.clock, self.open_source)

    @cached_property
    def searches(self) -> "SearchLimiter":
        from postroom.operations.mail.searches import SearchLimiter

        return SearchLimiter()

    @cached_property
    def matcher(self) -> "RuleMatcher":
        from postroom.operations.rules.rule_matches import RuleMatcher

        return RuleMatcher(self.database)


@cache
def _names() -> dict[str, str]:
    """The names of the parts by those of their types."""
    made = [(name, each) for name, each in vars(Parts).items() if hasattr(each, "func")]
    return {each.func.__annotations__["return"]: name for name, each in made}


def _name_of(type_: Any) -> str:
    own = ", ".join(_name_of(each) for each in get_args(type_))
    return f"{type_.__name__}[{own}]" if own else str(type_.__name__)
