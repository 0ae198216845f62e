"""Mailboxes over IMAP: how fast the first mail is taken in, beside mbsync on the same mailbox; what a thousand idle
accounts cost; and how long new mail takes from the server to acceptance.
"""

from functools import partial

from ..rounds import Run
from ..table import Bound, Comparison, Line
from .live_mail import alternate_together, asked

AT_LEAST = 500
MOST_CORE_PERCENT = 10.0
MOST_MEMORY_MIB = 300.0
MOST_P95_MS = 1000.0


def take_in(run: Run) -> list[Line]:
    name, work = run.field.ours.name, "first take-in over IMAP, SQLite"
    rate, theirs = Line(work, name, "messages/s"), Line(work, "mbsync", "messages/s")
    cpu, their_cpu = (Line(f"{work}, processor", subject, "ms a message") for subject in (name, "mbsync"))
    rate.comparison = Bound([rate], at_least=AT_LEAST)
    theirs.comparison = Comparison(rate, theirs, "ours is {ratio} of mbsync's")
    their_cpu.comparison = Comparison(cpu, their_cpu, "ours is {ratio} of mbsync's")
    lines = [rate, theirs, cpu, their_cpu]
    return alternate_together(run, lines, partial(_measure_take_in, run.sizes.imap_mail))


def idle(run: Run) -> list[Line]:
    name, work = run.field.ours.name, f"{run.sizes.imap_accounts:,} idle accounts over IMAP in one process"
    core, memory = Line(work, name, "% of a core"), Line(f"{work}, memory", name, "MiB")
    core.comparison = Bound([core], at_most=MOST_CORE_PERCENT)
    memory.comparison = Bound([memory], at_most=MOST_MEMORY_MIB)
    return alternate_together(
        run, [core, memory], partial(_measure_idle, run.sizes.imap_accounts, run.sizes.imap_idle_s)
    )


def arrive(run: Run) -> list[Line]:
    name, work = run.field.ours.name, "server to accepted envelope over IMAP with IDLE, SQLite"
    middle, late = Line(f"p50, {work}", name, "ms"), Line(f"p95, {work}", name, "ms")
    late.comparison = Bound([late], at_most=MOST_P95_MS)
    return alternate_together(run, [late, middle], partial(_measure_arrive, run.sizes.imap_new))


def _measure_take_in(count: int, lines: list[Line]) -> None:
    found = asked("bench.imap_mail", "take-in", str(count))
    rate, theirs, cpu, their_cpu = lines
    rate.samples.append(count / found["seconds"])
    theirs.samples.append(count / found["peer_s"])
    cpu.samples.append(found["cpu_s"] / count * 1000)
    their_cpu.samples.append(found["peer_cpu_s"] / count * 1000)


def _measure_idle(accounts: int, seconds: int, lines: list[Line]) -> None:
    found = asked("bench.imap_mail", "idle", str(accounts), str(seconds))
    for line, figure in zip(lines, (found["core_percent"], found["memory_mib"]), strict=True):
        line.samples.append(figure)


def _measure_arrive(count: int, lines: list[Line]) -> None:
    found = asked("bench.imap_mail", "arrive", str(count))
    for line, figure in zip(lines, (found["p95_ms"], found["p50_ms"]), strict=True):
        line.samples.append(figure)
