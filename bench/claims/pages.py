"""How long each page takes with a long history, and what a hundred open pages cost: pages of a signed-in visitor."""

import os
import subprocess
import sys
from functools import partial
from statistics import quantiles
from typing import Any

from ..answers import SubjectFailedError
from ..install import ROOT
from ..order import Database, Target
from ..page_history import TENANTS
from ..pages import Seen
from ..rounds import Run
from ..table import Bound, Comparison, Line
from .live_mail import alternate_together, asked

P95_MS = 100
PER_SECOND = 1
MOST_SHARE = 20.0


def postgres(run: Run) -> list[Line]:
    return _pages(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _pages(run, "sqlite", "SQLite")


def _pages(run: Run, kind: Database, named: str) -> list[Line]:
    """The p95 of the server's time for each page, by the clock and, below it, of the processor, database included."""
    count = run.sizes.pages[kind]
    lines: dict[str, tuple[Line, Line]] = {}
    with run.ground.kept(kind, f"pages_{count}", partial(_fill, count=count)) as target:
        for number in range(run.rounds):
            _say(f"pages, {named}, round {number + 1} of {run.rounds}, load average {os.getloadavg()[0]:.1f}")
            for said in _look(target, run.sizes.page_visits):
                _note(lines, Seen(**said), f"{named}, {count:,} messages, {TENANTS:,} tenants: ")
    return [line for both in lines.values() for line in both]


def _note(lines: dict[str, tuple[Line, Line]], seen: Seen, title: str) -> None:
    if seen.name not in lines:
        clock, cpu = Line(f"{title}{seen.name}", "p95", "ms"), Line(f"{title}{seen.name}", "p95, processor", "ms")
        if not seen.name.startswith("floor"):
            clock.comparison = Bound([clock], at_most=P95_MS)
        lines[seen.name] = clock, cpu
    clock, cpu = lines[seen.name]
    if seen.error:
        clock.error = cpu.error = seen.error
        return
    for line, taken in ((clock, seen.app), (cpu, seen.cpu)):
        line.samples.append(quantiles(taken, n=20, method="inclusive")[-1])
        line.add_latencies([each / 1000 for each in taken])


def _fill(target: Target, *, count: int) -> None:
    """What it takes is said meanwhile: a million messages take minutes."""
    command = [sys.executable, "-m", "bench.page_fill", target.database, target.address, str(count)]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode != 0:
        raise SubjectFailedError("the history could not be filled in")


def _look(target: Target, visits: int) -> list[dict[str, Any]]:
    found = asked("bench.pages", target.database, target.address, str(visits))
    return found["pages"]


def live(run: Run) -> list[Line]:
    count = run.sizes.pages["sqlite"]
    work = f"100 open pages, {PER_SECOND} message/s, SQLite, {count:,} messages"
    more = Line(f"{work}: what they cost", run.field.ours.name, "% of a core")
    alone = Line(f"{work}: the product", "nobody looks", "% of a core")
    watched = Line(alone.work, "100 pages are open", "% of a core")
    boards = Line(f"{work}: boards sent", run.field.ours.name, "/s")
    more.comparison = Bound([more], at_most=MOST_SHARE)
    watched.comparison = Comparison(watched, alone, "watched is {ratio} alone")
    with run.ground.kept("sqlite", f"pages_{count}", partial(_fill, count=count)) as target:
        measure = partial(_watch, target, run.sizes.live_pages_s)
        return alternate_together(run, [more, alone, watched, boards], measure)


def _watch(target: Target, seconds: int, lines: list[Line]) -> None:
    outcome = asked("bench.pages_live", "product", target.address, str(PER_SECOND), str(seconds))
    more, alone, watched, boards = lines
    alone.samples.append(outcome["alone"] * 100)
    watched.samples.append(outcome["watched"] * 100)
    more.samples.append((outcome["watched"] - outcome["alone"]) * 100)
    boards.samples.append(sum(outcome["boards"].values()) / outcome["seconds"])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
