"""The rules as pages show them: in words, with how often and when each last decided, some at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.access import READ
from postroom.core.errors import BadInput
from postroom.core.rules.documents import write_documents
from postroom.core.rules.draft import PRIORITIES, check_rule
from postroom.core.rules.in_words import conditions_in_words
from postroom.core.rules.order import RulePlace
from postroom.core.rules.rule import ScopeName
from postroom.core.views import Page, Untrusted
from postroom.operations.accounts.accounts import list_accounts
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, FoundBy, Limit, Next, command, get
from postroom.operations.rules.rules import list_rules, rule_named, rule_row
from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.rules import rule_lists, rules
from postroom.store.rules.rule_lists import NumberedRule, RuleCounts
from postroom.store.rules.rule_lists import RuleState as RuleState
from postroom.store.rules.rules import RuleView
from postroom.store.rules.shadow_reports import Tally, shadow_tallies
from postroom.system.wall_clock import Clock
from postroom.words.actions import rule_does

CHANNELS = (rules.CHANNEL, decisions.CHANNEL)
"""Where changes of rules, proposals and decisions are announced."""
DAYS = 7
"""The window of hits, in days."""
MOST = 100
NAME = Argument("The rule, as `postroom rules list` shows it.", typed_as="NAME")
RuleId = Annotated[UUID, Argument("The id of the rule."), FoundBy(rule_named, NAME)]
NO_HITS: Mapping[datetime, int] = {}
NO_TALLIES: Mapping[UUID, Tally] = {}


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule in words, and its hits: how often it decided, alone or beside others, in each of the last 7 days."""

    rule: RuleView
    number: Annotated[int, "Its place among all rules, from 1."]
    whose: Annotated[Untrusted[str], "The mail it is for, in words; empty for all mail."]
    when: Untrusted[str]
    does: Untrusted[str]
    by_day: Annotated[tuple[int, ...], "Oldest first; the last one is the last 24 hours."]
    last_at: datetime | None
    shadow: Annotated[Tally | None, "Its results in shadow, if it is in shadow."]
    broken: Annotated[Untrusted[str], "Why it cannot be used as it is; empty if it can."]

    @property
    def hits(self) -> int:
        return sum(self.by_day)


@dataclass(frozen=True, slots=True)
class RulePage(Page[RuleLine]):
    """In the order in which they are tried. `decided` is how many decisions rules made in 7 days."""

    counts: RuleCounts
    decided: int


@RULES.operation(READ, get("/rules"))
async def read_rules(
    database: Database,
    clock: Clock,
    /,
    limit: Limit = 50,
    next: Next = None,
    scope: Annotated[ScopeName | None, Argument("Only rules of this scope.")] = None,
    state: Annotated[RuleState | None, Argument("Only rules that are on, in shadow, or off.")] = None,
) -> RulePage:
    """The rules in the order in which they are tried."""
    place = rule_lists.BEGINNING if next is None else _place(next)
    views = await database.run(rule_lists.rules_page(scope, state, place, limit + 1))
    shown, now = views[:limit], clock()
    hits = await database.run(rule_lists.rule_hits(now - timedelta(days=DAYS)))
    lines = await _lines(database, shown, hits, now)
    more = f"{shown[-1].rule.priority}_{shown[-1].rule.id}" if len(views) > limit else None
    counts = await database.run(rule_lists.count_rules())
    decided = sum(sum(hours.values()) for name, hours in hits.items() if len(name) == 36)
    return RulePage(lines, more, counts, decided)


def _place(next: str) -> RulePlace:
    """Read the place after which a page begins, as `priority_id`. Raise BadInput."""
    priority, _, id = next.partition("_")
    try:
        place = RulePlace(int(priority), UUID(id))
    except ValueError:
        place = None
    if place is None or place.priority not in PRIORITIES:
        raise BadInput("after", "is no place in the list", "open the list from its beginning")
    return place


class UnconfirmedRule(NamedTuple):
    """A rule that waits for a person's confirmation: in words, as text, and the hash that the answer is bound to."""

    line: RuleLine
    text: str
    content_hash: str


