"""`postroom rules apply`, `diff` and `check`: rules as code, in one file with their tests."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput, PostroomError
from postroom.core.rules.documents import RuleFile, read_rule_file
from postroom.core.rules.plan import Plan, PlannedChange
from postroom.core.rules.rule_tests import TestResult
from postroom.interfaces.cli.files import read_text
from postroom.interfaces.cli.output import cell, clipped, show_json
from postroom.interfaces.cli.rule_options import AllowMissing
from postroom.interfaces.cli.session import Session
from postroom.operations.operation import Argument
from postroom.operations.rules.rule_plans import apply_rules, check_rules, plan_rules

LONGEST_VALUE = 200
SAME, DIFFERENT = 0, 2

File = Annotated[Path, Argument("Rules in YAML or JSON, and their tests.", typed_as="FILE")]
PruneAll = Annotated[bool, Argument("Remove all rules that the file does not have, however they were made.")]


class TestsFailed(PostroomError):
    """Tests of rules failed."""


class NotCompared(PostroomError):
    """The rules could not be compared with the file."""


def check(session: Session, file: File) -> None:
    """Check the rules in a file, and run the tests in it. Nothing is changed, and no database is needed.

    The exit code is 0 if all tests pass, 1 if one fails, and 2 if the file is invalid.
    """
    given = read_rule_file(read_text(file))
    results = check_rules(given, session.clock())
    if session.as_json:
        for each in results:
            show_json(each)
    else:
        _show_tests(given, results)
    _refuse_failed(results)


def diff(session: Session, file: File, prune_all: PruneAll = False, allow_missing: AllowMissing = False) -> None:
    """Show how the rules in use differ from those in a file. Nothing is changed.

    The exit code is 0 if they are the same, 2 if they differ, and 1 if they cannot be compared, as that of
    `terraform plan -detailed-exitcode`.
    """
    try:
        plan = session.call(
            plan_rules, read_rule_file(read_text(file)).drafts, prune_all=prune_all, allow_missing=allow_missing
        )
    except PostroomError as error:
        raise NotCompared(str(error)) from None
    _show_plan(session, plan)
    raise typer.Exit(DIFFERENT if plan.changes else SAME)


def apply(
    session: Session,
    file: File,
    yes: Annotated[bool, Argument("Do not ask; apply the plan.")] = False,
    prune_all: PruneAll = False,
    allow_missing: AllowMissing = False,
) -> None:
    """Make the rules in use equal to those in a file, after showing the plan. Safe to repeat.

    The tests in the file must pass. Rules that an earlier apply made, and that the file no longer has, are removed;
    rules that were made otherwise are left alone, unless the file has their names. All of it is done, or nothing.
    """
    given = read_rule_file(read_text(file))
    _refuse_failed(check_rules(given, session.clock()))
    plan = session.call(plan_rules, given.drafts, prune_all=prune_all, allow_missing=allow_missing)
    _show_plan(session, plan)
    if not plan.changes:
        return
    if not yes:
        _ask(session)
    session.act(apply_rules, plan)
    session.show_line({"applied": len(plan.changes)}, f"\nApplied: {_counts(plan)}.")


def _ask(session: Session) -> None:
    if session.as_json or not sys.stdin.isatty():
        raise BadInput("--yes", "is missing, and there is no terminal to ask on", "look at the plan, and give --yes")
    typer.confirm("\nApply this?", abort=True)


def _show_plan(session: Session, plan: Plan) -> None:
    if session.as_json:
        for change in plan.changes:
            show_json(_document(change))
        return
    for change in plan.changes:
        typer.echo(f"{change.sign} {cell(change.name)}{_notes(change)}")
        for name, (before, after) in change.fields.items():
            typer.echo(f"    {cell(name)}: {_value(before)} → {_value(after)}")
    same = f"{plan.unchanged:,} as in the file"
    others = f", {plan.left_alone:,} others left alone" if plan.left_alone else ""
    typer.echo(f"{_counts(plan)}; {same}{others}." if plan.changes else f"No difference: {same}{others}.")


def _notes(change: PlannedChange) -> str:
    notes = {
        "changed by hand since it was applied": change.by_hand,
        "not made by apply; taken over": change.taken_over,
        "stored anew, since it is tried in another order": change.moved,
    }
    said = "; ".join(note for note, holds in notes.items() if holds)
    return f"  ({said})" if said else ""


def _counts(plan: Plan) -> str:
    return f"{plan.count('+'):,} added, {plan.count('~'):,} changed, {plan.count('-'):,} removed"


def _value(value: object) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clipped(text, LONGEST_VALUE)


def _document(change: PlannedChange) -> dict[str, Any]:
    fields = {name: {"before": before, "after": after} for name, (before, after) in change.fields.items()}
    notes = {"by_hand": change.by_hand, "taken_over": change.taken_over, "moved": change.moved}
    return {"change": change.sign, "name": change.name, "fields": fields, **notes}


def _show_tests(given: RuleFile, results: list[TestResult]) -> None:
    for each in results:
        typer.echo(f"{'ok  ' if each.passed else 'FAIL'}  {cell(each.name)}")
    passed = sum(each.passed for each in results)
    tests = f"{passed:,} of {len(results):,} tests pass" if results else "there are no tests in the file"
    typer.echo(f"{counted(len(given.drafts), 'rule')}; {tests}.")


def _refuse_failed(results: list[TestResult]) -> None:
    failed = [each for each in results if not each.passed]
    for each in failed:
        typer.echo(f"postroom: {cell(each.name)}: {cell(each.problem)}", err=True)
    if failed:
        raise TestsFailed(f"{len(failed):,} of {len(results):,} tests fail; change the rules, or what is expected")
