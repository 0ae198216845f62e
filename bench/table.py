"""The one table: a line per work and subject with median, spread, ratio, goal, and whether the goal is met."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass
class Line:
    """The samples of one subject at one work, one per round."""

    work: str
    subject: str
    unit: str = "jobs/s"
    samples: list[float] = field(default_factory=list[float])
    p50_ms: list[float] = field(default_factory=list[float])
    p99_ms: list[float] = field(default_factory=list[float])
    max_ms: list[float] = field(default_factory=list[float])
    error: str | None = None
    comparison: "Comparison | Bound | None" = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.samples) if self.samples and self.error is None else None

    def add_latencies(self, seconds: Sequence[float]) -> None:
        cuts = statistics.quantiles(seconds, n=100, method="inclusive")
        self.p50_ms.append(cuts[49] * 1000)
        self.p99_ms.append(cuts[98] * 1000)
        self.max_ms.append(max(seconds) * 1000)


@dataclass(frozen=True)
class Comparison:
    """A ratio of two medians, in words, and the bound it has to keep; without a bound it only informs."""

    numerator: Line
    denominator: Line
    reads: str  # with {ratio} where the figure goes
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float | None:
        above, below = self.numerator.median, self.denominator.median
        return None if above is None or below is None else above / below

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g} ×"
        return "" if self.at_most is None else f"≤ {self.at_most:g} ×"

    @property
    def met(self) -> bool | None:
        """None: there is no goal, or one side has no figure."""
        if self.ratio is None or not self.goal:
            return None
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return self.at_most is not None and self.ratio <= self.at_most

    def __str__(self) -> str:
        return "" if self.ratio is None else self.reads.format(ratio=f"{self.ratio:.2f} ×")


@dataclass(frozen=True)
class Bound:
    """A bound on the figure itself. Of several lines, the best has to keep it."""

    lines: "Sequence[Line]"
    at_least: float | None = None
    at_most: float | None = None
    ratio: None = None

    @property
    def goal(self) -> str:
        unit, best = self.lines[0].unit, "" if len(self.lines) == 1 else " at best"
        if self.at_least is not None:
            return f"≥ {self.at_least:,.0f} {unit}{best}"
        return f"≤ {self.at_most:g} {unit}{best}"

    @property
    def met(self) -> bool | None:
        medians = [line.median for line in self.lines if line.median is not None]
        if not medians:
            return None
        if self.at_least is not None:
            return max(medians) >= self.at_least
        return self.at_most is not None and min(medians) <= self.at_most

    def __str__(self) -> str:
        return ""


def ahead_of(ours: Line, peer: Line, at_least: float | None) -> Comparison:
    """Ours measured against a peer, written on the peer's line."""
    return Comparison(ours, peer, f"{ours.subject} is {{ratio}} {peer.subject}", at_least=at_least)


def show(lines: Sequence[Line]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("work", "subject"):
        table.add_column(heading, no_wrap=True)
    for heading in ("median", "spread (min–max)", "p50 / p99 / max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("ratio", "goal", "met"):
        table.add_column(heading, no_wrap=True)
    work: str | None = None
    for line in lines:
        if work not in (None, line.work):
            table.add_row()
        table.add_row(*_cells(line, first=line.work != work))
        work = line.work
    # A table cut to the terminal's width would hide the verdicts; as a file it must not depend on a terminal at all.
    Console(width=250, soft_wrap=True).print(table)


def _cells(line: Line, *, first: bool) -> list[str]:
    work = line.work if first else ""
    if line.median is None:
        return [work, line.subject, "not measured", "", "", "", _goal(line), ""]
    spread = f"{_number(min(line.samples), line.unit)}–{_number(max(line.samples), line.unit)}"
    latency = ""
    if line.p50_ms:
        p50, p99, most = (statistics.median(each) for each in (line.p50_ms, line.p99_ms, line.max_ms))
        latency = f"{p50:.2f} / {p99:.2f} / {most:.1f} ms"
    ratio = str(line.comparison) if line.comparison else ""
    median = f"{_number(line.median, line.unit)} {line.unit}"
    return [work, line.subject, median, spread, latency, ratio, _goal(line), _met(line)]


def _goal(line: Line) -> str:
    return line.comparison.goal if line.comparison else ""


def _met(line: Line) -> str:
    met = line.comparison.met if line.comparison else None
    return {True: "met", False: "NOT MET", None: ""}[met]


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit.endswith("/s") else f"{value:.3f}"


def complaints(lines: Sequence[Line]) -> list[str]:
    """Why lines have no figure, each reason once."""
    return list(dict.fromkeys(line.error for line in lines if line.error is not None))


def as_json(lines: Sequence[Line]) -> list[dict[str, object]]:
    return [_record(line) for line in lines]


def _record(line: Line) -> dict[str, object]:
    comparison = line.comparison
    return {
        "work": line.work,
        "subject": line.subject,
        "unit": line.unit,
        "median": line.median,
        "samples": line.samples,
        "p50_ms": line.p50_ms,
        "p99_ms": line.p99_ms,
        "max_ms": line.max_ms,
        "ratio": comparison.ratio if comparison else None,
        "ratio_reads": str(comparison) if comparison else None,
        "goal": comparison.goal if comparison else None,
        "met": comparison.met if comparison else None,
        "error": line.error,
    }