async def unconfirmed_lines(database: Database, now: datetime) -> list[UnconfirmedRule]:
    """List the rules that wait for a person's confirmation, as many as a page shows."""
    found = (await database.run(rules.unconfirmed_rules()))[:MOST]
    lines = await _lines(database, [NumberedRule(view, 0) for view in found], {}, now) if found else []
    return [UnconfirmedRule(each, write_documents([each.rule.draft], "yaml"), each.rule.content_hash) for each in lines]


def _for_programs(line: RuleLine) -> Mapping[str, Any]:
    return rule_row(line.rule)


@RULES.operation(READ, command("rules list", row=_for_programs))
async def list_rule_lines(database: Database, clock: Clock, /) -> list[RuleLine]:
    """List the rules in the order in which they are tried, with what each does and how often it decided in 7 days. The
    first that matches decides."""
    views, now = await list_rules(database), clock()
    hits = await database.run(rule_lists.rule_hits(now - timedelta(days=DAYS)))
    return await _lines(database, [NumberedRule(view, number) for number, view in enumerate(views, 1)], hits, now)


def _for_people(line: RuleLine) -> Mapping[str, Any]:
    return {name: value for name, value in rule_row(line.rule).items() if name not in ("conditions", "parameters")}


def _text(line: RuleLine) -> str:
    """The rule as it would stand in a file."""
    return write_documents([line.rule.draft], "yaml")


@RULES.operation(
    READ, get("/rules/{rule}"), command("rules show {rule}", row=_for_programs, cells=_for_people, below=_text)
)
async def read_rule(database: Database, clock: Clock, /, rule: RuleId) -> RuleLine:
    """Show one rule: everything known about it, and the rule as it would stand in a file."""
    view, now = await database.run(rule_lists.rule_with_id(rule)), clock()
    hits = await database.run(rule_lists.rule_hits(now - timedelta(days=DAYS)))
    return (await _lines(database, [view], hits, now))[0]


async def _lines(
    database: Database, numbered: list[NumberedRule], hits: Mapping[str, Mapping[datetime, int]], now: datetime
) -> list[RuleLine]:
    last = await database.run(rule_lists.last_hits([each.rule.id for each in numbered]))
    shadows = await _shadows(database, numbered)
    accounts = {str(each.id): each.email for each in await list_accounts(database)}
    found: list[RuleLine] = []
    for view, number in numbered:
        found.append(
            RuleLine(
                view,
                number,
                _whose(view, accounts),
                conditions_in_words(view.conditions),
                rule_does(view.action, view.parameters),
                _by_day(hits.get(str(view.id), NO_HITS), now),
                last.get(view.id),
                shadows.get(view.id, Tally()) if view.mode == "shadow" else None,
                _error_of(view),
            )
        )
    return found


async def _shadows(database: Database, numbered: list[NumberedRule]) -> Mapping[UUID, Tally]:
    if not any(each.rule.mode == "shadow" for each in numbered):
        return NO_TALLIES
    by_rule, _ = await database.run(shadow_tallies())
    return by_rule


def _whose(view: RuleView, accounts: Mapping[str, str]) -> str:
    match view.scope:
        case "global":
            return ""
        case "account":
            return f"mail of {accounts.get(view.scope_ref or '', view.scope_ref)}"
        case "domain":
            return f"mail from {view.scope_ref}"
        case "sender":
            return f"mail of {view.scope_ref}"


def _by_day(hours: Mapping[datetime, int], now: datetime) -> tuple[int, ...]:
    """Sum the hours into days that end now."""
    days = [0] * DAYS
    for hour, count in hours.items():
        ago = int((now - hour) / timedelta(days=1))
        days[DAYS - 1 - min(DAYS - 1, max(0, ago))] += count
    return tuple(days)


def _error_of(view: RuleView) -> str:
    try:
        check_rule(view.conditions, view.action, view.parameters)
    except BadInput as error:
        return str(error)
    return ""
