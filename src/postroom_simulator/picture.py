"""The result of a simulation of the outbound queue as a picture, on its page and in a file."""

from collections.abc import Sequence

from markupsafe import Markup

from postroom.interfaces.dashboard.charts import WaitTimes, waits
from postroom.interfaces.dashboard.rendering import style_of
from postroom_simulator.simulator import Result

COLOURS = {"alone": "hist", "fair": "good", "fifo": "bad", "priority": "high", "single-pass": "ask"}


def simulation_picture(title: str, results: Sequence[Result], style: str = "") -> Markup:
    """Draw the waits of every group that sends mail, and those of the one that sends least once more as curves."""
    sending = [group for group in results[0].groups if group.mails]
    found = [
        WaitTimes(group.name, result.discipline, COLOURS[result.discipline], group.p95, group.longest, group.curve)
        for name in [group.name for group in sending]
        for result in results
        for group in result.groups
        if group.name == name and group.mails
    ]
    smallest = min(sending, key=lambda group: group.mails, default=None)
    return waits(title, found, "" if smallest is None else smallest.name, style)


def simulation_file(title: str, results: Sequence[Result]) -> str:
    """Draw the same picture as a file: with its style, for light and dark screens, and a ground of its own."""
    style = style_of("Tokens", "Charts") + "svg { background: var(--surface); }\n"
    return f"{simulation_picture(title, results, style)}\n"
