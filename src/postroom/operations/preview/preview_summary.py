"""The summary of a preview: how much would leave the inbox, wait for a yes or be seen first, by rule and by sender."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT
from postroom.operations.preview.preview import ANSWER_TOKENS, Previewed
from postroom.settings.sections import ModelSettings
from postroom.triage.decide.model_prices import prices_of

MOST_SENDERS = 10
MOST_DOUBTFUL = 10
DAYS_OF_MONTH = 30
# Fewer days say little about a month.
LEAST_DAYS = 7


@dataclass(slots=True)
class FateTally:
    """The fates of the mail of one rule or sender."""

    name: str
    messages: int = 0
    leave: int = 0
    wait: int = 0
    stay: int = 0
    actions: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, row: Previewed) -> None:
        self.messages += 1
        self.leave += row.leaves_inbox
        self.wait += row.result == "waits"
        self.stay += not row.leaves_inbox and row.result != "waits"
        action = row.action if row.result in ("done", "waits") else row.result
        self.actions[action] = self.actions.get(action, 0) + 1

    @property
    def action(self) -> str:
        """The most frequent of its actions."""
        return max(self.actions, key=self.actions.__getitem__, default="none")


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The cost of a model for the messages that no rule decides. `cents` is None if no price is known."""

    messages: int
    tokens: int
    cents: float | None
    cents_a_month: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Summary:
    """A preview in numbers."""

    messages: int
    leave_inbox: int
    wait: int
    see_first: int
    changed: int
    """Messages that something is done with, and that stay in the inbox."""
    untouched: int
    refused: int
    own: int
    skipped: int
    problems: int
    since: datetime | None
    until: datetime | None
    by_rule: Sequence[FateTally]
    by_sender: Sequence[FateTally]
    tiers: Mapping[str, int]
    tier_rules: Mapping[str, int]
    taken_in: Mapping[str, int]
    categories: Mapping[str, int]
    doubtful: Sequence[Previewed]
    model: ModelCost


def summarise(rows: Sequence[Previewed], model: ModelSettings) -> Summary:
    dates = [row.sent_at for row in rows if row.sent_at is not None]
    since, until = min(dates, default=None), max(dates, default=None)
    return Summary(
        messages=len(rows),
        leave_inbox=sum(row.leaves_inbox for row in rows),
        wait=sum(row.result == "waits" for row in rows),
        see_first=sum(_is_seen_first(row) for row in rows),
        changed=sum(row.result == "done" and not row.leaves_inbox for row in rows),
        untouched=sum(row.result in ("stays", "model") for row in rows),
        refused=sum(row.result == "refused" for row in rows),
        own=sum(row.result == "own" for row in rows),
        skipped=sum(row.result == "skipped" for row in rows),
        problems=sum(row.problem is not None for row in rows),
        since=since,
        until=until,
        by_rule=_by_rule(rows),
        by_sender=_by_sender(rows),
        tiers=_count(row.policy_tier for row in rows),
        tier_rules=_count(row.assignment_rule for row in rows),
        taken_in=_count(row.ingestion_tier for row in rows),
        categories=_count(name for row in rows for name in row.categories),
        doubtful=most_doubtful(rows),
        model=_cost(rows, model, since, until),
    )


def most_doubtful(rows: Iterable[Previewed], most: int = MOST_DOUBTFUL) -> list[Previewed]:
    """The decisions that a person may disagree with, the most doubtful first; one for each sender and rule."""
    found: dict[tuple[str, str], Previewed] = {}
    for row in sorted(rows, key=lambda each: -each.doubt):
        if row.doubt == 0 or len(found) == most:
            break
        found.setdefault((row.sender, " ".join(row.rules)), row)
    return list(found.values())


def _is_seen_first(row: Previewed) -> bool:
    """Whether it is of the highest tier and in the inbox."""
    return row.policy_tier == "high_priority" and not row.leaves_inbox and row.result not in ("own", "skipped")


def _by_rule(rows: Iterable[Previewed]) -> list[FateTally]:
    found: dict[str, FateTally] = {}
    for row in rows:
        for name in row.rules:
            found.setdefault(name, FateTally(name)).add(row)
    return sorted(found.values(), key=lambda each: (-each.messages, each.name))


def _by_sender(rows: Iterable[Previewed]) -> list[FateTally]:
    """The senders of most of the mail that something happens to."""
    found: dict[str, FateTally] = {}
    for row in rows:
        if row.result in ("done", "waits", "refused"):
            found.setdefault(row.sender, FateTally(row.sender)).add(row)
    return sorted(found.values(), key=lambda each: (-each.messages, each.name))[:MOST_SENDERS]


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _cost(rows: Sequence[Previewed], model: ModelSettings, since: datetime | None, until: datetime | None) -> ModelCost:
    asked = [row for row in rows if row.tokens]
    tokens = sum(row.tokens for row in asked)
    if model.provider == "none":
        return ModelCost(len(asked), tokens, None, None, "no model is set up, so this mail stays as it is")
    try:
        micros = prices_of(model).cost(tokens, ANSWER_TOKENS * len(asked))
    except ModelRefused:
        return ModelCost(len(asked), tokens, None, None, "the price of the model is unknown")
    cents = micros / MICROS_PER_CENT
    days = 0 if since is None or until is None else (until - since).days
    monthly = cents / days * DAYS_OF_MONTH if days >= LEAST_DAYS else None
    return ModelCost(len(asked), tokens, cents, monthly, f"by the price of {model.name}, at 4 letters a token")
