"""Decisions made in shadow, and what the user did about the same messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.safety import ShadowKind
from postroom.core.mail.mail_head import MailHead
from postroom.core.views import Shown
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_first, read_row, read_rows


class Tally(NamedTuple):
    """The number of decisions, and how many the user agreed and disagreed with."""

    decisions: int = 0
    agreed: int = 0
    disagreed: int = 0

    @property
    def judged(self) -> int:
        return self.agreed + self.disagreed

    @property
    def undecided(self) -> int:
        return self.decisions - self.judged

    @property
    def precision(self) -> Shown[float | None]:
        """The share of correct decisions among those that could be judged."""
        return self.agreed / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class ShadowSample(MailHead):
    """One shadow decision, and what the user did."""

    message_id: UUID
    decided_at: datetime
    action: str
    parameters: Mapping[str, Any]
    rule_name: str | None
    agreed: bool
    what: str


class ShadowSelection(NamedTuple):
    """A selection of decisions: why they are in shadow (`rule`, `category:finance`, `model`), and by which rule."""

    why: str
    rule_id: UUID | None = None

    @property
    def arguments(self) -> tuple[str, str | None]:
        return self.why, None if self.rule_id is None else str(self.rule_id)


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """The numbers, and samples of each kind, newest first."""

    tally: Tally
    disagreed: tuple[ShadowSample, ...]
    agreed: tuple[ShadowSample, ...]


class InShadow(NamedTuple):
    """A category or the model (with an empty name), and since when it is in shadow."""

    kind: ShadowKind
    name: str
    since: datetime


@query
def standing_shadows() -> Script[list[InShadow]]:
    return read_rows(InShadow, (yield sql("select_shadows")))


@query
def shadow_tallies() -> Script[tuple[Mapping[UUID, Tally], Mapping[tuple[str, str], Tally]]]:
    """Tallies of each shadow rule by its id, since it was last changed; of categories and the model by kind and name,
    since they are in shadow. Those without decisions since then are missing.
    """
    rules = yield sql("select_shadow_counts_of_rules")
    others = yield sql("select_shadow_counts")
    return (
        {as_uuid(row["id"]): read_row(Tally, row) for row in rules.by_name()},
        {(row["kind"], row["name"]): read_row(Tally, row) for row in others.by_name()},
    )


@query
def shadow_report(whose: ShadowSelection, since: datetime, samples: int) -> Script[ShadowReport]:
    tally = read_first(Tally, (yield sql("count_shadow", *whose.arguments, since)))
    found: dict[bool, tuple[ShadowSample, ...]] = {}
    for agreed in (False, True):
        rows = yield sql("select_shadow_samples", *whose.arguments, since, agreed, samples)
        found[agreed] = tuple(read_rows(ShadowSample, rows, agreed=agreed))
    return ShadowReport(tally or Tally(), found[False], found[True])
