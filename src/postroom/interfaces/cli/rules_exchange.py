"""`postroom rules import` and `postroom rules export`: YAML, JSON, Gmail's filters and Sieve."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from postroom.core.actions.steps import shown
from postroom.core.counted import counted
from postroom.core.rules.exchange import IMPORTED, Came, Imported, LeftOut
from postroom.interfaces.cli.files import read_bytes, write_text
from postroom.interfaces.cli.output import cell, show_json, show_list
from postroom.interfaces.cli.rule_options import AllowMissing
from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.simulate import run_simulation
from postroom.operations.operation import Argument
from postroom.operations.rules.rule_exchange import (
    FOREIGN,
    ImportedRule,
    RuleFormat,
    enable_rules,
    export_rules,
    format_of,
    import_rules,
    import_table,
    read_rules,
)
from postroom.triage.decide.simulated import ChangeOfRules

KNOWN = "there is a rule of this name, which is left as it is; --replace replaces it"


def import_(
    session: Session,
    file: Annotated[Path, Argument("Rules in YAML or JSON, mailFilters.xml, or Sieve.", typed_as="FILE")],
    format: Annotated[RuleFormat | None, Argument("The format; default: by the file's name, or how it begins.")] = None,
    dry_run: Annotated[bool, Argument("Show what would be imported; change nothing.")] = False,
    overwrite: Annotated[bool, Argument("Replace existing rules of the same names.", typed_as="--replace")] = False,
    enable: Annotated[
        bool, Argument("Enable what comes over from Gmail or Sieve, except rules that send mail.")
    ] = False,
    allow_missing: AllowMissing = False,
) -> None:
    """Import rules, all or none, and list what could not be translated.

    Existing rules of the same names are left as they are. Rules from Gmail and Sieve are off until `--enable`, or until
    you say yes after the simulation that is offered on a terminal. Rules that forward, delete or answer are always
    imported disabled: review them, then enable them with `postroom rules enable`.
    """
    content = read_bytes(file)
    wanted = format or format_of(file.name, content)
    imported = read_rules(content, wanted)
    table = session.call(import_table, imported) if wanted in FOREIGN else []
    rules = session.act(
        import_rules,
        imported.drafts,
        replace_known=overwrite,
        allow_missing=allow_missing,
        enable=enable and wanted in FOREIGN,
        dry_run=dry_run,
    )
    if session.as_json:
        _show_json(rules, table)
        return
    if wanted in FOREIGN:
        _show_table(table, imported, rules)
        _offer_to_enable(session, imported, rules, dry_run=dry_run)
        return
    for rule in rules:
        typer.echo(_line(rule))


def _show_json(rules: Sequence[ImportedRule], table: Sequence[Came]) -> None:
    came = {each.what: each for each in table if each.verdict != "refused"}
    for rule in rules:
        found = came.get(rule.name)
        more = {} if found is None else {"where": found.where, "verdict": found.verdict, "why": found.why}
        result = {"name": rule.name, "result": rule.result}
        show_json({**result, "enabled": rule.enabled, "disabled_reason": rule.disabled_reason, **more})
    names = {rule.name for rule in rules}
    for each in table:
        if each.what not in names:
            show_json({"left_out": each.what, "where": each.where, "verdict": each.verdict, "why": each.why})


def _show_table(table: Sequence[Came], imported: Imported, rules: Sequence[ImportedRule]) -> None:
    """Print what became of each part of the file, and how many there are of each kind."""
    if not table:
        typer.echo("There is no rule in it.")
        return
    does = {each.name: shown(each.action_type, each.parameters) for each in imported.drafts}
    notes = {rule.name: _notes(rule) for rule in rules}
    rows: list[dict[str, object]] = [
        {
            "where": each.where,
            "rule": each.what,
            "does": does.get(each.what),
            "result": each.verdict,
            "why": "; ".join(filter(None, (each.why, *notes.get(each.what, ())))),
        }
        for each in table
    ]
    show_list(rows, ("where", "rule", "does", "result", "why"), as_json=False)
    counts = Counter(each.verdict for each in table)
    typer.echo("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def _notes(rule: ImportedRule) -> tuple[str, ...]:
    """The remark on a rule that came over: it was known, or it waits for something other than a review."""
    known = (KNOWN,) if rule.result == "left as it is" else ()
    return known if rule.disabled_reason in (None, IMPORTED) else (*known, f"off: {rule.disabled_reason}")


def _offer_to_enable(session: Session, imported: Imported, rules: Sequence[ImportedRule], *, dry_run: bool) -> None:
    """On a terminal, simulate the rules that are off and ask whether to enable them; elsewhere, tell how to."""
    waiting = {each.name for each in rules if not each.enabled and each.result in ("added", "replaced")}
    drafts = [each for each in imported.drafts if each.name in waiting and not each.is_reviewed]
    if dry_run or not drafts:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        typer.echo(
            "They are off. Review them, then `postroom rules enable NAME`; or import again with --replace --enable."
        )
        return
    if not typer.confirm("They are off. Show what they would have done to the stored mail?", default=True):
        return
    run_simulation(session, ChangeOfRules(switched_on=[each.name for each in drafts]))
    if typer.confirm(f"Enable {counted(len(drafts), 'rule')}?", default=False):
        enabled = session.act(enable_rules, [each.name for each in drafts])
        typer.echo(f"Enabled: {counted(enabled, 'rule')}.")


def _line(rule: ImportedRule) -> str:
    note = "" if rule.enabled else f"  (disabled: {cell(rule.disabled_reason or 'as in the file')})"
    return f"{cell(rule.name)}  {rule.result}{note}"


def _show_left_out(left_out: Sequence[LeftOut]) -> None:
    if left_out:
        typer.echo(f"\nNot exported: {len(left_out)}", err=True)
    for each in left_out:
        typer.echo(f"{cell(each.where)}: {cell(each.what)}: {cell(each.why)}", err=True)


def export(
    session: Session,
    format: Annotated[RuleFormat, Argument("The format.")] = "yaml",
    output: Annotated[
        Path | None, Argument("Write to this file instead of the screen.", typed_as="--output FILE")
    ] = None,
) -> None:
    """Write all rules as a file for `postroom rules import`, Gmail or Sieve; list on stderr what it cannot express."""
    exported = session.call(export_rules, "json" if session.as_json else format)
    if output is None:
        typer.echo(exported.text, nl=False)
    else:
        write_text(output, exported.text, "--output")
    _show_left_out(exported.left_out)
