"""`postroom rules`: the deterministic rules. Commands to exchange and test them are in the modules beside this one."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from postroom.core.errors import BadInput
from postroom.core.rules.documents import write_documents
from postroom.core.rules.draft import read_draft
from postroom.interfaces.cli import rules_code, rules_exchange, rules_starter, rules_trial
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.rule_options import AllowMissing, RuleOptions, read_drafts, read_only_rule
from postroom.interfaces.cli.rules_output import show_rules
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.operation import Argument
from postroom.operations.rules.rule_changes import confirm_rule
from postroom.operations.rules.rule_views import NAME
from postroom.operations.rules.rules import COLUMNS, add_rules, edit_rule, list_unconfirmed, load_rule, rule_row

app = command_group("Write rules, list them, test them on mail, exchange them with Gmail and Sieve.")
add_commands(app, "rules", "rules.rules", "rules.rule_views", "rules.rule_changes", list=show_rules)


@app.command()
def add(
    session: Session,
    file: Annotated[Path | None, Argument("A YAML or JSON file with one rule or several.", typed_as="FILE")] = None,
    name: Annotated[str | None, Argument("The rule's name.")] = None,
    *,
    options: RuleOptions,
    shadow: Annotated[bool, Argument("Only record its decisions; do nothing.")] = False,
    needs_approval: Annotated[bool, Argument("Ask for approval each time.")] = False,
    allow_missing: AllowMissing = False,
) -> None:
    """Add rules from a file, or one rule from options. Names must be new."""
    mode = "shadow" if shadow else None
    given = options.document(name=name, mode=mode, needs_approval=needs_approval or None)
    if file is not None and given:
        raise BadInput("add", "got both a file and a rule", "give either FILE, or --name, --if and --then")
    drafts = [read_draft(given)] if file is None else read_drafts(file)
    added = session.act(add_rules, drafts, allow_missing=allow_missing)
    for rule, label in added.new_labels.items():
        typer.echo(f"{cell(rule)}: the label {cell(label)} does not exist yet; it is created when needed", err=True)
    for rule in added.names:
        session.show_result(rule, "added", key="name")


@app.command()
def edit(
    session: Session,
    name: Annotated[str, NAME],
    file: Annotated[Path | None, Argument("Replace it with the one rule in this file.", typed_as="--file FILE")] = None,
    rename: Annotated[str | None, Argument("A new name.", typed_as="--rename NAME")] = None,
    *,
    options: RuleOptions,
    mode: Annotated[str | None, Argument("active, or shadow: only record its decisions.")] = None,
    approval: Annotated[Literal["yes", "no"] | None, Argument("Whether to ask for approval each time.")] = None,
    version: Annotated[int | None, Argument("Change it only if it is still this version.")] = None,
    allow_missing: AllowMissing = False,
) -> None:
    """Change a rule. Anything not given stays as it is; a new action starts without parameters."""
    needs_approval = None if approval is None else approval == "yes"
    given = options.document(name=rename, mode=mode, needs_approval=needs_approval)
    if (file is None) == (not given):
        raise BadInput(
            "edit",
            "changes nothing, or has both a file and options",
            "give the options to change, or --file with the whole rule",
        )
    change = given if file is None else read_only_rule(file)
    changed = session.act(edit_rule, name, change, version=version, allow_missing=allow_missing)
    session.show_result(changed.name, f"changed, version {changed.version}", key="name")


@app.command()
def confirm(
    session: Session,
    name: Annotated[str | None, Argument("The rule; without a name, list those that wait.", typed_as="NAME")] = None,
    yes: Annotated[bool, Argument("Do not ask.")] = False,
) -> None:
    """Confirm a rule that a program wrote with a token and that sends or deletes mail: until then it does nothing."""
    if name is None:
        session.show_list(map(rule_row, session.call(list_unconfirmed)), COLUMNS)
        return
    view = session.call(load_rule, name)
    if view.awaits_confirmation and not yes:
        typer.echo("\n".join(cell(line) for line in write_documents([view.draft], "yaml").splitlines()), err=True)
        typer.confirm("Let this rule act on new mail?", abort=True, err=True)
    session.act(confirm_rule, view.id, view.content_hash)
    session.show_result(name, "confirmed" if view.awaits_confirmation else "needed no confirmation", key="name")


app.command("test")(rules_trial.try_rules)
app.command("import")(rules_exchange.import_)
app.command("export")(rules_exchange.export)
app.command("check")(rules_code.check)
app.command("diff")(rules_code.diff)
app.command("apply")(rules_code.apply)
app.add_typer(rules_starter.app, name="starter")
