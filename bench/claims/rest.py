"""What the whole product costs while nothing happens: wake-ups, which keep a laptop's processor from sleeping, and
processor time.
"""

from functools import partial

from ..rounds import Run
from ..table import Bound, Line
from .live_mail import alternate_together, asked

MOST_WAKE_UPS = 5.0
MOST_CORE_PERCENT = 0.3


def one_process(run: Run) -> list[Line]:
    name, work = run.field.ours.name, "serve at rest, one mailbox, SQLite"
    wake_ups, core = Line(work, name, "wake-ups/s"), Line(f"{work}, processor", name, "% of a core")
    wake_ups.comparison = Bound([wake_ups], at_most=MOST_WAKE_UPS)
    core.comparison = Bound([core], at_most=MOST_CORE_PERCENT)
    return alternate_together(run, [wake_ups, core], partial(_measure, run.sizes.rest_s))


def _measure(seconds: int, lines: list[Line]) -> None:
    found = asked("bench.resting", str(seconds))
    for line, figure in zip(lines, (found["wake_ups"], found["core_percent"]), strict=True):
        line.samples.append(figure)
