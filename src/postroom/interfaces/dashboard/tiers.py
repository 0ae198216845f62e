"""Volumes by tier as parts and series of pictures."""

from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.display import tier_kind, words
from postroom.operations.overview.volumes import Volume


def tier_parts(volume: Volume) -> list[Part]:
    """The live tiers as parts of a ring."""
    return [Part(words(each.tier), each.count, tier_kind(each.tier)) for each in volume.tiers]


def tier_series(volume: Volume) -> list[Series]:
    """The tiers over time; one without a message is left out, unless nothing arrived at all."""
    shown = {tier: counts for tier, counts in volume.by_tier.items() if any(counts)} or volume.by_tier
    return [Series(words(tier), counts, tier_kind(tier)) for tier, counts in shown.items()]
