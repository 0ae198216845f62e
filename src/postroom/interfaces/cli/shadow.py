"""`postroom shadow`: rules, categories and the model deciding without acting, and how well they do."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.core.moments import read_moment
from postroom.interfaces.cli.output import cell, show_json, show_line, show_list, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.rules import shadow
from postroom.operations.rules.shadow import ShadowSample, ShadowScope, Tally

app = command_group("Let rules, categories of mail or the model decide without acting, and compare with what you do.")

COLUMNS = ("kind", "name", "since", "decisions", "agreed", "disagreed", "undecided", "precision")
Rule = Annotated[str | None, typer.Option("--rule", metavar="NAME", help="A rule, by its name.")]
Category = Annotated[
    str | None,
    typer.Option("--category", metavar="NAME", help="Mail of a category: finance, health, relationship, travel, …"),
]
TheModel = Annotated[bool, typer.Option("--model", help="The language model.")]


@app.command("list")
def list_(session: Session) -> None:
    """List what is in shadow, and how often you then did the same yourself."""
    found = session.call(shadow.list_shadows)
    rows = [{"kind": each.kind, "name": each.name, "since": each.since, **_numbers(each.tally)} for each in found]
    session.show_list(rows, COLUMNS)


@app.command()
def begin(session: Session, rule: Rule = None, category: Category = None, model: TheModel = False) -> None:
    """From now on, only record its decisions; do nothing."""
    what = _what(rule, category, model)
    begun = session.act(shadow.begin, what)
    _print_result(what, "decides in shadow now" if begun else "is in shadow already", session.as_json)


@app.command()
def end(session: Session, rule: Rule = None, category: Category = None, model: TheModel = False) -> None:
    """From now on, carry out its decisions. Warns if there is little evidence for it."""
    what = _what(rule, category, model)
    found = session.act(shadow.end, what)
    _print_result(what, "acts now" if found.ended else "is not in shadow", session.as_json)
    for doubt in found.doubts:
        typer.echo(f"warning: {doubt}", err=True)


@app.command()
def report(
    session: Session,
    rule: Rule = None,
    category: Category = None,
    model: TheModel = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only decisions since then: 30d, 12h, or a time.")
    ] = None,
) -> None:
    """Show what it decided in shadow, how much of that you agreed with, and samples of both."""
    what = _what(rule, category, model)
    start = shadow.LONG_AGO if since is None else read_moment("--since", since, datetime.now(UTC), ahead=False)
    found = session.call(shadow.report_on, what, start)
    samples = [_sample(each) for each in (*found.disagreed, *found.agreed)]
    row = {"kind": what.kind, "name": what.name, **_numbers(found.tally)}
    if session.as_json:
        show_json({**row, "doubts": list(shadow.doubts(found.tally)), "samples": samples})
        return
    show_one(row)
    if samples:
        typer.echo()
        show_list(samples, ("agreed", "decided_at", "sender", "subject", "decided", "you"), as_json=False)
    for doubt in shadow.doubts(found.tally):
        typer.echo(f"\nnot proven yet: {doubt}")


def _what(rule: str | None, category: str | None, model: bool) -> ShadowScope:
    given = [rule is not None, category is not None, model]
    if sum(given) != 1:
        raise BadInput("shadow", "needs exactly one scope", "give --rule NAME, --category NAME or --model")
    if rule is not None:
        return ShadowScope("rule", rule)
    return ShadowScope("category", category) if category is not None else ShadowScope("model")


def _numbers(tally: Tally) -> dict[str, object]:
    precision = None if tally.precision is None else round(tally.precision, 3)
    return {**tally._asdict(), "undecided": tally.undecided, "precision": precision}


def _sample(sample: ShadowSample) -> dict[str, object]:
    label = sample.parameters.get("label")
    return {
        "agreed": sample.agreed,
        "message_id": sample.message_id,
        "decided_at": sample.decided_at,
        "sender": sample.sender,
        "subject": sample.subject,
        "decided": f"{sample.action} {label}" if label else sample.action,
        "you": sample.what,
    }


def _print_result(what: ShadowScope, result: str, as_json: bool) -> None:
    row = {"kind": what.kind, "name": what.name, "result": result}
    show_line(row, f"{cell(str(what))} {result}", as_json=as_json)
