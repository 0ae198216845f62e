"""How far back a connector looks for existing mail."""

from datetime import datetime, timedelta

WINDOW = timedelta(days=7)
# Beyond this, it is a backfill and not a resync.
FURTHEST = timedelta(days=90)
# A day of overlap costs little, since ingested mail is not read again.
OVERLAP = timedelta(days=1)


def window_start(now: datetime, known_until: datetime | None) -> datetime:
    """The start of the window: some days ago, or further back if the last known position is older, as after a month
    without a connector.
    """
    if known_until is None:
        return now - WINDOW
    return min(now - WINDOW, max(known_until - OVERLAP, now - FURTHEST))
