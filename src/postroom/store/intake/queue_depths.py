"""How many messages waited over time, as samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from postroom.store.engine.codecs import as_optional_time, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows


class DepthSample(NamedTuple):
    queue: str
    tier: str
    waiting: int


@dataclass(frozen=True, slots=True)
class TierDepth:
    """How much of one tier waits, up to a limit, how much is leased, and since when the first waits."""

    tier: str
    waiting: int
    leased: int
    oldest: datetime | None


class SpanDepth(NamedTuple):
    """The deepest sample of a tier in one span of a window, counted from its first."""

    place: int
    tier: str
    waiting: int


@query
def tier_depths(queue: str, tiers: Sequence[str], most: int) -> Script[list[TierDepth]]:
    """The depth of each tier now, counted up to `most`: a few steps into the index, however much waits."""
    leased = {tier: count for tier, count in (yield sql("count_leased", queue))}  # noqa: C416
    found: list[TierDepth] = []
    for tier in tiers:
        ((waiting, oldest),) = yield sql("count_waiting", queue, tier, most)
        found.append(TierDepth(tier, waiting, leased.get(tier, 0), as_optional_time(oldest)))
    return found


@query
def tiers_in(queue: str) -> Script[list[str]]:
    """The tiers in which something waits or is leased, whether or not the settings still have them."""
    return [tier for (tier,) in (yield sql("select_strays", queue, 1000))]


@transaction
def keep_depths(samples: Sequence[DepthSample], at: datetime) -> Script[None]:
    """Store the samples of a moment. Those that another process has stored for it stay."""
    yield sql("insert_depths", rows_text([tuple(each) for each in samples]), at)


@query
def depths_between(queue: str, since: datetime, until: datetime, step_s: int) -> Script[list[SpanDepth]]:
    """The deepest sample of each tier in every span."""
    return read_rows(SpanDepth, (yield sql("select_depths", queue, since, until, step_s)))


@query
def sampled_spans(since: datetime, until: datetime, step_s: int) -> Script[list[int]]:
    """The spans of a window in which a sample was stored: Postroom ran. They are counted from the first."""
    return [place for (place,) in (yield sql("select_sampled_spans", since, until, step_s))]


@transaction
def prune_depths(before: datetime) -> Script[int]:
    return len((yield sql("prune_depths", before)))
