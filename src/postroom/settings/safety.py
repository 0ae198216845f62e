"""The settings of safety as the decisions use them."""

from postroom.core.actions.safety import Policy
from postroom.settings.sections import SafetySettings


def policy_of(safety: SafetySettings) -> Policy:
    """What the user has settled once and for all about safety."""
    return Policy(
        safety.confidence,
        safety.trash_confidence,
        frozenset(safety.always_approve),
        safety.trust_rules,
        safety.trust_agents,
        safety.hourly_cap,
        safety.agent_hourly_cap,
    )
