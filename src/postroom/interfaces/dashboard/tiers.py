"""Counts over time as parts and series of pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.display import tier_kind, words
from postroom.operations.overview.volumes import Volume


def tier_parts(volume: Volume) -> list[Part]:
    """The live tiers as parts of a ring."""
    return [Part(words(each.tier), each.count, tier_kind(each.tier)) for each in volume.tiers]


def tier_series(by_tier: Mapping[str, Sequence[int | None]]) -> list[Series]:
    """The tiers over time; one in which nothing ever was is left out, unless nothing was in any."""
    shown = {tier: counts for tier, counts in by_tier.items() if any(counts)} or by_tier
    return [Series(words(tier), counts, tier_kind(tier)) for tier, counts in shown.items()]


def with_gaps(series: Sequence[Series], recorded: Sequence[bool]) -> list[Series]:
    """Return the series without the zeros of spans in which nothing was recorded."""
    return [replace(each, values=[*map(_known, each.values, recorded)]) for each in series]


def _known(value: float | None, is_recorded: bool) -> float | None:
    return value if value or is_recorded else None
