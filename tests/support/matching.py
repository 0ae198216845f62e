"""Conditions of rules tried on one message."""

from datetime import datetime

from postroom.core.rules.conditions import as_test, read_conditions
from postroom.core.rules.facts import MessageFacts, Seen


def matches(conditions: object, message: MessageFacts, now: datetime | None = None) -> bool:
    """Whether the conditions hold for the message. Raises BrokenRule."""
    return as_test(read_conditions(conditions))(Seen(message, now))
