"""The window of time that a page shows, chosen by its address."""

from datetime import timedelta

from postroom.interfaces.dashboard.display import span
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.overview.windows import DEFAULT_WINDOW, WINDOWS, Window, WindowName

WINDOW_CHOICES = (("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))


def per(window: Window) -> str:
    """Return the span of each bar in words. Days are counted in UTC, since counts of weeks are kept so."""
    return "day (UTC)" if window.step >= timedelta(days=1) else span(window.step)


def chosen_window(visit: Visit) -> WindowName:
    return visit.choice("window", WINDOWS, DEFAULT_WINDOW)
