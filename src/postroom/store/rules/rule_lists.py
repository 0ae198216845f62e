"""The rules as a page lists them: some at a time, with how often each decided; and their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.rules.draft import PRIORITIES
from postroom.core.rules.order import RulePlace, moved
from postroom.core.rules.rule import ScopeName
from postroom.core.views import Shown
from postroom.store.engine.codecs import as_time, as_uuid, rows_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.people.audit import Signature, auditing
from postroom.store.rules.rules import CHANNEL, RuleView

BEGINNING = RulePlace(PRIORITIES.start - 1, UUID(int=0))
RuleState = Literal["on", "shadow", "off"]


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """How many rules there are, and how many of them are off or in shadow."""

    all_rules: int = 0
    off: int = 0
    shadow: int = 0

    @property
    def on(self) -> Shown[int]:
        return self.all_rules - self.off - self.shadow


class NumberedRule(NamedTuple):
    """A rule and its number in the order of evaluation, from 1."""

    rule: RuleView
    number: int


@query
def rules_page(
    scope: ScopeName | None, state: RuleState | None, after: RulePlace, most: int
) -> Script[list[NumberedRule]]:
    """The rules after a place, in the order of evaluation."""
    rows = yield sql("select_rules_page", scope or "", state or "", after.priority, after.id, most)
    return read_rows(NumberedRule, rows)


@query
def count_rules() -> Script[RuleCounts]:
    return read_first(RuleCounts, (yield sql("count_rules_by_state"))) or RuleCounts()


@query
def rule_hits(since: datetime) -> Script[Mapping[str, Mapping[datetime, int]]]:
    """How often each rule, by the text of its id, took part in a decision in each hour since then."""
    found: dict[str, dict[datetime, int]] = {}
    for name, hour, count in (yield sql("select_rule_hits", since)):
        found.setdefault(name, {})[as_time(hour)] = count
    return found


@query
def last_hits(ids: Sequence[UUID]) -> Script[Mapping[UUID, datetime]]:
    """When each of these rules last decided about a message, in shadow or not; those that never did are missing."""
    rows = yield sql("select_last_hits", rows_text([(id,) for id in ids]))
    return {as_uuid(id): as_time(at) for id, at in rows if at is not None}


@query
def rule_with_id(id: UUID) -> Script[NumberedRule]:
    view = read_first(RuleView, (yield sql("select_rule", id)))
    if view is None:
        raise NotFound("there is no such rule; it may have been removed")
    [[number]] = yield sql("count_rules_up_to", view.priority, view.id)
    return NumberedRule(view, number)


@transaction
def move_rule(id: UUID, down: bool, signed: Signature, now: datetime) -> Script[str]:
    """Move the rule one place up or down, and return its name. At the end of the list nothing changes.

    Where there is no room between two rules, those after them get other priorities as well.
    """
    rows = list((yield sql("select_rule_order")).by_name())
    known = {as_uuid(row["id"]): row for row in rows}
    if id not in known:
        raise NotFound("there is no such rule; it may have been removed")
    name = str(known[id]["name"])
    changed = moved([RulePlace(row["priority"], as_uuid(row["id"])) for row in rows], id, down)
    for place in changed:
        if place.priority not in PRIORITIES:
            raise BadInput("priority", "has no room on this side", "give the rules other priorities")
        if not (yield sql("set_rule_priority", place.id, known[place.id]["version"], place.priority)):
            raise Conflict("order", "the rules were changed meanwhile", "look at them, and try again")
    if changed:
        before = {"priority": known[id]["priority"], "place": list(known).index(id) + 1}
        after = {"down": down, "priorities_changed": len(changed)}
        yield from auditing(signed.under("rules.move", "rule", name, before=before, after=after), now)
        yield Notify(CHANNEL, "moved")
    return name
