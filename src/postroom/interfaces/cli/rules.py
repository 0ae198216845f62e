"""`postroom rules`: the deterministic rules. Commands to exchange and test them are in the modules beside this one."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.core.errors import BadInput
from postroom.core.rules.documents import write_documents
from postroom.core.rules.draft import RuleDraft, read_draft
from postroom.interfaces.cli import rules_code, rules_exchange, rules_starter, rules_trial
from postroom.interfaces.cli.output import cell, show_json, show_one
from postroom.interfaces.cli.rule_options import AllowMissing, Scope, ScopeRef, json_option, parameters_of, read_drafts
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.rules.rule_changes import confirm_rule
from postroom.operations.rules.rules import (
    RuleView,
    add_rules,
    edit_rule,
    list_rules,
    list_unconfirmed,
    load_rule,
    remove_rule,
    switch_rule,
)

app = command_group("Write rules, list them, test them on mail, exchange them with Gmail and Sieve.")

COLUMNS = ("priority", "name", "scope", "scope_ref", "action", "mode", "enabled", "confirmed", "disabled_reason")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The rule, as `postroom rules list` shows it.")]
If = Annotated[
    str | None,
    typer.Option("--if", metavar="JSON", help="""Its conditions: '{"sender_domain": "shop.example"}'."""),
]
Then = Annotated[
    str | None, typer.Option("--then", metavar="ACTION", help="Its action: archive, apply_label, trash, …, or none.")
]
Action = Annotated[
    list[str] | None,
    typer.Option(
        "--action",
        metavar="ACTION",
        help="One of several actions, in order, instead of --then: 'apply_label Receipts', archive; repeatable.",
    ),
]
Continue = Annotated[
    bool | None, typer.Option("--continue/--stop", help="Whether the rules after it are tried too, and add theirs.")
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="A parameter of the action, such as label=Receipts; repeatable."
    ),
]
Priority = Annotated[int | None, typer.Option("--priority", help="Its priority: the lowest is tried first (100).")]
Description = Annotated[str | None, typer.Option("--description", help="What it is for, in words.")]


@app.command("list")
def list_(session: Session) -> None:
    """List the deterministic rules in the order in which they are tried: the first that matches decides."""
    session.show_list(_rows(session.call(list_rules)), COLUMNS)


@app.command()
def show(session: Session, name: Name) -> None:
    """Show one rule: everything known about it, and the rule as it would stand in a file."""
    view = session.call(load_rule, name)
    if session.as_json:
        show_json(_row(view))
        return
    show_one({key: value for key, value in _row(view).items() if key not in ("conditions", "parameters")})
    typer.echo()
    typer.echo("\n".join(cell(line) for line in write_documents([view.draft], "yaml").splitlines()))


@app.command()
def add(
    session: Session,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A YAML or JSON file with one rule or several.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The rule's name.")] = None,
    conditions: If = None,
    then: Then = None,
    action: Action = None,
    param: Param = None,
    scope: Scope = None,
    scope_ref: ScopeRef = None,
    priority: Priority = None,
    description: Description = None,
    goes_on: Continue = None,
    shadow: Annotated[bool, typer.Option("--shadow", help="Only record its decisions; do nothing.")] = False,
    needs_approval: Annotated[bool, typer.Option("--needs-approval", help="Ask for approval each time.")] = False,
    allow_missing: AllowMissing = False,
) -> None:
    """Add rules from a file, or one rule from options. Names must be new."""
    given = _given(name, conditions, then, action, param, scope, scope_ref, priority, description, goes_on)
    given |= {"mode": "shadow"} if shadow else {}
    given |= {"needs_approval": True} if needs_approval else {}
    drafts = _drafts(file, given)

    added = session.act(add_rules, drafts, allow_missing=allow_missing)
    for rule, label in added.new_labels.items():
        typer.echo(f"{cell(rule)}: the label {cell(label)} does not exist yet; it is created when needed", err=True)
    for rule in added.names:
        session.show_result(rule, "added", key="name")


@app.command()
def edit(
    session: Session,
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Replace it with the one rule in this file.")
    ] = None,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NAME", help="A new name.")] = None,
    conditions: If = None,
    then: Then = None,
    action: Action = None,
    param: Param = None,
    scope: Scope = None,
    scope_ref: ScopeRef = None,
    priority: Priority = None,
    description: Description = None,
    goes_on: Continue = None,
    mode: Annotated[str | None, typer.Option("--mode", help="active, or shadow: only record its decisions.")] = None,
    approval: Annotated[
        str | None, typer.Option("--approval", help="yes to ask for approval each time, or no.")
    ] = None,
    version: Annotated[
        int | None, typer.Option("--version", help="Change it only if it is still this version.")
    ] = None,
    allow_missing: AllowMissing = False,
) -> None:
    """Change a rule. Anything not given stays as it is; a new action starts without parameters."""
    given = _given(rename, conditions, then, action, param, scope, scope_ref, priority, description, goes_on)
    given |= {} if mode is None else {"mode": mode}
    given |= {} if approval is None else {"needs_approval": _yes_or_no("--approval", approval)}
    if (file is None) == (not given):
        raise BadInput(
            "edit",
            "changes nothing, or has both a file and options",
            "give the options to change, or --file with the whole rule",
        )

    changed = session.act(
        edit_rule, name, given if file is None else _only_rule(file), version=version, allow_missing=allow_missing
    )
    session.show_result(changed.name, f"changed, version {changed.version}", key="name")


@app.command()
def enable(session: Session, name: Name) -> None:
    """Enable a rule. An invalid rule has to be fixed first. Safe to repeat."""
    session.act(switch_rule, name, True)
    session.show_result(name, "enabled", key="name")


@app.command()
def confirm(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The rule; without a name, list those that wait.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Confirm a rule that a program wrote with a token and that sends or deletes mail: until then it does nothing."""
    if name is None:
        session.show_list(_rows(session.call(list_unconfirmed)), COLUMNS)
        return
    view = session.call(load_rule, name)
    if view.awaits_confirmation and not yes:
        typer.echo("\n".join(cell(line) for line in write_documents([view.draft], "yaml").splitlines()), err=True)
        typer.confirm("Let this rule act on new mail?", abort=True, err=True)
    was_waiting = view.awaits_confirmation
    confirmed = session.act(confirm_rule, view.id, view.content_hash)
    session.show_result(confirmed.rule.name, "confirmed" if was_waiting else "needed no confirmation", key="name")


