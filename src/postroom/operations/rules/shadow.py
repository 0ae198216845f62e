"""Shadow mode of a rule, a category of mail, or the model: begin it, compare it with what the user did, end it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.categories import chosen_categories
from postroom.core.moments import LONG_AGO
from postroom.operations.caller import Caller
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, command
from postroom.store.actions.protection import begin_shadow, end_shadow
from postroom.store.engine.database import Database
from postroom.store.rules.rules import edit_rule, list_rules, load_rule
from postroom.store.rules.shadow_reports import (
    ShadowReport,
    ShadowSample,
    ShadowSelection,
    Tally,
    shadow_report,
    shadow_tallies,
    standing_shadows,
)
from postroom.triage.decide.engine import category_shadow_reason

NUMBERS = ("decisions", "agreed", "disagreed", "undecided", "precision")
SAMPLES = ("agreed", "decided_at", "sender", "subject", "decided", "you")
# Fewer comparisons prove little; a lower precision is worse than asking for approval.
ENOUGH_JUDGED = 20
RIGHT_ENOUGH = 0.95

OfRule = Annotated[str | None, Argument("A rule, by its name.", typed_as="--rule NAME")]
OfCategory = Annotated[
    str | None,
    Argument("Mail of a category: finance, health, relationship, travel, …", typed_as="--category NAME"),
]
OfModel = Annotated[bool, Argument("The language model.")]


class ShadowScope(NamedTuple):
    """A rule, a category, or the model, which has no name."""

    kind: Literal["rule", "category", "model"]
    name: str = ""


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


@dataclass(frozen=True, slots=True)
class ShadowChange:
    """Something whose shadow began or ended, and why it may be too early to let it act."""

    kind: str
    name: str
    result: str
    doubts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ShadowComparison:
    """The decisions of something in shadow, beside what the user did."""

    what: ShadowScope
    report: ShadowReport

    @property
    def samples(self) -> list[Mapping[str, object]]:
        return [_sample(each) for each in (*self.report.disagreed, *self.report.agreed)]


def _numbers(tally: Tally) -> Mapping[str, object]:
    precision = None if tally.precision is None else round(tally.precision, 3)
    return {**tally._asdict(), "undecided": tally.undecided, "precision": precision}


def _sample(sample: ShadowSample) -> Mapping[str, object]:
    label = sample.parameters.get("label")
    return {
        "agreed": sample.agreed,
        "message_id": sample.message_id,
        "decided_at": sample.decided_at,
        "sender": sample.sender,
        "subject": sample.subject,
        "decided": f"{sample.action} {label}" if label else sample.action,
        "you": sample.what,
    }


def _standing(each: ShadowStatus) -> Mapping[str, object]:
    return {"kind": each.kind, "name": each.name, "since": each.since, **_numbers(each.tally)}


def _compared(found: ShadowComparison) -> Mapping[str, object]:
    tally = found.report.tally
    return {**found.what._asdict(), **_numbers(tally), "doubts": doubts(tally), "samples": found.samples}


def _not_proven(found: ShadowComparison) -> Iterable[str]:
    return (f"not proven yet: {each}" for each in doubts(found.report.tally))


def _line(change: ShadowChange) -> str:
    what = "the model" if change.kind == "model" else f"the {change.kind} {change.name!r}"
    return f"{what} {change.result}"


def _warnings(change: ShadowChange) -> Iterable[str]:
    return (f"warning: {each}" for each in change.doubts)


@RULES.operation(READ, command("shadow list", "kind", "name", "since", *NUMBERS, row=_standing))
async def list_shadows(database: Database, /) -> list[ShadowStatus]:
    """List what is in shadow, and how often you then did the same yourself: rules, then categories, then the model."""
    by_rule, others = await database.run(shadow_tallies())
    rules = [view for view in await database.run(list_rules()) if view.mode == "shadow" and view.enabled]
    found = [ShadowStatus("rule", view.name, view.updated_at, by_rule.get(view.id, Tally())) for view in rules]
    for kind, name, since in await database.run(standing_shadows()):
        found.append(ShadowStatus(kind, name, since, others.get((kind, name), Tally())))
    return found


@RULES.operation(OPERATE, command("shadow begin", line=_line))
async def begin_shadow_of(
    by: Caller, /, rule: OfRule = None, category: OfCategory = None, model: OfModel = False
) -> ShadowChange:
    """From now on, only record its decisions; do nothing."""
    what = _scope(rule, category, model)
    return ShadowChange(*what, "decides in shadow now" if await begin(by, what) else "is in shadow already")


@RULES.operation(OPERATE, command("shadow end", line=_line, notes=_warnings))
async def end_shadow_of(
    by: Caller, /, rule: OfRule = None, category: OfCategory = None, model: OfModel = False
) -> ShadowChange:
    """From now on, carry out its decisions. Warns if there is little evidence for it."""
    what = _scope(rule, category, model)
    found = await end(by, what)
    return ShadowChange(*what, "acts now" if found.ended else "is not in shadow", found.doubts)


@RULES.operation(
    READ,
    command("shadow report", "kind", "name", *NUMBERS, row=_compared, tables={"samples": SAMPLES}, notes=_not_proven),
)
async def compare_shadow(
    database: Database,
    /,
    rule: OfRule = None,
    category: OfCategory = None,
    model: OfModel = False,
    since: Annotated[datetime | None, Argument("Only decisions since then.")] = None,
) -> ShadowComparison:
    """Show what it decided in shadow, how much of that you agreed with, and samples of both."""
    what = _scope(rule, category, model)
    return ShadowComparison(what, await report_on(database, what, since or LONG_AGO))


def _scope(rule: str | None, category: str | None, model: bool) -> ShadowScope:
    if sum((rule is not None, category is not None, model)) != 1:
        raise BadInput("shadow", "needs exactly one scope", "give --rule NAME, --category NAME or --model")
    if rule is not None:
        return ShadowScope("rule", rule)
    return ShadowScope("model") if category is None else ShadowScope("category", category)


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
