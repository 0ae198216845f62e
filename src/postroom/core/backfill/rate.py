"""The rate of a backfill as the switchboard enforces it: a connector that is faster than its job allows is held.

A connector spreads its messages evenly by itself. So it is never far ahead, and messages beyond the slack are a fault
or an attack. The state is one moment: when the next message is due at an even rate.
"""

from datetime import datetime, timedelta

HOUR = timedelta(hours=1)
MESSAGES_AHEAD = 100
TIME_AHEAD = timedelta(seconds=10)
"""The slack is a hundred messages; at high rates, the messages of ten seconds."""


def spacing(per_hour: int) -> timedelta:
    """The time between two messages."""
    return HOUR / per_hour


def slack(per_hour: int) -> timedelta:
    """How far a connector may be ahead of its rate."""
    return max(MESSAGES_AHEAD * spacing(per_hour), TIME_AHEAD)


def due_from(due: datetime | None, since: datetime, per_hour: int, now: datetime) -> datetime:
    """When the next message is due; not before `since`, so that a pause earns no burst.

    What lies further ahead than the slack allows comes from a clock that was wrong.
    """
    begin = since if due is None else max(due, since)
    return begin if begin <= now + slack(per_hour) else now


def allowed(due: datetime, per_hour: int, now: datetime) -> int:
    """How many more messages the slack allows now."""
    return max(0, (now + slack(per_hour) - due) // spacing(per_hour))


def too_early(due: datetime, count: int, per_hour: int, now: datetime) -> timedelta:
    """How long to wait until so many messages are allowed; zero if they are now."""
    return max(timedelta(0), due + count * spacing(per_hour) - now - slack(per_hour))
