"""Pictures of numbers, as SVG that the server draws: they need no script, print well, and update like any other text.

Sizes are attributes and colours are classes of the stylesheet, so the strict content policy holds. Each picture has a
label with its numbers for those who do not see it, and each mark a title for those who point at it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, cos, floor, log10, pi, sin

from markupsafe import Markup

WIDTH, HEIGHT = 480, 170
"""The size of half a page, where most charts stand: words drawn in it keep their size."""
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 22
ONE_VALUE = 12
"""How long the line of a single value is."""
CLOCK_UP_TO_S = 2 * 86_400
"""Times up to this span are shown as hours and minutes, longer ones as days."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole: its name, its size, and the class of its colour, such as `high` or `good`."""

    name: str
    value: float
    colour: str


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time, one for each moment of the chart."""

    name: str
    values: Sequence[float]
    colour: str


def meter(parts: Iterable[Part], whole: float, size: str = "") -> Markup:
    """Draw parts of a whole as one bar."""
    drawn, at = Markup(), 0.0
    shown = list(parts)
    for each in shown:
        width = 0.0 if whole <= 0 else max(0.0, min(100 - at, 100 * each.value / whole))
        drawn += Markup('<rect class="f-{}" x="{:.2f}" width="{:.2f}" height="10"/>').format(each.colour, at, width)
        at += width
    label = ", ".join(f"{each.name} {number(each.value)}" for each in shown) + f" of {number(whole)}"
    return Markup(
        '<svg class="meter {}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(size, label, drawn)


def spark(values: Sequence[float], label: str) -> Markup:
    """Draw values as a small line without axes."""
    highest = max(values, default=0) or 1
    step = 72 / max(1, len(values) - 1)
    points = [(index * step, 18 - 16 * value / highest) for index, value in enumerate(values)]
    path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points) if points else ""
    return Markup('<svg class="spark" viewBox="0 0 72 20" role="img" aria-label="{}"><path d="{}"/></svg>').format(
        label, path
    )


def donut(parts: Iterable[Part], caption: str) -> Markup:
    """Draw parts of a whole as a ring, with the sum in the middle."""
    shown = [each for each in parts if each.value > 0]
    whole = sum(each.value for each in shown)
    drawn, at = Markup(), 0.0
    for each in shown:
        share = each.value / whole
        title = f"{each.name}: {number(each.value)}, {share:.0%}"
        drawn += Markup('<path class="f-{}" d="{}"><title>{}</title></path>').format(
            each.colour, _slice(at, min(share, 0.99999)), title
        )
        at += share
    label = ", ".join(f"{each.name} {number(each.value)} ({each.value / whole:.0%})" for each in shown) or "nothing"
    return Markup(
        '<svg class="donut" viewBox="0 0 160 160" role="img" aria-label="{}">{}'
        '<text class="k" x="80" y="86" text-anchor="middle">{}</text>'
        '<text x="80" y="106" text-anchor="middle">{}</text></svg>'
    ).format(label, drawn, number(whole), caption)


def stacked_bars(
    moments: Sequence[datetime], series: Sequence[Series], unit: str = "", *, limit: float | None = None
) -> Markup:
    """Draw how much there was in each span of time, the parts of each on top of one another; `limit` as in `lines`."""
    sums = [sum(values) for values in zip(*(each.values for each in series), strict=True)] if series else []
    axis = _Axis(max(*sums, limit or 0, 0), unit)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(moments))
    drawn = axis.lines() + _times(moments, width)
    below = [0.0] * len(moments)
    for each in series:
        for index, value in enumerate(each.values):
            if value > 0:
                top, bottom = axis.y(below[index] + value), axis.y(below[index])
                title = f"{_said(moments[index])}: {each.name} {number(value)}"
                drawn += Markup(
                    '<rect class="f-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
                ).format(each.colour, LEFT + index * width + 0.5, top, max(0.5, width - 1), bottom - top, title)
                below[index] += value
    return _chart(drawn + _limit(limit, axis), series, unit)


def lines(
    moments: Sequence[datetime],
    series: Sequence[Series],
    unit: str = "",
    *,
    limit: float | None = None,
    highest: float | None = None,
) -> Markup:
    """Draw values over time as lines; `limit` is a dashed line that they should stay under."""
    largest = max((value for each in series for value in each.values), default=0)
    axis = _Axis(highest if highest is not None else max(largest, limit or 0), unit)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(moments) - 1)
    drawn = axis.lines() + _times(moments, width)
    for each in series:
        points = "L".join(f"{LEFT + index * width:.1f},{axis.y(value):.1f}" for index, value in enumerate(each.values))
        if len(each.values) == 1:
            points += f"h{ONE_VALUE}"
        drawn += Markup('<path class="ln k-{}" d="M{}"><title>{}</title></path>').format(
            each.colour, points or "0,0", each.name
        )
    return _chart(drawn + _limit(limit, axis), series, unit)


def legend(parts: Iterable[Part | Series]) -> Markup:
    """Name the colours of a picture."""
    square = Markup(
        '<span><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="f-{}" width="12" height="12"/></svg>{}</span>'
    )
    return Markup('<p class="legend">{}</p>').format(
        Markup().join(square.format(each.colour, each.name) for each in parts)
    )


def number(value: float) -> str:
    """Format a number as people read it: `1,234`, `0.95`, `1.2 M`."""
    if value >= 10_000_000:
        return f"{value / 1_000_000:,.0f} M"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value >= 0.01 else f"{value:.1g}"


class _Axis:
    """The upright axis: from nothing to a round number above the highest value."""

    def __init__(self, highest: float, unit: str) -> None:
        self._step = _round_step(highest)
        self._top = max(self._step, ceil(highest / self._step - 1e-9) * self._step)
        self._unit = unit

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(value, self._top) / self._top)

    def lines(self) -> Markup:
        drawn = Markup()
        for index in range(round(self._top / self._step) + 1):
            value = index * self._step
            drawn += Markup(
                '<path class="grid" d="M{},{:.1f}H{}"/><text x="{}" y="{:.1f}" text-anchor="end">{}{}</text>'
            ).format(LEFT, self.y(value), WIDTH - RIGHT, LEFT - 6, self.y(value) + 4, number(value), self._unit)
        return drawn


def _limit(limit: float | None, axis: _Axis) -> Markup:
    if limit is None:
        return Markup()
    return Markup('<path class="cap" d="M{},{:.1f}H{}"/>').format(LEFT, axis.y(limit), WIDTH - RIGHT)


def _round_step(highest: float) -> float:
    """Return a step of 1, 2 or 5 times a power of ten that divides the axis into about four."""
    if highest <= 0:
        return 1
    raw = highest / 4
    power = 10 ** floor(log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw - 1e-12)


def _times(moments: Sequence[datetime], width: float) -> Markup:
    """Write about six times under the chart. They are in UTC, which the page says."""
    drawn = Markup()
    if not moments:
        return drawn
    is_short = (moments[-1] - moments[0]).total_seconds() <= CLOCK_UP_TO_S
    for index in range(0, len(moments), max(1, ceil(len(moments) / 6))):
        text = moments[index].strftime("%H:%M" if is_short else "%d %b")
        x = LEFT + index * width
        anchor = "end" if x > WIDTH - 40 else "start"
        drawn += Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(x, HEIGHT - 6, anchor, text)
    return drawn


def _chart(drawn: Markup, series: Sequence[Series], unit: str) -> Markup:
    label = "; ".join(f"{each.name}: {_summary(each.values)}{unit}" for each in series) or "nothing"
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, label, drawn
    )


def _summary(values: Sequence[float]) -> str:
    if not values:
        return "no values"
    return f"from {number(min(values))} to {number(max(values))}, last {number(values[-1])}"


def _said(moment: datetime) -> str:
    return moment.strftime("%d %b %H:%M UTC")


def _slice(start: float, share: float) -> str:
    """Return the path of a part of a ring, both as shares of the whole circle."""
    begin, end = 2 * pi * start - pi / 2, 2 * pi * (start + share) - pi / 2
    large = int(share > 0.5)
    corner = [(80 + radius * cos(angle), 80 + radius * sin(angle)) for radius in (74, 50) for angle in (begin, end)]
    (x1, y1), (x2, y2), (x4, y4), (x3, y3) = corner
    return (
        f"M{x1:.2f},{y1:.2f}A74,74,0,{large},1,{x2:.2f},{y2:.2f}L{x3:.2f},{y3:.2f}A50,50,0,{large},0,{x4:.2f},{y4:.2f}Z"
    )


CHARTS: Mapping[str, object] = {
    "meter": meter,
    "spark": spark,
    "donut": donut,
    "stacked_bars": stacked_bars,
    "lines": lines,
    "legend": legend,
}
