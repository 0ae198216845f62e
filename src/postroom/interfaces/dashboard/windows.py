"""The window of time that a page shows, chosen by its address."""

from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.overview.windows import DEFAULT_WINDOW, WINDOWS, WindowName

WINDOW_CHOICES = (("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))


def chosen_window(visit: Visit) -> WindowName:
    return visit.choice("window", WINDOWS, DEFAULT_WINDOW)
