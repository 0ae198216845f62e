"""What the first load of a page costs a browser: under 300 KB, its largest part within a second, and no shift."""

from ..painting import ADDRESSES
from ..rounds import Run
from ..table import Bound, Line
from .live_mail import alternate_together, asked

MOST_KB = 300
WITHIN_MS = 1_000
MOST_SHIFT = 0


def first_load(run: Run) -> list[Line]:
    """A line for each page's largest paint; of sizes and shifts, the worst of all pages."""
    ours = run.field.ours.name
    size = Line("first load of a page, the largest", ours, "KB")
    shift = Line("layout shift of a page, the worst", ours, "")
    paints = [Line(f"largest paint of {address}", ours, "ms") for address in ADDRESSES]
    size.comparison = Bound([size], at_most=MOST_KB)
    shift.comparison = Bound([shift], at_most=MOST_SHIFT)
    for line in paints:
        line.comparison = Bound([line], at_most=WITHIN_MS)
    return alternate_together(run, [size, shift, *paints], _measure)


def _measure(lines: list[Line]) -> None:
    found = asked("bench.painting")
    size, shift, *paints = lines
    size.samples.append(max(each["kilobytes"] for each in found.values()))
    shift.samples.append(max(each["shifted"] for each in found.values()))
    for line, address in zip(paints, ADDRESSES, strict=True):
        line.samples.append(found[address]["painted_ms"])
