"""`postroom simulate`: show what a change of rules would have done to stored mail. It changes nothing."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.output import cell, show_json, show_list
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.rule_options import read_drafts
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument
from postroom.operations.rules.simulation import ALL_MAIL, CostEstimate, PastMail, estimate_cost, simulate_change
from postroom.triage.decide.simulated import ChangeOfRules, SimulationResult

app = one_command()


@app.command()
def simulate(
    session: Session,
    file: Annotated[
        Path | None, Argument("Rules in YAML or JSON, as for `postroom rules add`.", typed_as="RULES_FILE")
    ] = None,
    replace: Annotated[bool, Argument("Replace all rules with those in the file.")] = False,
    add: Annotated[bool, Argument("Add the rules in the file, replacing those of the same name (default).")] = False,
    without: Annotated[Sequence[str], Argument("Leave this rule out; repeatable.", typed_as="--without NAME")] = (),
    enable: Annotated[
        Sequence[str],
        Argument("Use this rule, which is disabled or in shadow; repeatable.", typed_as="--enable NAME"),
    ] = (),
    *,
    mail: PastMail,
) -> None:
    """Show which decisions a change of rules would have changed, replaying the stored mail in order.

    Nothing is changed, and no model is asked; the result says how often it would be asked, and the cost.
    """
    if replace and (add or file is None):
        raise BadInput(
            "--replace", "needs a file and cannot be combined with --add", "give RULES_FILE, and one of the two"
        )
    if file is None and not without and not enable:
        raise BadInput("simulate", "got no change to simulate", "give RULES_FILE, --without NAME or --enable NAME")
    drafts = [] if file is None else read_drafts(file)
    run_simulation(session, ChangeOfRules(drafts, replace, without or (), enable or ()), mail)


def run_simulation(session: Session, change: ChangeOfRules, mail: PastMail = ALL_MAIL) -> None:
    """Replay the mail, and print what the change would have changed."""
    settings = session.settings
    with progress(session.as_json) as report:
        replayed = partial(report, "replaying messages")
        found = session.call(simulate_change, settings, change, session.clock(), replayed, mail)
    _show(found, estimate_cost(found, settings.model), session.as_json)


def _show(found: SimulationResult, cost: CostEstimate, as_json: bool) -> None:
    """Print which decisions change and how often, with samples, and the cost."""
    if as_json:
        show_json({**_document(found), "model_cost_cents": cost.cents, "cost_basis": cost.basis})
        return
    typer.echo(f"{found.messages:,} messages replayed; {found.changed:,} would be decided differently")
    if found.other_rule:
        typer.echo(f"{found.other_rule:,} more would be decided the same way, by another rule")
    for name, why in found.broken:
        typer.echo(f"broken: {cell(name)}: {cell(why)}", err=True)
    if found.changes:
        typer.echo()
        show_list([asdict(change) for change in found.changes], ("before", "after", "count"), as_json=False)
        _show_samples(found)
    typer.echo()
    show_list(_sides(found), ("", "before", "after"), as_json=False)
    if cost.cents is not None:
        typer.echo(f"\nmodel calls: {cost.more_calls:+,}, {cost.cents:+,.2f} cents ({cost.basis})")


def _sides(found: SimulationResult) -> list[dict[str, object]]:
    names = {
        "model_calls": "asks the model",
        "approvals": "asks for approval",
        "refused": "refused by safety",
        "answers_held_back": "answers held back",
    }
    return [
        {"": said, "before": getattr(found.before, name), "after": getattr(found.after, name)}
        for name, said in names.items()
    ]


def _show_samples(found: SimulationResult) -> None:
    for change in found.changes:
        typer.echo(f"\n{cell(change.before)} → {cell(change.after)}")
        for each in change.samples:
            rules = f"{cell(each.rule_before)} → {cell(each.rule_after)}"
            typer.echo(f"  {cell(each.sent_at)}  {cell(each.sender)}  {cell(each.subject)}  [{rules}]")


def _document(found: SimulationResult) -> dict[str, object]:
    return {
        "messages": found.messages,
        "changed": found.changed,
        "other_rule": found.other_rule,
        "changes": [asdict(change) for change in found.changes],
        "before": asdict(found.before),
        "after": asdict(found.after),
        "broken": [{"rule": name, "reason": why} for name, why in found.broken],
    }
