"""The days of a time zone, changes to summer time included: the day of a moment, and when it begins and ends."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from postroom.core.errors import BadInput

DAY = timedelta(days=1)


def day_in(moment: datetime, zone: tzinfo) -> date:
    """The day of a moment in the zone."""
    return moment.astimezone(zone).date()


def start_of(day: date, zone: tzinfo) -> datetime:
    """The first moment of a day in the zone, in UTC."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def day_began(moment: datetime, zone: tzinfo) -> datetime:
    """When the day of this moment began, in UTC."""
    return start_of(day_in(moment, zone), zone)


def next_day(moment: datetime, zone: tzinfo) -> datetime:
    """When the day after that of this moment begins, in UTC."""
    return start_of(day_in(moment, zone) + DAY, zone)


def zone_named(name: str, field: str = "time_zone") -> ZoneInfo:
    """The time zone with this name. Raises BadInput."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(field, f"{name[:80]!r} is not a time zone", "use a name such as UTC or Europe/Berlin") from None
