"""The window of a backfill: two days, both inclusive, in the time zone of the settings."""

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from postroom.core.days import DAY, start_of
from postroom.core.errors import BadInput

EARLIEST = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Window:
    """The days from `date_from` to `date_to`. A day begins and ends at midnight in `zone`, daylight saving included."""

    date_from: date
    date_to: date
    zone: ZoneInfo

    @property
    def start(self) -> datetime:
        """The first moment of the window, in UTC."""
        return start_of(self.date_from, self.zone)

    @property
    def end(self) -> datetime:
        """The first moment after the window, in UTC."""
        return start_of(self.date_to + DAY, self.zone)

    @property
    def days(self) -> int:
        return (self.date_to - self.date_from).days + 1

    def contains(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


def checked_window(date_from: date, date_to: date, zone: ZoneInfo, today: date) -> Window:
    """The window, if its days are in order and neither in the future nor before 1970. Raises BadInput."""
    if date_from < EARLIEST:
        raise BadInput("date_from", f"{date_from} is before 1970", f"use {EARLIEST} for everything there is")
    if date_to > today:
        raise BadInput("date_to", f"{date_to} is in the future", f"use {today} or earlier; new mail comes by itself")
    if date_from > date_to:
        raise BadInput("date_from", f"{date_from} is after {date_to}, the last day", "exchange the two")
    return Window(date_from, date_to, zone)
