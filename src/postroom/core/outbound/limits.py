"""Daily limits: how many messages a sender, and all senders of a domain, may submit on a day of UTC.

Every recipient counts as a message. A sender or domain may have a limit of its own; the settings have that of all
others.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from postroom.core.errors import DailyLimitReached

DAILY_LIMIT = 300


class DailyLimits(NamedTuple):
    """The limits of those who have none of their own; a domain may have none at all."""

    sender: int = DAILY_LIMIT
    domain: int | None = None


def day_of(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%d}"


def next_day(now: datetime) -> datetime:
    """When the counts restart."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def limit_reached(who: str, limit: int, now: datetime) -> DailyLimitReached:
    message = (
        f"{who} has reached the daily limit of {limit} messages; try again after {next_day(now):%Y-%m-%d %H:%M} UTC"
    )
    return DailyLimitReached(message, next_day(now))
