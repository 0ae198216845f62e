"""The safety settings in the form that decisions use."""

from postroom.core.actions.hiding import HidingLimits
from postroom.core.actions.safety import Policy
from postroom.core.days import zone_named
from postroom.settings.reading import Settings


def policy_of(settings: Settings) -> Policy:
    """The user's safety policy."""
    safety = settings.safety
    return Policy(
        safety.confidence,
        safety.trash_confidence,
        frozenset(safety.always_approve),
        safety.trust_rules,
        safety.trust_agents,
        safety.hourly_cap,
        safety.agent_hourly_cap,
        HidingLimits(safety.hidden_per_sender, safety.hidden_per_hour, safety.hidden_per_day),
        zone_named(settings.time_zone),
    )
