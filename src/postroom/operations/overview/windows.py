"""Windows of time that a page shows. They begin at full hours, as the hourly counts behind them do."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal, get_args

from postroom.core.views import Shown
from postroom.operations.operation import Argument
from postroom.store.installation.figure_folds import floored

WindowName = Literal["1h", "24h", "7d", "30d"]
WINDOWS: tuple[WindowName, ...] = get_args(WindowName)
DEFAULT_WINDOW: WindowName = "24h"
WindowArgument = Annotated[WindowName, Argument("The window of the counts.")]
_HOUR = timedelta(hours=1)
_LENGTHS = {"1h": _HOUR, "24h": 24 * _HOUR, "7d": timedelta(days=7), "30d": timedelta(days=30)}
_STEPS = {"1h": _HOUR, "24h": _HOUR, "7d": 6 * _HOUR, "30d": 24 * _HOUR}


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `since` until now, divided into spans of `step`; the last one is not over yet."""

    name: WindowName
    since: datetime
    until: datetime
    step: timedelta

    @property
    def moments(self) -> Shown[list[datetime]]:
        """The beginning of each span."""
        return [self.since + self.step * place for place in range(self.place(self.until) + 1)]

    @property
    def end(self) -> datetime:
        """The end of the last span."""
        return self.since + self.step * (self.place(self.until) + 1)

    def place(self, moment: datetime) -> int:
        """Return the span that a moment is in, counted from the first."""
        return (moment - self.since) // self.step


def window_of(name: WindowName, now: datetime) -> Window:
    """Return the window that ends now. It is at least as long as its name says."""
    step = _STEPS[name]
    since = floored(now - _LENGTHS[name], step)
    return Window(name, since, now, step)
