"""Shadow mode of a rule, a category of mail, or the model: begin it, compare it with what the user did, end it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from postroom.core.mail.categories import chosen_categories
from postroom.operations.caller import Caller
from postroom.store.actions.protection import begin_shadow, end_shadow
from postroom.store.engine.database import Database
from postroom.store.rules.rules import edit_rule, list_rules, load_rule
from postroom.store.rules.shadow_reports import (
    ShadowReport,
    ShadowSelection,
    shadow_report,
    shadow_tallies,
    standing_shadows,
)
from postroom.store.rules.shadow_reports import (
    ShadowSample as ShadowSample,
)
from postroom.store.rules.shadow_reports import (
    Tally as Tally,
)
from postroom.triage.decide.engine import category_shadow_reason

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
# Fewer comparisons prove little; a lower precision is worse than asking for approval.
ENOUGH_JUDGED = 20
RIGHT_ENOUGH = 0.95


class ShadowScope(NamedTuple):
    """A rule, a category, or the model, which has no name."""

    kind: Literal["rule", "category", "model"]
    name: str = ""

    def __str__(self) -> str:
        return "the model" if self.kind == "model" else f"the {self.kind} {self.name!r}"


@dataclass(frozen=True, slots=True)
class ShadowStatus:
    """Something in shadow, since when (rules: since their last change), and its results so far."""

    kind: str
    name: str
    since: datetime
    tally: Tally


class EndedShadow(NamedTuple):
    """Whether it was in shadow, and why it may be too early to let it act."""

    ended: bool
    doubts: Sequence[str]


async def list_shadows(database: Database) -> list[ShadowStatus]:
    """Everything in shadow: rules, then categories, then the model."""
    by_rule, others = await database.run(shadow_tallies())
    rules = [view for view in await database.run(list_rules()) if view.mode == "shadow" and view.enabled]
    found = [ShadowStatus("rule", view.name, view.updated_at, by_rule.get(view.id, Tally())) for view in rules]
    for kind, name, since in await database.run(standing_shadows()):
        found.append(ShadowStatus(kind, name, since, others.get((kind, name), Tally())))
    return found


async def begin(by: Caller, what: ShadowScope) -> bool:
    """Put it in shadow: it decides, but nothing is done. Return False if it was already in shadow."""
    return await _switch(by, what, True)


async def end(by: Caller, what: ShadowScope) -> EndedShadow:
    """Take it out of shadow: its decisions are carried out."""
    report = await report_on(by.database, what, samples=0)
    ended = await _switch(by, what, False)
    return EndedShadow(ended, doubts(report.tally) if ended else ())


async def _switch(by: Caller, what: ShadowScope, shadow: bool) -> bool:
    now = by.clock()
    match what.kind:
        case "rule":
            view = await by.run(load_rule(what.name))
            if (view.mode == "shadow") == shadow:
                return False
            draft = replace(view.draft, shadow=shadow)
            await by.run(edit_rule(view.id, view.version, draft, by.signature, now))
            return True
        case "category" | "model":
            if what.kind == "category":
                chosen_categories([what.name])
            verb = begin_shadow if shadow else end_shadow
            return await by.run(verb(what.kind, what.name, by.signature, now))


async def report_on(
    database: Database, what: ShadowScope, since: datetime = LONG_AGO, samples: int = 5
) -> ShadowReport:
    """Compare its decisions in shadow with what the user did. While it is in shadow, only decisions in its present form
    count: none from before a rule's last change, or from an earlier time in shadow."""
    match what.kind:
        case "rule":
            view = await database.run(load_rule(what.name))
            whose, begun = ShadowSelection("rule", view.id), view.updated_at if view.mode == "shadow" else LONG_AGO
        case "category":
            [category] = chosen_categories([what.name])
            whose, begun = (
                ShadowSelection(category_shadow_reason(category.name)),
                await _since(database, "category", category.name),
            )
        case "model":
            whose, begun = ShadowSelection("model"), await _since(database, "model", "")
    return await database.run(shadow_report(whose, max(since, begun), samples))


async def _since(database: Database, kind: str, name: str) -> datetime:
    standing = {(each.kind, each.name): each.since for each in await database.run(standing_shadows())}
    return standing.get((kind, name), LONG_AGO)


def doubts(tally: Tally) -> Sequence[str]:
    """Return reasons why it may be too early to take it out of shadow."""
    found: list[str] = []
    if tally.judged < ENOUGH_JUDGED:
        found.append(
            f"only {tally.judged:,} of its {tally.decisions:,} decisions could be compared with what you did; "
            f"{ENOUGH_JUDGED} would prove more"
        )
    if tally.precision is not None and tally.precision < RIGHT_ENOUGH:
        found.append(f"you acted differently in {tally.disagreed:,} of {tally.judged:,} cases")
    return found
