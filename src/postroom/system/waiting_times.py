"""How long another server asks us to wait: the `Retry-After` header of its answer."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,9})?")
_UNITS = (("Retry-After-Ms", 0.001), ("Retry-After", 1.0))


def retry_after(headers: Mapping[str, str], longest: timedelta) -> timedelta | None:
    """The waiting time that the headers ask for, at most the longest one; None if they ask for none.

    A date is compared with the answer's own, so that a wrong clock on our side does not matter.
    """
    for name, seconds in _UNITS:
        if _NUMBER.fullmatch(given := headers.get(name, "").strip()):
            return min(timedelta(seconds=min(float(given) * seconds, longest.total_seconds())), longest)
    return wait_until(headers.get("Retry-After", ""), headers, longest)


def wait_until(text: str, headers: Mapping[str, str], longest: timedelta) -> timedelta | None:
    """The time from the answer's own date to the one in the text; None if one is missing, or it is over."""
    until, answered = read_date(text), read_date(headers.get("Date", ""))
    return min(until - answered, longest) if until and answered and until > answered else None


def read_date(text: str) -> datetime | None:
    """An HTTP date or an ISO time; None for anything else, for a time without a zone, and for an absurd one."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(text.strip())
        except (ValueError, IndexError, OverflowError, TypeError):
            continue
        if moment.tzinfo is not None and 2000 <= moment.year < 2200:
            return moment
    return None
