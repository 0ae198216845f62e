"""`postroom model-rules`: rules in words, given to the model with the mail they apply to."""

from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_list, show_result
from postroom.cli.rule_options import Scope, ScopeRef
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.manage.guidance import (
    ACTIVE,
    ModelRule,
    add_guidance,
    edit_guidance,
    list_guidance,
    remove_guidance,
    switch_guidance,
)

app = command_group("Give the model rules in words; list or change them.")

COLUMNS = ("position", "name", "scope", "scope_ref", "enabled", "text")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The model rule, by its name or its id.")]
Place = Annotated[int | None, typer.Option("--position", help="Its position: the lowest comes first.")]
# Hidden: it only tells users what to use instead.
Mode = Annotated[str | None, typer.Option("--mode", hidden=True, help="Model rules have no modes.")]


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the model rules in order."""
    found = call(context, settings_for(data_dir), list_guidance, "model_rule")
    show_list([each.row for each in found], COLUMNS, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The rule, in words.")],
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Place = None,
    mode: Mode = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule in words."""
    rule = ModelRule(name, text, scope or "global", ref, position or 0, mode or ACTIVE)
    added = call(context, settings_for(data_dir), add_guidance, rule, operator_signature())
    show_result(added.name, "added", as_json=as_json, key="name")


@app.command()
def edit(
    context: typer.Context,
    name: Name,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NAME", help="A new name.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Place = None,
    mode: Mode = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change a rule in words. Anything not given stays as it is."""
    given: dict[str, Any] = {
        "name": rename,
        "text": text,
        "scope": scope,
        "scope_ref": ref,
        "position": position,
        "mode": mode,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise BadInput("edit", "changes nothing", "give --text, --rename, --scope, --for or --position")
    changed = call(context, settings_for(data_dir), edit_guidance, "model_rule", name, changes, operator_signature())
    show_result(changed.name, "changed", as_json=as_json, key="name")


@app.command()
def remove(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove a rule in words."""
    removed = call(context, settings_for(data_dir), remove_guidance, "model_rule", name, operator_signature())
    show_result(removed.name, "removed", as_json=as_json, key="name")


@app.command()
def enable(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Give the rule to the model again. Safe to repeat."""
    _switch(context, data_dir, name, True, as_json)


@app.command()
def disable(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Keep the rule but no longer give it to the model. Safe to repeat."""
    _switch(context, data_dir, name, False, as_json)


def _switch(context: typer.Context, data_dir: Path | None, name: str, enabled: bool, as_json: bool) -> None:
    found = call(context, settings_for(data_dir), switch_guidance, "model_rule", name, enabled, operator_signature())
    show_result(found.name, "enabled" if enabled else "disabled", as_json=as_json, key="name")
