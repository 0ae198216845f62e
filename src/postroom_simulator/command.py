"""`postroom outbound simulate`: what tenants would wait, under the fair queue and under other orders."""

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.choices import choice
from postroom.core.errors import BadInput
from postroom.core.moments import LONG_AGO
from postroom.interfaces.cli.files import read_text, write_text
from postroom.interfaces.cli.output import show_json, show_list
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.session import Session
from postroom.operations.operation import Argument

if TYPE_CHECKING:
    from postroom_simulator.disciplines import DisciplineName
    from postroom_simulator.scenario import Scenario
    from postroom_simulator.simulator import Result, Workload

USUAL_PRESET = "flood"
GROUP_COLUMNS = ("order", "group", "mails", "p50", "p95", "p99", "longest", "x_alone", "longest_pause")
ORDER_COLUMNS = ("order", "jain", "gini", "largest_share", "idle", "most_waiting", "ended")


@dataclass(frozen=True)
class PastMail:
    """The mail that is replayed with `--from-history`, and how long it takes to deliver one."""

    since: Annotated[datetime | None, Argument("With --from-history.")] = None
    limit: Annotated[int, Argument("With --from-history: at most this many mails.", 1, 20_000_000)] = 1_000_000
    delivery: Annotated[
        str, Argument("With --from-history: the time of a delivery, such as 2s.", typed_as="--delivery TIME")
    ] = "1s"


@dataclass(frozen=True)
class Changes:
    """Changes to a scenario, or to the mail of the past."""

    flood: Annotated[int, Argument("Add a tenant that sends this many mails at once.", 0, 10_000_000)] = 0
    slots: Annotated[int | None, Argument("Deliveries at once, instead of the scenario's.", 1, 100_000)] = None
    seed: Annotated[int | None, Argument("Another seed gives other random moments.", 0)] = None


def simulate(
    session: Session,
    file: Annotated[
        Path | None, Argument("A scenario in TOML; see the reference of outgoing mail.", typed_as="SCENARIO")
    ] = None,
    preset: Annotated[
        str | None, Argument("flood (default), many-small, slow-destination or newcomers.", typed_as="--preset NAME")
    ] = None,
    from_history: Annotated[bool, Argument("Replay the mail that was accepted here.")] = False,
    *,
    past: PastMail,
    changes: Changes,
    order: Annotated[
        Sequence[str],
        Argument("fair, fifo, priority or single-pass; repeatable (default: all).", typed_as="--order NAME"),
    ] = (),
    svg: Annotated[Path | None, Argument("Draw the waits into this file.", typed_as="--svg FILE")] = None,
) -> None:
    """Show what each group of tenants would wait, under the fair queue, first in first out, strict priority and a
    single pass over domains.

    Nothing is sent and nothing is changed: mail comes and is delivered in virtual time.
    """
    if sum((file is not None, preset is not None, from_history)) > 1:
        raise BadInput("SCENARIO", "is one of several", "give a file, --preset or --from-history, and only one of them")
    from postroom_simulator.disciplines import DISCIPLINES
    from postroom_simulator.simulator import ScenarioWorkload, compare

    names: list[DisciplineName] = [choice("--order", each, DISCIPLINES) for each in order or DISCIPLINES]
    if from_history:
        title, work = "mail of the past", _history(session, past, changes)
    else:
        found = _read(file) if file is not None else _preset(preset or USUAL_PRESET)
        scenario = found.changed(changes.flood, changes.slots, changes.seed)
        title, work = scenario.name, ScenarioWorkload(scenario)
    with progress(session.as_json) as report:
        results = compare(work, names, lambda name, begun: report(f"{name}: mails", begun))
    if svg is not None:
        from postroom_simulator.picture import simulation_file

        write_text(svg, simulation_file(f"{title}, {work.slots} deliveries at once", results), "--svg")
        typer.echo(f"drawn: {svg}", err=True)
    _show(results, work.slots, session.as_json)


def _preset(name: str) -> "Scenario":
    from postroom_simulator.presets import PRESETS

    return PRESETS[choice("--preset", name, list(PRESETS))]


def _read(file: Path) -> "Scenario":
    from postroom_simulator.scenario import read_scenario

    try:
        document = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(str(file), f"is not TOML ({error})", "see docs/how-to/simulate-outbound.md") from None
    return read_scenario({"name": file.stem[:60], **document})


def _history(session: Session, past: PastMail, changes: Changes) -> "Workload":
    from postroom_simulator.history import HistoryWorkload, load_history
    from postroom_simulator.scenario import read_destination

    destination = read_destination("--delivery", past.delivery)
    history = session.call(load_history, past.since or LONG_AGO, past.limit)
    if not len(history):
        raise BadInput("--from-history", "no outgoing mail was accepted in that time", "use --preset or a scenario")
    seed = 1 if changes.seed is None else changes.seed
    return HistoryWorkload(history, changes.slots or 100, destination, seed, changes.flood)


def _show(results: "Sequence[Result]", slots: int, as_json: bool) -> None:
    if as_json:
        show_json({"slots": slots, "results": [_document(result) for result in results]})
        return
    show_list(_group_rows(results), GROUP_COLUMNS, as_json=False)
    typer.echo()
    show_list([_order_row(result) for result in results[1:]], ORDER_COLUMNS, as_json=False)
    if refused := max(result.refused for result in results):
        typer.echo(f"\n{refused:,} mails of throttled senders were refused")


def _group_rows(results: "Sequence[Result]") -> list[dict[str, object]]:
    alone = {group.name: group.p95 for group in results[0].groups}
    rows: list[dict[str, object]] = []
    for name in alone:
        for result in results:
            for group in (each for each in result.groups if each.name == name):
                times = (group.p50, group.p95, group.p99, group.longest)
                shown = zip(("p50", "p95", "p99", "longest"), map(spoken, times), strict=True)
                ratio = f"{group.p95 / alone[name]:,.1f}" if alone[name] > 0 else "-"
                row = {"order": result.discipline, "group": name, "mails": f"{group.mails:,}", **dict(shown)}
                rows.append({**row, "x_alone": ratio, "longest_pause": spoken(group.longest_pause)})
    return rows


def _order_row(result: "Result") -> dict[str, object]:
    return {
        "order": result.discipline,
        "jain": f"{result.jain:.3f}",
        "gini": f"{result.gini:.3f}",
        "largest_share": f"{result.largest_share:.1%}",
        "idle": f"{result.idle_share:.1%}",
        "most_waiting": f"{result.most_waiting:,}",
        "ended": spoken(result.ended_s),
    }


def _document(result: "Result") -> dict[str, object]:
    document = asdict(result)
    document["groups"] = [
        {key: value for key, value in asdict(group).items() if key != "curve"} for group in result.groups
    ]
    return document


def spoken(seconds: float) -> str:
    """A time for people: `0.0 s`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
