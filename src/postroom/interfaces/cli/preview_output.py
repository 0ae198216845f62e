"""How a preview is printed: the summary first, then the most doubtful decisions, then each message."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import typer

from postroom.core.counted import counted
from postroom.interfaces.cli.output import cell, clipped, show_list
from postroom.operations.preview.preview import Previewed
from postroom.operations.preview.preview_summary import FateTally, ModelCost, Summary
from postroom.words.mail import PREVIEWED
from postroom.words.tiers import TIER_RULES

LONGEST_SUBJECT = 60
LONGEST_SENDER = 34
MOST_RULES = 30
SHORT = {each.name: each.short for each in TIER_RULES}


@dataclass(frozen=True, slots=True)
class Shown:
    """A preview with its summary, and the names of its rules, filters and user."""

    rows: Sequence[Previewed]
    summary: Summary
    rules: str
    filters: str
    user: str


def show_preview(shown: Shown, *, each: bool) -> None:
    """Print a preview; each message only if wanted."""
    _show_summary(shown)
    if shown.summary.doubtful:
        typer.echo("\nThe most doubtful decisions:")
        for row in shown.summary.doubtful:
            typer.echo(f"  {clipped(row.subject, LONGEST_SUBJECT)}  from {clipped(row.sender, LONGEST_SENDER)}")
            typer.echo(f"    {outcome(row)}, by {cell(' + '.join(row.rules))}: {cell('; '.join(row.doubts))}")
    if each:
        typer.echo()
        show_list(map(_line, shown.rows), ("would_be_done", "rule", "tier", "why", "from", "subject"), as_json=False)
        _show_problems(shown.rows)


def outcome(row: Previewed) -> str:
    """The fate of the message in a few words."""
    action = cell(row.action)
    match row.result:
        case "done":
            return action
        case "waits":
            return f"{action} (after your approval)"
        case "refused":
            return f"{action} (refused)"
        case _:
            return PREVIEWED[row.result]


def headline(summary: Summary) -> str:
    """The preview in one sentence."""
    return (
        f"Of {counted(summary.messages, 'message')}: {summary.leave_inbox:,} would leave the inbox, "
        f"{summary.wait:,} would need your approval, {summary.see_first:,} you would see first."
    )


def cost_line(cost: ModelCost) -> str:
    """The cost of a model, in one sentence."""
    begin = f"A model would be asked about {counted(cost.messages, 'message')}, some {cost.tokens:,} tokens"
    if cost.cents is None:
        return f"{begin}; {cost.basis}"
    monthly = "" if cost.cents_a_month is None else f", {cost.cents_a_month:,.2f} cents a month at this rate"
    return f"{begin}: {cost.cents:,.2f} cents{monthly} ({cost.basis})"


def _show_summary(shown: Shown) -> None:
    summary = shown.summary
    typer.echo(headline(summary))
    more = {
        "labelled or the like": summary.changed,
        "left as they are": summary.untouched,
        "refused by safety": summary.refused,
        "your own": summary.own,
        "skipped by a filter": summary.skipped,
    }
    rest = ", ".join(f"{count:,} {words}" for words, count in more.items() if count)
    typer.echo(f"The others: {rest}." if rest else "There are no others.")
    typer.echo(f"\nrules     {cell(shown.rules)}")
    typer.echo(f"filters   {cell(shown.filters)}")
    typer.echo(f"you       {cell(shown.user)}")
    counts = {"tier": summary.tiers, "why": _in_words(summary.tier_rules), "stored": summary.taken_in}
    for name, found in {**counts, "category": summary.categories}.items():
        typer.echo(f"{name:<9} {_percentages(found, summary.messages)}")
    typer.echo(f"problems  {summary.problems:,}")
    typer.echo(f"model     {cost_line(summary.model)}")
    _show_tallies("rule", summary.by_rule[:MOST_RULES])
    _show_tallies("sender", summary.by_sender)


def _show_tallies(of: str, tallies: Iterable[FateTally]) -> None:
    rows = [
        {
            of: clipped(each.name, LONGEST_SUBJECT),
            "messages": each.messages,
            "leave": each.leave,
            "wait": each.wait,
            "stay": each.stay,
            "mostly": each.action,
        }
        for each in tallies
    ]
    if rows:
        typer.echo()
        show_list(rows, (of, "messages", "leave", "wait", "stay", "mostly"), as_json=False)


def _line(row: Previewed) -> dict[str, object]:
    return {
        "would_be_done": outcome(row),
        "rule": " + ".join(row.rules),
        "tier": row.policy_tier,
        "why": SHORT[row.assignment_rule],
        "from": clipped(row.sender, LONGEST_SENDER),
        "subject": clipped(row.subject, LONGEST_SUBJECT),
    }


def _show_problems(rows: Iterable[Previewed]) -> None:
    found = [row for row in rows if row.problem is not None]
    if found:
        typer.echo("\nProblems:")
    for row in found:
        typer.echo(f"  {cell(row.path)}: {cell(row.problem)}")


def _in_words(tier_rules: Mapping[str, int]) -> dict[str, int]:
    return {SHORT[name]: count for name, count in tier_rules.items()}


def _percentages(found: Mapping[str, int], total: int) -> str:
    return ", ".join(f"{name} {count:,} ({count / total:.0%})" for name, count in found.items()) or "-"