@app.command()
def disable(
    session: Session,
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; shown in the list.")] = None,
) -> None:
    """Disable a rule; it is kept. Safe to repeat."""
    session.because(reason).act(switch_rule, name, False)
    session.show_result(name, "disabled", key="name")


@app.command()
def remove(session: Session, name: Name) -> None:
    """Remove a rule for good. Its past decisions stay recorded under its name."""
    session.act(remove_rule, name)
    session.show_result(name, "removed", key="name")


app.command("test")(rules_trial.try_rules)
app.command("import")(rules_exchange.import_)
app.command("export")(rules_exchange.export)
app.command("check")(rules_code.check)
app.command("diff")(rules_code.diff)
app.command("apply")(rules_code.apply)
app.add_typer(rules_starter.app, name="starter")


def _rows(views: Sequence[RuleView]) -> list[dict[str, Any]]:
    return [_row(view) for view in views]


def _row(view: RuleView) -> dict[str, Any]:
    """The rule as it is shown; `confirmed` is false while it waits for a person."""
    shown = {key: value for key, value in asdict(view).items() if key != "confirmed_hash"}
    return {**shown, "confirmed": not view.awaits_confirmation}


def _given(
    name: str | None,
    conditions: str | None,
    then: str | None,
    action: list[str] | None,
    param: list[str] | None,
    scope: str | None,
    scope_ref: str | None,
    priority: int | None,
    description: str | None,
    goes_on: bool | None,
) -> dict[str, Any]:
    """Return what the options say, as a document would."""
    said = {
        "name": name,
        "if": None if conditions is None else json_option("--if", conditions),
        "then": then,
        "actions": action or None,
        "parameters": parameters_of(param) if param else None,
        "scope": scope,
        "scope_ref": scope_ref,
        "priority": priority,
        "description": description,
        "continue": goes_on,
    }
    return {key: value for key, value in said.items() if value is not None}


def _yes_or_no(option: str, given: str) -> bool:
    if given not in ("yes", "no"):
        raise BadInput(option, f"is {given!r}", "use yes or no")
    return given == "yes"


def _drafts(file: Path | None, given: dict[str, Any]) -> list[RuleDraft]:
    if file is not None and given:
        raise BadInput("add", "got both a file and a rule", "give either FILE, or --name, --if and --then")
    return [read_draft(given)] if file is None else read_drafts(file)


def _only_rule(file: Path) -> RuleDraft:
    drafts = read_drafts(file)
    if len(drafts) != 1:
        raise BadInput("--file", f"has {len(drafts)} rules", "give a file with one, or use `postroom rules import`")
    return drafts[0]
