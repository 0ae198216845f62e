"""The result of a simulation as a picture: SVG without script, for light and dark pages."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from postroom.core.outbound.simulation.simulator import GroupResult, Result

_WIDTH, _LEFT, _RIGHT = 860, 190, 90
_BAR, _GAP, _HEAD = 16, 18, 64
_CURVE = 240
_LEAST_S = 0.01
UNIT = "wait, in seconds (logarithmic)"
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 16px; font-weight: 600; }
.small { font-size: 12px; fill: #57606a; }
.grid { stroke: #d0d7de; } .axis { stroke: #57606a; } .page { fill: #ffffff; }
.alone { --c: #8c959f; } .fair { --c: #1a7f37; } .fifo { --c: #cf222e; } .priority { --c: #8250df; }
.single-pass { --c: #bf5700; }
rect.bar { fill: var(--c); } path.curve { stroke: var(--c); fill: none; stroke-width: 2.5; }
path.priority { stroke-dasharray: 7 5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; } .grid { stroke: #3d444d; } .axis { stroke: #9198a1; }
  .page { fill: #0d1117; } .fair { --c: #3fb950; } .fifo { --c: #f85149; } .priority { --c: #bc8cff; }
  .single-pass { --c: #f0883e; }
}
"""


def picture(title: str, results: Sequence[Result], *, styled: bool = True) -> str:
    """Bars of the 95th percentiles, and below them how long the group that sends least waits.

    Without `styled` it has no style of its own: a page that allows no inline style has one for the class `simulation`.
    """
    names = [group.name for group in results[0].groups]
    smallest = min(results[0].groups, key=lambda group: group.mails).name
    axis = _Axis([each.p95 for result in results for each in result.groups])
    rows = sum(1 for result in results for _ in result.groups)
    bars_end = _HEAD + rows * (_BAR + 4) + len(names) * _GAP + 8
    height = bars_end + 110 + _CURVE + 96
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="simulation" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title, {chr(34): "&quot;"})}">',
        *([f"<style>{_STYLE}</style>"] if styled else []),
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        _text(16, 46, "Wait until delivery begins: 95 of 100 mails wait no longer"),
        *axis.grid(_HEAD - 8, bars_end),
        *_bars(names, results, axis),
        _text(_LEFT, bars_end + 36, UNIT),
        *_curves(smallest, results, bars_end + 84),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Axis:
    """A logarithmic axis of seconds that has room for all values. What is shorter stands at its beginning."""

    def __init__(self, values: Iterable[float]) -> None:
        known = [max(value, _LEAST_S) for value in values] or [1.0]
        self._low = min(floor(log10(min(known))), ceil(log10(max(known))) - 1)
        self._high = max(ceil(log10(max(known)) + 1e-9), self._low + 1)

    def x(self, seconds: float) -> float:
        part = (log10(max(seconds, 10.0**self._low)) - self._low) / (self._high - self._low)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def grid(self, top: float, bottom: float) -> list[str]:
        parts: list[str] = []
        for power in range(self._low, self._high + 1):
            x = self.x(10.0**power)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
            parts.append(
                f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>'
            )
        return parts


def _bars(names: Sequence[str], results: Sequence[Result], axis: _Axis) -> list[str]:
    parts: list[str] = []
    y = float(_HEAD)
    for name in names:
        parts.append(f'<text x="16" y="{y + 13}" font-weight="600">{escape(_shortened(name))}</text>')
        for result in results:
            group = _group(result, name)
            if group is None:
                continue
            width = max(2.0, axis.x(group.p95) - _LEFT)
            parts += [
                _text(_LEFT - 8, y + 13, result.discipline, "end"),
                _box(result.discipline, _LEFT, y, width, _BAR),
                _text(_LEFT + width + 6, y + 13, spoken(group.p95)),
            ]
            y += _BAR + 4
        y += _GAP
    return parts


def _curves(name: str, results: Sequence[Result], top: float) -> list[str]:
    groups = [(result.discipline, group) for result in results if (group := _group(result, name)) is not None]
    axis, bottom = _Axis([group.longest for _, group in groups]), top + _CURVE
    parts = [
        _text(16, top - 20, f"{_shortened(name)}: the part of its mail whose delivery has begun within a time"),
        *axis.grid(top, bottom),
    ]
    for percent in (0, 25, 50, 75, 100):
        y = bottom - percent / 100 * _CURVE
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{percent} %", "end"))
    parts.append(_text(_LEFT, bottom + 36, UNIT))
    x = float(_LEFT)
    for discipline, group in groups:
        points = _stairs(group, axis, bottom)
        parts.append(f'<path class="curve {discipline}" d="M{" L".join(points)}"/>')
        parts.append(_box(discipline, x, bottom + 52, 14, 14))
        parts.append(_text(x + 20, bottom + 64, discipline))
        x += 44 + 8 * len(discipline)
    return parts


def _stairs(group: GroupResult, axis: _Axis, bottom: float) -> list[str]:
    """The curve as points: straight up to its first value, then from one to the next, and on to the right edge."""
    points = [f"{_LEFT},{bottom}"]
    part = 0.0
    for seconds, reached in group.curve:
        points.append(f"{axis.x(seconds):.1f},{bottom - part * _CURVE:.1f}")
        points.append(f"{axis.x(seconds):.1f},{bottom - reached * _CURVE:.1f}")
        part = reached
    points.append(f"{_WIDTH - _RIGHT},{bottom - part * _CURVE:.1f}")
    return points


def _group(result: Result, name: str) -> GroupResult | None:
    return next((group for group in result.groups if group.name == name and group.mails), None)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="small" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _box(discipline: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:.1f}" height="{height}"'
    return f'<rect class="bar {discipline}" x="{x:.1f}" y="{y:.1f}" {size} rx="2"/>'


def _shortened(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def spoken(seconds: float) -> str:
    """A time for people: `0.0 s`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
