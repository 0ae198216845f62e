"""Filters: how mail gets its tier, and how much of it is stored."""

from datetime import datetime

from pydantic import Field

from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.cursors import opened, sealed
from postroom.interfaces.http.api.forms import Answer, Page, Paged, Seconds
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.connectors.filters import filter_page
from postroom.operations.connectors.tier_rules import load_tier_rules

FILTERS = Noun("Filters and tiers")
LIST = "filters"


class FilterRuleForm(Answer):
    number: int
    name: str
    kind: str
    header: str
    value: str
    tier: str = Field(description="How much is stored: full, metadata or skip.")


class FilterForm(Answer):
    rule: FilterRuleForm
    origin: str
    enabled: bool


class FilterPageAnswer(Page):
    """In the order in which they are tried."""

    filters: list[FilterForm]


class TierRuleForm(Answer):
    number: int
    name: str
    tier: str
    when: str


class TierGuardForm(Answer):
    """After how many messages of a tier in a row a lower one gets its turn, and whether a setting says so."""

    tier: str
    most_in_a_row: int
    is_set: bool


class ContactSourceForm(Answer):
    source: str
    count: int


class ContactCopyForm(Answer):
    connector_type: str
    endpoint_identity: str
    generated_at: datetime | None
    heard_at: datetime
    liveness: str
    freshness: str


class ContactsForm(Answer):
    """The contacts by source, counted up to a limit, and the copies that connectors use."""

    sources: list[ContactSourceForm]
    size: int
    is_more: bool
    copies: list[ContactCopyForm]
    refresh_s: Seconds = Field(validation_alias="refresh")
    stale_s: Seconds = Field(validation_alias="stale")


class TierRulesAnswer(Answer):
    rules: list[TierRuleForm]
    guards: list[TierGuardForm]
    guard_default: int
    contacts: ContactsForm


@FILTERS.get("/filters")
async def read_filters(call: Call, query: Paged) -> FilterPageAnswer:
    """The filters in the order in which they are tried: the user's own, and the built-in ones."""
    page = await filter_page(call.database, opened(LIST, query.next), query.limit)
    return FilterPageAnswer(filters=[FilterForm.of(each) for each in page.filters], next=sealed(LIST, page.more_after))


@FILTERS.get("/filters/tiers")
async def read_tier_rules(call: Call) -> TierRulesAnswer:
    """How mail gets its priority tier, the guard against starvation, and the state of the contacts."""
    return TierRulesAnswer.of(await load_tier_rules(call.database, call.parts.settings, call.clock))
