"""How fast a batch of outgoing mail is chosen fairly, whatever waits and for however many tenants.

Beside it stand the usual ways: a key that was written with the mail, which can be neither weighed anew nor held back
afterwards, and window functions, which look at the whole queue for each batch. All of them take mail out of a table of
their own in durable transactions; ours keeps the turns of lanes, tenants, domains and senders besides. What that alone
costs, without any choosing, is measured beside it: the same statements with the same number of rows, by hand.
"""

import contextlib
import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..order import Database, Outcome, Target
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Comparison, Line, ahead_of

UNIT = "messages/s"
BATCH = 100
NAMES = {
    "postroom": "postroom",
    "leasing": "postroom, whole lease",
    "by_hand": "the same rows by hand",
    "flat": "flat key",
    "window": "window functions",
}
LONGER, MORE_TENANTS = 1.3, 1.5
AT_LEAST: dict[Database, int] = {"postgres": 10_000, "sqlite": 25_000}


def postgres(run: Run) -> list[Line]:
    return _chosen(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _chosen(run, "sqlite", "SQLite")


def _chosen(run: Run, kind: Database, named: str) -> list[Line]:
    sizes = run.sizes
    few, many = sizes.few_tenants, sizes.many_tenants
    cases = ((sizes.small_backlog, few), (sizes.large_backlog, few), (sizes.large_backlog, many))
    with contextlib.ExitStack() as stack:
        turns: list[Turn] = []
        ours: list[Line] = []
        for waiting, tenants in cases:
            work = f"choose {BATCH} of {waiting:,} mails of {tenants:,} tenants, {named}"
            target = stack.enter_context(run.ground.database(kind))
            _asked("fill", target, tenants, waiting)
            lines = {side: Line(work, name, UNIT) for side, name in NAMES.items()}
            ours.append(lines["postroom"])
            for side in ("by_hand", "flat", "window"):
                lines[side].comparison = ahead_of(lines["postroom"], lines[side], None)
            turns += [
                Turn(Subject(line.subject, ()), line, partial(_measure, run, target, side, line))
                for side, line in lines.items()
            ]
        small, long, wide = ours
        small.comparison = Bound([small], at_least=AT_LEAST[kind])
        long.comparison = Comparison(small, long, f"{{ratio}} slower than {cases[0][0]:,} waiting", at_most=LONGER)
        wide.comparison = Comparison(long, wide, f"{{ratio}} slower than {few:,} tenants", at_most=MORE_TENANTS)
        return run.alternate(turns)


def _measure(run: Run, target: Target, side: str, line: Line) -> None:
    batches = _batches(run, side)
    run.ground.settle(target)
    outcome = _asked(side, target, batches, 0)
    wanted = (batches + 1) * BATCH
    if (outcome.handled, outcome.finished) != (wanted, wanted):
        found = f"{outcome.handled} mails, {outcome.finished} of them different"
        raise SubjectFailedError(f"{line.subject} chose {found}, not {wanted}")
    line.samples.append(batches * BATCH / outcome.seconds)
    line.add_latencies(outcome.latencies)


def _batches(run: Run, side: str) -> int:
    """What is leased is not put back, and a window function takes seconds for a batch: they do fewer."""
    return {"leasing": run.sizes.leases // 5, "window": 2}.get(side, run.sizes.leases)


def _asked(side: str, target: Target, *numbers: int) -> Outcome:
    command = [sys.executable, "-m", "bench.choosing", side, target.database, target.address, *map(str, numbers)]
    what = f"could not {side}"
    return outcome_of(answer_of(command, what, timeout_s=1_800), what)
