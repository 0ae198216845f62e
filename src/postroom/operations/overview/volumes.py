"""How many messages arrived and how long they waited, by tier, from the hourly counts."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from postroom.core.queue.queues import HISTORY
from postroom.core.views import Internal, Shown
from postroom.operations.overview.windows import Window
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import by_span
from postroom.store.intake import queue_depths


@dataclass(frozen=True, slots=True)
class TierCount:
    """The messages of one tier, and their share of all live ones."""

    tier: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Volume:
    """Accepted messages in a window, by tier, for each of its spans."""

    window: Window
    by_tier: Annotated[
        Mapping[str, Sequence[int]], "The tiers that are known, in their order, also those without a message."
    ]

    @property
    def total(self) -> Shown[int]:
        """The live messages; those from an archive are not counted."""
        return sum(sum(counts) for tier, counts in self.by_tier.items() if tier != HISTORY)

    @property
    def history(self) -> Shown[int]:
        return sum(self.by_tier.get(HISTORY, ()))

    @property
    def tiers(self) -> Shown[list[TierCount]]:
        """The live tiers with their counts and shares."""
        whole = self.total
        sums = [(tier, sum(counts)) for tier, counts in self.by_tier.items() if tier != HISTORY]
        return [TierCount(tier, count, count / whole if whole else 0.0) for tier, count in sums]


@dataclass(frozen=True, slots=True)
class Wait:
    """How long the messages of a tier waited until they were leased. Times are rounded up to a power of two in ms."""

    tier: Internal[str]
    leases: int
    median: timedelta
    p95: timedelta
    overrides: Annotated[int, "How often its turn came because the tiers above had theirs often enough."] = 0


async def volume_of(
    database: Database,
    window: Window,
    tiers: Sequence[str],
    *,
    endpoint_identity: str | None = None,
    queue: str | None = None,
) -> Volume:
    """Count what one endpoint delivered, or what came into one queue."""
    found = await database.run(by_span("accepted", window.since, window.end, window.step))
    mine = [
        each for each in found if endpoint_identity in (None, each.endpoint_identity) and queue in (None, each.queue)
    ]
    names = list(dict.fromkeys([*tiers, *sorted(each.name for each in mine)]))
    by_tier = {name: [0] * len(window.moments) for name in names}
    for each in mine:
        by_tier[each.name][window.place(each.hour)] += each.count
    return Volume(window, by_tier)


async def recorded_spans(database: Database, window: Window) -> Sequence[bool]:
    """Tell of each span whether Postroom ran in it, so that nothing counted means that nothing happened.

    While it runs, it samples the depth of its queues every five minutes.
    """
    step = round(window.step.total_seconds())
    sampled = set(await database.run(queue_depths.sampled_spans(window.since, window.end, step)))
    last = window.place(window.until)
    return [place in sampled or place == last for place in range(last + 1)]


async def counts_by_endpoint(database: Database, window: Window) -> Mapping[str, int]:
    """Count what each endpoint delivered in the window."""
    counts: Counter[str] = Counter()
    for each in await database.run(by_span("accepted", window.since, window.end, window.step)):
        counts[each.endpoint_identity] += each.count
    return counts


async def waits_of(database: Database, window: Window, queue: str) -> Mapping[str, Wait]:
    """Measure the waits of a queue by tier. A message that was returned and leased again counts again."""
    buckets: defaultdict[str, Counter[int]] = defaultdict(Counter)
    overrides: Counter[str] = Counter()
    for each in await database.run(by_span("override", window.since, window.end, window.step)):
        if each.queue == queue:
            overrides[each.name] += each.count
    for each in await database.run(by_span("wait", window.since, window.end, window.step)):
        if each.queue == queue:
            buckets[each.name][each.bucket] += each.count
    return {
        tier: Wait(tier, counts.total(), quantile(counts, 0.5), quantile(counts, 0.95), overrides[tier])
        for tier, counts in buckets.items()
    }


def quantile(buckets: Mapping[int, int], share: float) -> timedelta:
    """Return the time that this share of the values stayed under, from counts by power of two in milliseconds."""
    wanted, seen = share * sum(buckets.values()), 0
    for bucket, count in sorted(buckets.items()):
        seen += count
        if seen >= wanted:
            return timedelta(milliseconds=2**bucket)
    return timedelta()
