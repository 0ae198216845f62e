"""All operations: importing the modules that declare them fills the nouns."""

import importlib
from collections.abc import Sequence
from functools import cache

from postroom.core.access import Access
from postroom.operations.nouns import NOUNS
from postroom.operations.operation import Noun, Operation

MODULES = (
    "accounts.accounts",
    "accounts.acting",
    "accounts.connecting",
    "accounts.connecting_imap",
    "accounts.contacts",
    "accounts.keys",
    "accounts.labels",
    "accounts.switching_on",
    "actions.actions",
    "actions.agent_actions",
    "actions.approvals",
    "actions.kill_switch",
    "actions.protection",
    "actions.undo",
    "backfill.agent_backfills",
    "backfill.backfills",
    "backfill.connector_backfills",
    "connectors.connector_cards",
    "connectors.connector_reports",
    "connectors.connector_requests",
    "connectors.connectors",
    "connectors.filters",
    "connectors.not_ingested",
    "connectors.on_demand",
    "connectors.tier_rules",
    "installation.settings_view",
    "jobs.job_board",
    "jobs.job_bulk",
    "jobs.job_causes",
    "jobs.job_story",
    "jobs.jobs",
    "jobs.queue_board",
    "jobs.queue_leases",
    "jobs.queues",
    "mail.agent_mail",
    "mail.ingest",
    "mail.mail",
    "mail.mail_lines",
    "mail.mail_page",
    "mail.reclassify",
    "mail.retention",
    "outbound.destinations",
    "outbound.outbound",
    "outbound.outbound_lists",
    "outbound.outbound_stats",
    "outbound.reports",
    "outbound.senders",
    "outbound.submissions",
    "outbound.suppressions",
    "outbound.tenants",
    "overview.overview",
    "people.audit",
    "people.people",
    "people.session",
    "people.tokens",
    "rules.guidance",
    "rules.model",
    "rules.proposals",
    "rules.rules",
    "rules.rule_views",
    "rules.rule_changes",
    "rules.rule_exchange",
    "rules.rule_plans",
    "rules.rule_trial",
    "rules.shadow",
    "rules.simulation",
    "rules.starter_rules",
)
"""The modules that declare operations. Commands import the one that they need, other interfaces all."""


@cache
def nouns() -> Sequence[Noun]:
    """All nouns, with all their operations."""
    for each in MODULES:
        importlib.import_module(f"postroom.operations.{each}")
    for noun in NOUNS:
        noun.operations.sort(key=_place)
    return NOUNS


def _place(operation: Operation) -> int:
    """The place of its module, whichever was imported first. Those that interfaces declare come first."""
    name = operation.run.__module__.removeprefix("postroom.operations.")
    return MODULES.index(name) if name in MODULES else -1


def operations() -> list[Operation]:
    return [each for noun in nouns() for each in noun.operations]


def access_of_form(address: str) -> Access:
    """Return who may submit the form at this address, as the operations that declare it say."""
    (access,) = {each.access for each in operations() if address in each.forms}
    return access
