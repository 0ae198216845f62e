"""Pictures of numbers, as SVG that the server draws: they need no script, print well, and update like any other text.

Sizes are attributes and colours are classes of the stylesheet, so the strict content policy holds. Each picture has a
label with its numbers for those who do not see it, and each mark a title for those who point at it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from math import ceil, cos, floor, log10, pi, sin

from markupsafe import Markup

from postroom.interfaces.dashboard.display import day, span, zone_letters

WIDTH, HEIGHT = 480, 170
"""The size of half a page, where most charts stand: words drawn in it keep their size."""
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 22
ONE_VALUE = 12
"""How long the line of a single value is."""
CLOCK_UP_TO_S, DAYS_UP_TO_S = 2 * 86_400, 300 * 86_400
"""Times up to the first span are shown as hours and minutes, up to the second as days, longer ones as months."""
NOT_RECORDED = "not running: nothing recorded"
WAITS_WIDTH, WAITS_LEFT, WAITS_RIGHT = 860, 190, 90
WAITS_BAR, WAITS_GAP, WAITS_TOP, WAITS_CURVE = 16, 18, 64, 240
SHORTEST_WAIT_S = 0.01
WAIT_UNIT = "wait, in seconds (logarithmic)"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole: its name, its size, and the class of its colour, such as `high` or `good`."""

    name: str
    value: float
    colour: str


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time, one for each moment of the chart; None where nothing was recorded, which is not 0."""

    name: str
    values: Sequence[float | None]
    colour: str


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """How long the members of a group waited under one order of service, in seconds.

    `curve` has the share whose wait was over at each time.
    """

    group: str
    order: str
    colour: str
    p95: float
    longest: float
    curve: Sequence[tuple[float, float]]


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
    moments: Sequence[datetime],
    series: Sequence[Series],
    unit: str = "",
    *,
    limit: float | None = None,
    zone: tzinfo = UTC,
    gap: str = NOT_RECORDED,
) -> Markup:
    """Draw how much there was in each span of time, the parts of each on top of one another; otherwise as `lines`."""
    moments = [each.astimezone(zone) for each in moments]
    sums = [sum(value or 0 for value in values) for values in zip(*(each.values for each in series), strict=True)]
    axis = _Axis(max(*sums, limit or 0, 0), unit)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(moments))
    drawn = _gaps(moments, series, (LEFT, width), gap) + axis.lines() + _times(moments, width)
    below = [0.0] * len(moments)
    for each in series:
        for index, value in enumerate(each.values):
            if value:
                top, bottom = axis.y(below[index] + value), axis.y(below[index])
                title = f"{_moment_text(moments[index])}: {each.name} {number(value)}"
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
    zone: tzinfo = UTC,
    gap: str = NOT_RECORDED,
) -> Markup:
    """Draw values over time as lines; `limit` is a dashed line that they should stay under.

    Spans of which no series has a value are shaded; `gap` says what that means.
    """
    moments = [each.astimezone(zone) for each in moments]
    largest = max((value for each in series for value in each.values if value is not None), default=0)
    axis = _Axis(highest if highest is not None else max(largest, limit or 0), unit)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(moments) - 1)
    drawn = _gaps(moments, series, (LEFT - width / 2, width), gap) + axis.lines() + _times(moments, width)
    for each in series:
        drawn += Markup('<path class="ln k-{}" d="{}"><title>{}</title></path>').format(
            each.colour, _path(each.values, width, axis) or "M0,0", each.name
        )
    return _chart(drawn + _limit(limit, axis), series, unit)


def _path(values: Sequence[float | None], width: float, axis: "_Axis") -> str:
    """Return the line through the values, with a piece for each run of them without a gap."""
    path, length = "", 0
    for index, value in enumerate([*values, None]):
        if value is not None:
            path += f"{'L' if length else 'M'}{LEFT + index * width:.1f},{axis.y(value):.1f}"
            length += 1
        else:
            short = min(ONE_VALUE, width)
            path += f"h{-short if 1 < index == len(values) else short:g}" if length == 1 else ""
            length = 0
    return path


def _gaps(moments: Sequence[datetime], series: Sequence[Series], place: tuple[float, float], words: str) -> Markup:
    """Shade the spans of which no series has a value. `place` is the left end of the first, and how wide each is."""
    drawn, (left, width) = Markup(), place
    for first, last in _runs(_places_without_value(series)):
        until = "" if first == last else f" to {_moment_text(moments[last])}"
        begin, end = max(LEFT, left + first * width), min(WIDTH - RIGHT, left + (last + 1) * width)
        drawn += Markup(
            '<rect class="f-gap" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}{}: {}</title></rect>'
        ).format(
            *(begin, TOP, end - begin, HEIGHT - TOP - BOTTOM),
            *(_moment_text(moments[first]), until, words),
        )
    return drawn


def _runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of places."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place - 1:
            runs[-1] = runs[-1][0], place
        else:
            runs.append((place, place))
    return runs


def _places_without_value(series: Sequence[Series]) -> list[int]:
    columns = zip(*(each.values for each in series), strict=True)
    return [index for index, values in enumerate(columns) if all(value is None for value in values)]


def waits(title: str, found: Sequence[WaitTimes], closer: str, style: str = "") -> Markup:
    """Draw the 95th percentile of each group under each order, and below them the curves of the group `closer`.

    With `style` the picture is complete by itself, as a file.
    """
    axis = _LogAxis([each.p95 for each in found])
    groups = list(dict.fromkeys(each.group for each in found))
    end = WAITS_TOP + len(found) * (WAITS_BAR + 4) + len(groups) * WAITS_GAP + 8
    drawn = _words(16, 26, title, kind="k") + _words(
        16, 46, "Wait until delivery begins: 95 of 100 mails wait no longer"
    )
    drawn += axis.lines(WAITS_TOP - 8, end) + _words(WAITS_LEFT, end + 36, WAIT_UNIT)
    y = WAITS_TOP
    for group in groups:
        drawn += _words(16, y + 13, _shorten(group), kind="k")
        for each in (each for each in found if each.group == group):
            width = max(2.0, axis.x(each.p95) - WAITS_LEFT)
            drawn += _words(WAITS_LEFT - 8, y + 13, each.order, "end")
            drawn += _box(each.colour, WAITS_LEFT, y, width, WAITS_BAR)
            drawn += _words(WAITS_LEFT + width + 6, y + 13, span(each.p95))
            y += WAITS_BAR + 4
        y += WAITS_GAP
    drawn += _wait_curves(closer, [each for each in found if each.group == closer], end + 84)
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart waits" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        "{}{}</svg>"
    ).format(
        *(WAITS_WIDTH, end + 110 + WAITS_CURVE + 96, title),
        Markup("<style>{}</style>").format(style) if style else "",
        drawn,
    )


def legend(parts: Sequence[Part] | Sequence[Series], gap: str = NOT_RECORDED) -> Markup:
    """Name the colours of a picture, and what is shaded."""
    named = [(each.colour, each.name) for each in parts]
    if _places_without_value([each for each in parts if isinstance(each, Series)]):
        named.append(("gap", gap))
    square = Markup(
        '<span><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="f-{}" width="12" height="12"/></svg>{}</span>'
    )
    return Markup('<p class="legend">{}</p>').format(
        Markup().join(square.format(colour, name) for colour, name in named)
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


class _LogAxis:
    """A level, logarithmic axis of seconds with room for all values; shorter ones are drawn at its beginning."""

    def __init__(self, values: Iterable[float]) -> None:
        known = [max(value, SHORTEST_WAIT_S) for value in values] or [1.0]
        self._low = min(floor(log10(min(known))), ceil(log10(max(known))) - 1)
        self._high = max(ceil(log10(max(known)) + 1e-9), self._low + 1)

    def x(self, seconds: float) -> float:
        part = (log10(max(seconds, 10.0**self._low)) - self._low) / (self._high - self._low)
        return WAITS_LEFT + part * (WAITS_WIDTH - WAITS_LEFT - WAITS_RIGHT)

    def lines(self, top: float, bottom: float) -> Markup:
        drawn = Markup()
        for value in (10.0**power for power in range(self._low, self._high + 1)):
            drawn += Markup('<path class="grid" d="M{:.1f},{}V{}"/>').format(self.x(value), top, bottom)
            drawn += _words(self.x(value), bottom + 16, f"{value:g}", "middle")
        return drawn


def _wait_curves(group: str, found: Sequence[WaitTimes], top: float) -> Markup:
    axis, bottom, x = _LogAxis([each.longest for each in found]), top + WAITS_CURVE, float(WAITS_LEFT)
    drawn = _words(16, top - 20, f"{_shorten(group)}: the part of its mail whose delivery has begun within a time")
    drawn += axis.lines(top, bottom) + _words(WAITS_LEFT, bottom + 36, WAIT_UNIT)
    for percent in (0, 25, 50, 75, 100):
        y = bottom - percent / 100 * WAITS_CURVE
        drawn += Markup('<path class="grid" d="M{},{:.1f}H{}"/>').format(WAITS_LEFT, y, WAITS_WIDTH - WAITS_RIGHT)
        drawn += _words(WAITS_LEFT - 8, y + 4, f"{percent} %", "end")
    for each in found:
        stairs = "".join(f"H{axis.x(seconds):.1f}V{bottom - part * WAITS_CURVE:.1f}" for seconds, part in each.curve)
        drawn += Markup('<path class="ln k-{}" d="M{},{}{}H{}"/>').format(
            each.colour, WAITS_LEFT, bottom, stairs, WAITS_WIDTH - WAITS_RIGHT
        )
        drawn += _box(each.colour, x, bottom + 52, 14, 14) + _words(x + 20, bottom + 64, each.order)
        x += 44 + 8 * len(each.order)
    return drawn


def _words(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, text)


def _box(colour: str, x: float, y: float, width: float, height: float) -> Markup:
    size = Markup('width="{:.1f}" height="{}"').format(width, height)
    return Markup('<rect class="f-{}" x="{:.1f}" y="{:.1f}" {} rx="2"/>').format(colour, x, y, size)


def _shorten(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


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
    """Write about six times under the chart, each in its zone."""
    drawn = Markup()
    if not moments:
        return drawn
    # The difference of two times of one zone would be that of their clocks, which summer time moves.
    lasts = moments[-1].timestamp() - moments[0].timestamp()
    for index in range(0, len(moments), max(1, ceil(len(moments) / 6))):
        at = moments[index]
        text = f"{at:%H:%M}" if lasts <= CLOCK_UP_TO_S else day(at)
        if lasts > DAYS_UP_TO_S:
            text = f"{text.partition(' ')[2]} {at.year}"
        x = LEFT + index * width
        anchor = "end" if x > WIDTH - 40 else "start"
        drawn += Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(x, HEIGHT - 6, anchor, text)
    return drawn


def _chart(drawn: Markup, series: Sequence[Series], unit: str) -> Markup:
    label = "; ".join(f"{each.name}: {_summary(each.values)}{unit}" for each in series) or "nothing"
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, label, drawn
    )


def _summary(given: Sequence[float | None]) -> str:
    values = [value for value in given if value is not None]
    if not values:
        return "no values"
    gaps = f", nothing recorded in {len(given) - len(values)} of {len(given)}" if len(given) > len(values) else ""
    return f"from {number(min(values))} to {number(max(values))}, last {number(values[-1])}{gaps}"


def _moment_text(moment: datetime) -> str:
    return f"{day(moment)}, {moment:%H:%M} {zone_letters(moment)}"


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
