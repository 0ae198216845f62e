"""Runs the test suites one after another and prints what each took beside its budget.

The budgets add up to twenty minutes on two quiet cores; a busy machine takes longer, and that fails nothing.
Tests wait for disks, servers and processes for half of their time, so a suite is shared by four pytest workers, or two
if it only computes, each with a PostgreSQL of its own; tests that start many processes at once have the machine to
themselves afterwards.
`--lint` runs `make lint` beside the first suite, since pyright keeps only one core busy.
`--soak` runs the files that have big counts, with those counts (the tests read POSTROOM_TEST_SCALE): the others would
only do again what `make test` has done.
"""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LINT_BUDGET_S = 150
SUITES = {"unit": 110, "conformance": 195, "integration": 385, "security": 50, "browser": 190, "chaos": 240}
SOAKED = {"unit": 900, "conformance": 3600, "integration": 3600, "browser": 1800, "chaos": 7200}
WORKERS = {"unit": 2, "browser": 2}
MOST_WORKERS = 4
ALONE = {"chaos": ("test_gmail_connector.py", "test_killed_server.py", "test_scheduler.py")}
# The pages are visited on SQLite by `make test`, and on both databases by the soak.
PAGES = "test_page_"
COUNTS = re.compile(r"\b(SOAK|scale|hypothesis|mark\.soak)\b")
TOTALS = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")


def runs(suite: str, *, soak: bool) -> list[list[str]]:
    """What pytest is told, for each of the runs that the suite consists of."""
    folder = HERE / suite
    alone = [folder / name for name in ALONE.get(suite, ())]
    workers = str(WORKERS.get(suite, MOST_WORKERS))
    if soak:
        found = sorted(folder.glob("test_*.py"))
        big = [each for each in found if COUNTS.search(each.read_text()) or each.name.startswith(PAGES)]
        files = [str(each) for each in big if each not in alone]
    else:
        files = [str(folder), *(f"--ignore={each}" for each in alone)]
    shared = [*files, "-n", workers, "--dist", "worksteal"]
    return [*([] if folder in alone else [shared]), *([[str(each) for each in alone]] if alone else [])]


def run(arguments: list[str], counts: Counter[str]) -> bool:
    """One run of pytest, shown while it goes on; whether all was well."""
    command = [sys.executable, "-m", "pytest", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent, env=environment())
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        last = line if TOTALS.search(line) else last
    for number, what in TOTALS.findall(last):
        counts["failed" if what in ("error", "errors") else what] += int(number)
    return process.wait() == 0


def environment() -> dict[str, str]:
    """Ours, but that Python keeps what it has compiled: else every process that a test starts compiles it again."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Row:
    """What one part of the whole took."""

    name: str
    took_s: float
    budget_s: int
    well: bool

    def __str__(self) -> str:
        remarks = ("" if self.well else "  FAILED") + ("  over its budget" if self.took_s > self.budget_s else "")
        return f"{self.name:<12} {self.took_s:5.0f} s  {self.budget_s:5d} s{remarks}"


def lint() -> Row:
    """`make lint`, its output shown at its end, so that it does not mix with that of a suite."""
    started = time.monotonic()
    done = subprocess.run(["make", "--no-print-directory", "lint"], cwd=HERE.parent, capture_output=True, text=True)
    sys.stdout.write(f"{done.stdout}{done.stderr}")
    sys.stdout.flush()
    return Row("lint", time.monotonic() - started, LINT_BUDGET_S, done.returncode == 0)


def main() -> int:
    soak = "--soak" in sys.argv
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")]
    patience = ["--timeout=3600"] if soak else []
    counts: Counter[str] = Counter()
    rows: list[Row] = []
    begun = time.monotonic()
    with ThreadPoolExecutor() as beside:
        linted = beside.submit(lint) if "--lint" in sys.argv else None
        for name, budget in (SOAKED if soak else SUITES).items():
            if chosen and name not in chosen:
                continue
            started = time.monotonic()
            well = [run([*arguments, *patience], counts) for arguments in runs(name, soak=soak)]
            rows.append(Row(name, time.monotonic() - started, budget, all(well)))
        rows += [linted.result()] if linted else []
    print("\nsuite          took   budget")
    for row in rows:
        print(row)
    print(f"{'all':<12} {time.monotonic() - begun:5.0f} s  {sum((SOAKED if soak else SUITES).values()):5d} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 0 if all(row.well for row in rows) and not counts["skipped"] else 1


if __name__ == "__main__":
    sys.exit(main())
