"""Runs the test suites one after another and prints what each took beside its budget.

The budgets add up to less than fifteen minutes on two cores. `--soak` runs the suites that have big counts, with
those counts (the tests read POSTROOM_TEST_SCALE).
"""

import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SUITES = {"unit": 90, "conformance": 210, "integration": 210, "security": 50, "browser": 60, "chaos": 230}
SOAKED = {"unit": 900, "conformance": 3600, "chaos": 3600}
TOTALS = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")


def main() -> int:
    soak = "--soak" in sys.argv
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")]
    budgets = SOAKED if soak else SUITES
    rows: list[tuple[str, float, int, str]] = []
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    broken = False
    for name, budget in budgets.items():
        if chosen and name not in chosen:
            continue
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", str(HERE / name), *(["--timeout=3600"] if soak else [])]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
        assert run.stdout is not None
        last = ""
        for line in run.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line if TOTALS.search(line) else last
        broken |= run.wait() != 0
        for number, what in TOTALS.findall(last):
            counts["failed" if what in ("error", "errors") else what] += int(number)
        rows.append((name, time.monotonic() - started, budget, "" if run.returncode == 0 else "  FAILED"))
    print("\nsuite          took   budget")
    for name, took, budget, verdict in rows:
        print(f"{name:<12} {took:5.0f} s  {budget:5d} s{verdict}{'  over its budget' if took > budget else ''}")
    print(f"{'all':<12} {sum(row[1] for row in rows):5.0f} s  {sum(row[2] for row in rows):5d} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if broken or counts["skipped"] else 0


if __name__ == "__main__":
    sys.exit(main())
