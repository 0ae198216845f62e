"""The road as a picture: places in columns, and ribbons between them as wide as the number that went along.

Each column is as tall as the busiest, so that widths can be compared across the picture.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, TOP, GAP, TALL = 1000, 26, 16, 300
COLUMNS = (0, 262, 540, 822)
THIN = 9
"""The width of a place."""
LEAST = 2.0
"""The height of the smallest ribbon, so that one message among thousands is still seen."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a column: its name for people, what is said under it, and the address behind it."""

    name: str
    said: str = ""
    address: str = ""
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Ribbon:
    column: int
    start: str
    end: str
    colour: str
    count: int


Columns = Sequence[Mapping[str, Place]]


def flow(titles: Sequence[str], columns: Columns, ribbons: Sequence[Ribbon], label: str) -> Markup:
    """Draw the ribbons from each column to the next. Places without a ribbon are left out."""
    sizes = [_sizes(index, columns[index], ribbons) for index in range(len(columns))]
    busiest = max((sum(each.values()) for each in sizes), default=0) or 1
    scale = TALL / busiest
    tops, height = _tops(sizes, scale)
    drawn = Markup().join(
        Markup('<text class="h" x="{}" y="12">{}</text>').format(x, title)
        for x, title in zip(COLUMNS, titles, strict=True)
    )
    drawn += _ribbons(ribbons, tops, scale)
    drawn += Markup().join(
        _place(columns[index][name], COLUMNS[index], tops[index][name], max(LEAST, size * scale), size)
        for index, each in enumerate(sizes)
        for name, size in each.items()
    )
    return Markup('<svg class="flow level" viewBox="0 0 {} {:.0f}" role="group" aria-label="{}">{}</svg>').format(
        WIDTH, height, label, drawn
    )


def _sizes(index: int, places: Mapping[str, Place], ribbons: Sequence[Ribbon]) -> dict[str, int]:
    """Return how many passed each place: what came in, or what went out, whichever is more."""
    came, left = Counter[str](), Counter[str]()
    for each in ribbons:
        if each.column == index:
            left[each.start] += each.count
        if each.column == index - 1:
            came[each.end] += each.count
    return {name: max(came[name], left[name]) for name in places if came[name] or left[name]}


def _tops(sizes: Sequence[Mapping[str, int]], scale: float) -> tuple[list[dict[str, float]], float]:
    tops: list[dict[str, float]] = []
    lowest = 0.0
    for column in sizes:
        at, placed = float(TOP), dict[str, float]()
        for name, size in column.items():
            placed[name] = at
            at += max(LEAST, size * scale, 24) + GAP
        tops.append(placed)
        lowest = max(lowest, at)
    return tops, max(lowest, TOP + 40)


def _ribbons(ribbons: Sequence[Ribbon], tops: Sequence[Mapping[str, float]], scale: float) -> Markup:
    leaving: Counter[tuple[int, str]] = Counter()
    coming: Counter[tuple[int, str]] = Counter()
    drawn = Markup()
    for each in ribbons:
        if each.start not in tops[each.column] or each.end not in tops[each.column + 1]:
            continue
        before, after = (each.column, each.start), (each.column + 1, each.end)
        y1 = tops[each.column][each.start] + leaving[before] * scale
        y2 = tops[each.column + 1][each.end] + coming[after] * scale
        leaving[before] += each.count
        coming[after] += each.count
        x1, x2, thick = COLUMNS[each.column] + THIN, COLUMNS[each.column + 1], max(LEAST / 2, each.count * scale)
        middle = (x1 + x2) / 2
        path = (
            f"M{x1},{y1:.1f}C{middle},{y1:.1f} {middle},{y2:.1f} {x2},{y2:.1f}"
            f"V{y2 + thick:.1f}C{middle},{y2 + thick:.1f} {middle},{y1 + thick:.1f} {x1},{y1 + thick:.1f}Z"
        )
        drawn += Markup('<path class="link f-{}" d="{}"><title>{} to {}: {:,}</title></path>').format(
            each.colour, path, each.start, each.end, each.count
        )
    return drawn


def _place(place: Place, x: int, y: float, height: float, count: int) -> Markup:
    colour = f"f-{place.colour}" if place.colour else "node"
    beside, said = x + THIN + 6, f" · {place.said}" if place.said else ""
    drawn = Markup(
        '<rect class="{}" x="{}" y="{:.1f}" width="{}" height="{:.1f}" rx="1"/>'
        '<text x="{}" y="{:.1f}">{}</text><text class="s" x="{}" y="{:.1f}">{:,}{}</text>'
    ).format(colour, x, y, THIN, height, beside, y + 11, place.name, beside, y + 25, count, said)
    return Markup('<a href="{}">{}</a>').format(place.address, drawn) if place.address else drawn
