"""What a long-running transaction costs: its snapshot keeps vacuum and index clean-up from removing finished jobs.

A claim that scans from the head of the queue then walks over every job that ever passed. The same drain is run in a
database without and with such a snapshot; the raw loop, which does scan from the head, shows what that means.
"""

import asyncio
from functools import partial

from ..ground import vacuum_held_back
from ..order import Order
from ..rounds import Run, Turn
from ..subjects import Subject
from ..table import Comparison, Line

OF_UNDISTURBED = 0.8


def postgres(run: Run) -> list[Line]:
    work = f"drain {run.sizes.horizon:,} jobs past a long transaction"
    turns: list[Turn] = []
    for subject, at_least in ((run.field.ours, OF_UNDISTURBED), (run.field.raw_postgres, None)):
        free = Line(work, f"{subject.name}, undisturbed")
        held = Line(work, f"{subject.name}, vacuum held back")
        held.comparison = Comparison(held, free, "{ratio} undisturbed", at_least=at_least)
        turns.append(Turn(subject, free, partial(_measure_free, run, subject, free)))
        turns.append(Turn(subject, held, partial(_measure_held, run, subject, held)))
    return run.alternate(turns)


def _measure_free(run: Run, subject: Subject, line: Line) -> None:
    line.samples.append(run.drain_rate(subject, "postgres", run.sizes.horizon))


def _measure_held(run: Run, subject: Subject, line: Line) -> None:
    count = run.sizes.horizon
    with run.ground.database("postgres") as target:
        subject.ask(Order("prepare", target))
        subject.ask(Order("fill", target, count=count))
        run.ground.settle(target)

        async def drain_past_a_snapshot() -> float:
            async with vacuum_held_back(target):
                outcome = await asyncio.to_thread(subject.measure, Order("drain", target, count=count))
                return outcome.seconds

        line.samples.append(count / asyncio.run(drain_past_a_snapshot()))
