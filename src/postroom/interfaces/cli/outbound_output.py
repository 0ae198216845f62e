"""How `postroom outbound stats` looks: both disciplines side by side where both have figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, get_args

import typer

from postroom.core.outbound.fairness import Discipline, ServedLevel
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.session import Session
from postroom.words.outbound import CONDITIONS, DISCIPLINES, STAGES, trouble_in_words

if TYPE_CHECKING:
    from postroom.core.outbound.time_buckets import Spread
    from postroom.operations.outbound.outbound_stats import OutboundStats, TimedLane
    from postroom.outbound.queue.statistics import DisciplineStats


def show_stats(session: Session, stats: "OutboundStats") -> None:
    if session.as_json:
        show_json(stats)
        return
    for line in _lines(stats):
        typer.echo(line)


def _lines(stats: "OutboundStats") -> Iterator[str]:
    shown: dict[Discipline, DisciplineStats] = {
        name: each for name, each in stats.disciplines.items() if each.leased or each.delivered
    }
    yield f"since {cell(stats.since)}"
    yield f"stage {stats.stage}: {STAGES[stats.stage].format(share=stats.share or 0)}"
    yield ""
    if shown:
        yield from _disciplines(shown, stats.choosing_both)
    else:
        yield "no mail took its turn in this time"
    yield ""
    yield from _queue(stats)
    yield ""
    yield from _abuse(stats)


def _disciplines(disciplines: "Mapping[Discipline, DisciplineStats]", both: "Spread | None") -> Iterator[str]:
    columns = list(disciplines.values())
    yield from _table(
        ("", *(DISCIPLINES[name].upper() for name in disciplines)),
        [
            ("mails leased", *(str(each.leased) for each in columns)),
            ("recipients delivered", *(str(each.delivered) for each in columns)),
            ("delivered per hour", *(f"{each.delivered_per_hour:.1f}" for each in columns)),
            *(_evenness_row(level, columns) for level in get_args(ServedLevel)),
        ],
    )
    yield ""
    rows = [
        *_spread_rows("wait", disciplines, lambda each: each.waits),
        *_spread_rows("delivery", disciplines, lambda each: each.deliveries),
        *(
            _spread_row("choosing", name, "", each.choosing)
            for name, each in disciplines.items()
            if each.choosing is not None
        ),
        *([_spread_row("choosing", "both", "", both)] if both is not None else []),
    ]
    yield from _table(("TIME", "DISCIPLINE", "PRIORITY", "COUNT", "MEAN", "P50", "P95", "P99"), rows)


def _evenness_row(level: ServedLevel, columns: "Sequence[DisciplineStats]") -> tuple[str, ...]:
    found = [column.evenness[level] for column in columns]
    texts = (
        f"{each.members}: Gini {each.gini:.3f}, Jain {each.jain:.3f}, largest {each.largest_share:.1%}"
        for each in found
    )
    return (f"{level}s", *texts)


def _spread_rows(
    what: str,
    disciplines: "Mapping[Discipline, DisciplineStats]",
    times: "Callable[[DisciplineStats], Mapping[TimedLane, Spread]]",
) -> Iterator[tuple[str, ...]]:
    lanes: tuple[TimedLane, ...] = ("high", "normal", "low", "throttled", "all")
    for lane in lanes:
        for name, each in disciplines.items():
            if lane in times(each):
                yield _spread_row(what, name, lane, times(each)[lane])


def _spread_row(what: str, discipline: str, lane: str, spread: "Spread") -> tuple[str, ...]:
    times = (spread.mean_s, spread.p50_s, spread.p95_s, spread.p99_s)
    return (what, discipline, lane, str(spread.count), *(short_time(each) for each in times))


def _queue(stats: "OutboundStats") -> Iterator[str]:
    queue = stats.queue
    yield f"delivery {CONDITIONS[stats.health.condition][0].lower()}"
    for trouble in stats.health.troubles:
        problem, remedy = trouble_in_words(trouble)
        yield f"  {cell(problem)}"
        yield f"    -> {remedy}"
    yield f"queue (multiplier {queue.multiplier:g})"
    yield f"  {queue.waiting} waiting, the oldest for {short_time(queue.oldest_wait_s)}"
    yield "  by lane: " + ", ".join(f"{lane} {count}" for lane, count in queue.lanes.items())
    limits = ", ".join(f"{lane} {min(limit, queue.slots)}" for lane, limit in queue.limits.items())
    yield f"  of {queue.slots} at once in each process, while lanes compete: {limits}"


def _abuse(stats: "OutboundStats") -> Iterator[str]:
    abuse = stats.abuse
    yield f"throttles {abuse.senders_held} held, {abuse.senders_draining} draining; {abuse.mail_held} mails held"
    wrong = "-" if abuse.false_positives is None else f"{abuse.false_positives:.1%}"
    yield f"  for a score: {abuse.throttled}, released by hand: {abuse.released_by_hand} (false positives {wrong})"
    if (found := abuse.time_to_detect) is not None:
        yield f"  time to detect: p50 {short_time(found.p50_s)}, p95 {short_time(found.p95_s)}"


def short_time(seconds: float) -> str:
    """A time in the largest units that tell enough."""
    if not seconds:
        return "0 s"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = timedelta(seconds=round(seconds))
    return str(whole)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [head, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]
    for line in lines:
        yield "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
