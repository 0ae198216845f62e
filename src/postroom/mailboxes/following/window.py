"""How far back a connector looks for existing mail."""

from datetime import datetime, timedelta

WINDOW = timedelta(days=7)
# Beyond this, it is a backfill and not a resync.
FURTHEST = timedelta(days=90)
# A day of overlap costs little, since ingested mail is not read again.
OVERLAP = timedelta(days=1)


def window_start(now: datetime, known_until: datetime | None, acts_from: datetime | None = None) -> datetime:
    """The start of the window: some days ago, or further back if the last known position is older, as after a month
    without a connector. The first one begins where the owner wants mail to be acted on, if that is not too long ago.
    """
    if known_until is None:
        wanted = now if acts_from is None or acts_from < now - FURTHEST else acts_from
        return min(now - WINDOW, wanted)
    return min(now - WINDOW, max(known_until - OVERLAP, now - FURTHEST))
