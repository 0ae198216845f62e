"""Times as people write them: a span such as `12h` or `30d` relative to now, or a time with its offset."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from postroom.core.days import start_of
from postroom.core.errors import BadInput

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Before anything that is stored."""
SPANS = {"m": "minutes", "h": "hours", "d": "days"}
REMEDY = "write 30d, 12h, 90m, or a time with its offset such as 2027-01-31T12:00:00+01:00"


def read_moment(option: str, text: str, now: datetime, *, ahead: bool) -> datetime:
    """Return the time meant; a span counts forward from now if `ahead`, otherwise back. One ahead is in the future."""
    moment = _read(option, text, now, ahead=ahead)
    if ahead and moment <= now:
        raise BadInput(option, f"{text!r} is over", "give a time in the future, such as 30d")
    return moment


def _read(option: str, text: str, now: datetime, *, ahead: bool) -> datetime:
    try:
        if span := re.fullmatch(r"(\d{1,9})([dhm])", text, re.ASCII):
            length = timedelta(**{SPANS[span[2]]: int(span[1])})
            return now + length if ahead else now - length
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise BadInput(option, f"{text!r} has no time zone", REMEDY)
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadInput(option, f"{text!r} is out of range", REMEDY) from None
    except ValueError:
        raise BadInput(option, f"{text!r} is not a time", REMEDY) from None


def read_start(option: str, text: str, now: datetime, zone: tzinfo = UTC) -> datetime:
    """Return the time that something begins at: `now`, a span back, a day (its start in the zone), or a past time."""
    if text == "now":
        return now
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        try:
            start = start_of(date.fromisoformat(text), zone)
        except (ValueError, OverflowError):
            raise BadInput(option, f"{text!r} is not a day", "write it as 2027-01-31") from None
    else:
        start = read_moment(option, text, now, ahead=False)
    if start > now:
        raise BadInput(option, f"{text!r} is in the future", "write now, 7d, or a past time")
    return start
