"""`postroom model-rules`: rules in words, given to the model with the mail they are for."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.cli.application import application_of
from postroom.cli.directions import one_of_ids
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import cell, show_json, show_list
from postroom.cli.rule_places import Scope, ScopeRef, changing, scope_ref
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.store.engine.database import Database
    from postroom.store.model_rules import ModelRule, ModelRuleView

app = command_group("Give the model rules in words; look at them, change them.")

COLUMNS = ("position", "name", "scope", "scope_ref", "enabled", "text")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The model rule, by its name or its id.")]
Place = Annotated[int | None, typer.Option("--position", help="Its place: the lowest goes first.")]
# Hidden, and there only to tell whoever gives it what to use instead.
Mode = Annotated[str | None, typer.Option("--mode", hidden=True, help="Model rules have no modes.")]


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the model rules in their order."""
    from postroom.store.model_rules import list_model_rules

    found = run_transaction(application_of(context), settings_for(data_dir), list_model_rules())
    show_list([asdict(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The rule, in words.")],
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Place = None,
    mode: Mode = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule in words."""

    async def adding(database: "Database") -> "ModelRuleView":
        from postroom.store.engine.ids import new_id
        from postroom.store.model_rules import ModelRule, add_model_rule

        where = scope or "global"
        rule = ModelRule(name, text, where, await scope_ref(database, where, ref), position or 0)
        rule = replace(rule, mode=mode or "active")
        return await database.run(add_model_rule(new_id(), rule, operator_signature(), datetime.now(UTC)))

    _print_result(changing(context, data_dir, adding).name, "added", as_json)


@app.command()
def edit(
    context: typer.Context,
    name: Name,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NAME", help="A new name.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="The rule, in other words.")] = None,
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Place = None,
    mode: Mode = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change a rule in words. What is not given stays as it is."""
    given: dict[str, Any] = {"name": rename, "text": text, "scope": scope, "position": position, "mode": mode}
    given = {key: value for key, value in given.items() if value is not None}
    if not given and ref is None:
        raise BadInput("edit", "is told nothing", "give --text, --rename, --scope, --for or --position")

    async def editing(database: "Database") -> str:
        before = await _found(database, name)
        where = scope or before.scope
        if scope is not None or ref is not None:
            given["scope_ref"] = await scope_ref(database, where, ref)
        return await _change(database, before, replace(before.rule, **given))

    _print_result(changing(context, data_dir, editing), "changed", as_json)


@app.command()
def remove(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove a rule in words."""

    async def removing(database: "Database") -> str:
        from postroom.store.model_rules import remove_model_rule

        found = await _found(database, name)
        await database.run(remove_model_rule(found.id, operator_signature(), datetime.now(UTC)))
        return found.name

    _print_result(changing(context, data_dir, removing), "removed", as_json)


@app.command()
def enable(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Give the rule to the model again. Safe to repeat."""
    _switch(context, data_dir, name, True, as_json)


@app.command()
def disable(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Keep the rule, but do not give it to the model. Safe to repeat."""
    _switch(context, data_dir, name, False, as_json)


def _switch(context: typer.Context, data_dir: Path | None, name: str, enabled: bool, as_json: bool) -> None:
    async def switching(database: "Database") -> str:
        before = await _found(database, name)
        if before.enabled == enabled:
            return before.name
        return await _change(database, before, replace(before.rule, enabled=enabled))

    _print_result(changing(context, data_dir, switching), "enabled" if enabled else "disabled", as_json)


async def _change(database: "Database", before: "ModelRuleView", after: "ModelRule") -> str:
    from postroom.store.model_rules import edit_model_rule

    return (await database.run(edit_model_rule(before, after, operator_signature(), datetime.now(UTC)))).name


async def _found(database: "Database", given: str) -> "ModelRuleView":
    from postroom.store.model_rules import list_model_rules

    found = await database.run(list_model_rules())
    named = [each for each in found if each.name == given]
    return named[0] if len(named) == 1 else found[one_of_ids("model rule", given, [each.id for each in found])]


def _print_result(name: str, result: str, as_json: bool) -> None:
    show_json({"name": name, "result": result}) if as_json else typer.echo(f"{cell(name)}  {result}")
