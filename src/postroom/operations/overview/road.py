"""The road of messages and events in a window: where they came from, how urgent they were, who decided, and what was
done. The counts are those of the hourly roll-ups, which are written with what they count.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from postroom.core.queue.queues import EMAIL
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import NO_BUCKET, HourCount, by_span, hour_of
from postroom.system.wall_clock import Clock, wall_clock

MOST_SOURCES = 5
OTHERS = "others"
DECIDERS = {"deterministic": "rule", "llm": "model", "none": "nobody"}
AGENTS = "agents"
"""The stage of events: agents take them from their queue, and decide themselves."""


@dataclass(frozen=True, slots=True)
class RoadLink:
    """How many went from one stage's place to the next stage's, of one tier."""

    stage: int
    """0 from source to tier, 1 from tier to decider, 2 from decider to ending."""
    start: str
    end: str
    tier: str
    count: int


@dataclass(frozen=True, slots=True)
class TierWait:
    """How long messages of a tier waited, as upper bounds: half of them, and all but one in twenty, waited less."""

    queue: str
    tier: str
    count: int
    half_ms: int
    most_ms: int


@dataclass(frozen=True, slots=True)
class Road:
    since: datetime
    until: datetime
    came_in: int
    links: tuple[RoadLink, ...]
    waits: tuple[TierWait, ...]
    tiers: Mapping[str, int]
    """How many came in of each tier, the most urgent first as the queues have them."""


async def read_road(database: Database, window: timedelta, clock: Clock = wall_clock) -> Road:
    """Return the road of the whole hours in the window, the current one included."""
    until = hour_of(clock()) + timedelta(hours=1)
    since = until - window
    accepted = await database.run(by_span("accepted", since, until, window))
    outcomes = await database.run(by_span("outcome", since, until, window))
    ended = await database.run(by_span("ended", since, until, window))
    waits = await database.run(by_span("wait", since, until, window))
    links = [*_arrivals(accepted), *_decisions(outcomes), *_events(accepted, ended)]
    tiers = Counter[str]()
    for each in accepted:
        tiers[each.name] += each.count
    return Road(since, until, sum(tiers.values()), tuple(links), tuple(_waits(waits)), dict(tiers))


def _arrivals(accepted: Sequence[HourCount]) -> Iterable[RoadLink]:
    """Return the links from sources to tiers. Small sources are shown together."""
    by_source = Counter[str]()
    for each in accepted:
        by_source[each.endpoint_identity] += each.count
    shown = {source for source, _ in by_source.most_common(MOST_SOURCES)}
    counts = Counter[tuple[str, str]]()
    for each in accepted:
        counts[each.endpoint_identity if each.endpoint_identity in shown else OTHERS, each.name] += each.count
    return (RoadLink(0, source, tier, tier, count) for (source, tier), count in sorted(counts.items()))


def _decisions(outcomes: Sequence[HourCount]) -> Iterable[RoadLink]:
    counts = Counter[tuple[int, str, str, str]]()
    for each in outcomes:
        tier, source, ending = each.name.split(" ")
        decider = DECIDERS.get(source, source)
        counts[1, tier, decider, tier] += each.count
        counts[2, decider, ending, tier] += each.count
    # What was decided before the window and again within it is only taken off here.
    return (
        RoadLink(stage, start, end, tier, count)
        for (stage, start, end, tier), count in sorted(counts.items())
        if count > 0
    )


def _events(accepted: Sequence[HourCount], ended: Sequence[HourCount]) -> Iterable[RoadLink]:
    """Return the links of queues other than mail: agents take their events."""
    tiers, endings = Counter[str](), Counter[str]()
    for each in accepted:
        if each.queue != EMAIL.queue:
            tiers[each.name] += each.count
    for each in ended:
        if each.queue != EMAIL.queue:
            endings[each.name] += each.count
    yield from (RoadLink(1, tier, AGENTS, tier, count) for tier, count in sorted(tiers.items()))
    yield from (RoadLink(2, AGENTS, ending, "", count) for ending, count in sorted(endings.items()))


def _waits(waits: Sequence[HourCount]) -> Iterable[TierWait]:
    buckets: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for each in waits:
        if each.bucket != NO_BUCKET:
            buckets[each.queue, each.name][each.bucket] += each.count
    for (queue, tier), counts in sorted(buckets.items()):
        yield TierWait(queue, tier, counts.total(), _upper_bound(counts, 0.5), _upper_bound(counts, 0.95))


def _upper_bound(buckets: Counter[int], share: float) -> int:
    """Return the milliseconds that this share of the waits stayed under. A bucket holds waits up to a power of two."""
    wanted, seen = share * buckets.total(), 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if seen >= wanted:
            return int(2**bucket)
    return 0
