"""How long a session lasts, when its secret is replaced, and how long a proof of identity stays fresh."""

from datetime import datetime, timedelta
from typing import NamedTuple

SEEN_EVERY = timedelta(minutes=1)
"""How exactly the last use of a session is known: it is written no more often."""
ROTATE_EVERY = timedelta(hours=1)
OLD_SECRET_LIVES = timedelta(minutes=1)
"""How long the old secret is accepted once the new one has been used: requests that were under way have the old one."""
FRESH = timedelta(minutes=10)
LINK_LIVES = timedelta(hours=24)
CHALLENGE_LIVES = timedelta(minutes=5)


class SessionLimits(NamedTuple):
    """A session ends after `idle` without a request, and after `whole` in any case."""

    idle: timedelta = timedelta(minutes=30)
    whole: timedelta = timedelta(hours=12)


def is_fresh(proven_at: datetime, now: datetime) -> bool:
    return timedelta(0) <= now - proven_at < FRESH
