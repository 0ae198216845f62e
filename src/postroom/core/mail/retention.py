"""How long the content of stored mail is kept, by ingestion tier and category.

Each tier has a time, and categories may have times of their own, which replace that of the tier. Of several categories
the longest time counts. Times are in days since the message was stored, so that old mail that is brought in later is
not dropped at once. Zero keeps it for good, and is the default of everything.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from postroom.core.queue.envelope import IngestionTier

FOR_GOOD = 0
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Days for each tier, and for categories; zero keeps the mail for good."""

    full_days: int = FOR_GOOD
    metadata_days: int = FOR_GOOD
    categories: Mapping[str, int] = field(default_factory=dict[str, int])

    def days_for(self, tier: IngestionTier, categories: Collection[str]) -> int | None:
        """How many days such a message is kept; None for good."""
        own = self.full_days if tier == "full" else self.metadata_days
        times = [self.categories.get(each, own) for each in categories] or [own]
        return None if FOR_GOOD in times else max(times)

    def is_past(self, tier: IngestionTier, categories: Collection[str], stored_at: datetime, now: datetime) -> bool:
        """Whether a message that was stored then is past its time."""
        days = self.days_for(tier, categories)
        return days is not None and now - stored_at >= timedelta(days=days)

    @property
    def shortest(self) -> timedelta | None:
        """The shortest time that anything is kept; None if everything is kept for good."""
        times = [days for days in (self.full_days, self.metadata_days, *self.categories.values()) if days != FOR_GOOD]
        return timedelta(days=min(times)) if times else None

    def as_json(self) -> dict[str, object]:
        """The policy in a form that is equal if and only if it keeps mail for the same times."""
        return {
            "full_days": self.full_days,
            "metadata_days": self.metadata_days,
            "categories": dict(sorted(self.categories.items())),
        }
