"""The safety settings in the form that decisions use."""

from postroom.core.actions.safety import Policy
from postroom.settings.sections import SafetySettings


def policy_of(safety: SafetySettings) -> Policy:
    """The user's safety policy."""
    return Policy(
        safety.confidence,
        safety.trash_confidence,
        frozenset(safety.always_approve),
        safety.trust_rules,
        safety.trust_agents,
        safety.hourly_cap,
        safety.agent_hourly_cap,
    )
