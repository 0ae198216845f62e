"""Times in headers, as `Date` and `Received` have them."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def moment_in(text: str) -> datetime | None:
    """The time in a header, without a zone in UTC; None if it is none, or before 1971."""
    try:
        moment = parsedate_to_datetime(text.strip())
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.year > 1970 else None
