"""The pictures on the page of a preview, as inline SVG. Sizes are attributes, so that no style is needed in them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from postroom.operations.preview.preview import Previewed
from postroom.operations.preview.preview_summary import Tally

WIDTH = 720
BAR, GAP = 14, 26
COLUMNS = 60
HEIGHT = 120


class Share(NamedTuple):
    """A part of all messages: the class of its colour, its name, and how many."""

    style: str
    name: str
    messages: int


class Bar(NamedTuple):
    """A row of a bar chart; the texts are escaped already."""

    name: str
    note: str
    tally: Tally


def shares(parts: Sequence[Share]) -> str:
    """One bar with all messages in it, and what its colours mean."""
    total = sum(part.messages for part in parts) or 1
    drawn: list[str] = []
    at = 0.0
    for part in parts:
        width = WIDTH * part.messages / total
        if part.messages:
            title = f"<title>{part.messages:,} {part.name}</title>"
            drawn.append(
                f'<rect class="{part.style}" x="{at:.1f}" y="0" width="{width:.1f}" height="28">{title}</rect>'
            )
        at += width
    names = [f'<li class="{each.style}">{each.name} <b>{each.messages:,}</b></li>' for each in parts if each.messages]
    picture = _svg(28, "".join(drawn), "; ".join(f"{each.messages:,} {each.name}" for each in parts))
    return f'{picture}<ul class="key">{"".join(names)}</ul>'


def bars(rows: Sequence[Bar]) -> str:
    """One bar for each row: the messages that leave, wait and stay."""
    most = max(row.tally.messages for row in rows) or 1
    drawn: list[str] = []
    for number, row in enumerate(rows):
        top, at = number * (BAR + GAP), 0.0
        drawn.append(f'<text x="0" y="{top + 14}">{row.name}</text>')
        drawn.append(
            f'<text class="dim" x="{WIDTH}" y="{top + 14}" text-anchor="end">{row.tally.messages:,} · {row.note}</text>'
        )
        for style, count in (("leave", row.tally.leave), ("ask", row.tally.wait), ("label", row.tally.stay)):
            width = WIDTH * count / most
            if count:
                drawn.append(
                    f'<rect class="{style}" x="{at:.1f}" y="{top + 19}" width="{width:.1f}" height="{BAR - 4}"/>'
                )
            at += width
    return _svg(len(rows) * (BAR + GAP), "".join(drawn), "messages of each")


def over_time(rows: Iterable[Previewed]) -> str:
    """Columns of equal spans of time: how many messages came, and how many of them would leave the inbox."""
    dated = [(row.sent_at, row.leaves_inbox) for row in rows if row.sent_at is not None]
    first, last = min(at for at, _ in dated), max(at for at, _ in dated)
    step = max((last - first) / COLUMNS, timedelta(seconds=1))
    counts = [[0, 0] for _ in range(COLUMNS)]
    for at, leaves in dated:
        counts[min(int((at - first) / step), COLUMNS - 1)][leaves] += 1
    most, width = max(sum(each) for each in counts), WIDTH / COLUMNS
    drawn: list[str] = []
    for number, (stay, leave) in enumerate(counts):
        tall, low = HEIGHT * (stay + leave) / most, HEIGHT * leave / most
        x = f'x="{number * width:.1f}" width="{width - 1:.1f}"'
        if stay:
            drawn.append(f'<rect class="stay" {x} y="{HEIGHT - tall:.1f}" height="{tall - low:.1f}"/>')
        if leave:
            drawn.append(f'<rect class="leave" {x} y="{HEIGHT - low:.1f}" height="{low:.1f}"/>')
    drawn.append(f'<text class="dim" x="0" y="{HEIGHT + 18}">{_day(first)}</text>')
    drawn.append(f'<text class="dim" x="{WIDTH}" y="{HEIGHT + 18}" text-anchor="end">{_day(last)}</text>')
    return _svg(HEIGHT + 24, "".join(drawn), "messages over time, and those that would leave the inbox")


def _day(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def _svg(height: int, inner: str, said: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{said}">{inner}</svg>'
