"""`postroom model-rules`: rules in words, given to the model with the mail they apply to."""

from typing import Annotated, Any

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.rule_options import Scope, ScopeRef
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.rules.guidance import (
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
def list_(session: Session) -> None:
    """List the model rules in order."""
    found = session.call(list_guidance, "model_rule")
    session.show_list([each.row for each in found], COLUMNS)


@app.command()
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The rule, in words.")],
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Place = None,
    mode: Mode = None,
) -> None:
    """Add a rule in words."""
    rule = ModelRule(name, text, scope or "global", ref, position or 0, mode or ACTIVE)
    added = session.act(add_guidance, rule)
    session.show_result(added.name, "added", key="name")


@app.command()
def edit(
    session: Session,
    name: Name,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NAME", help="A new name.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Place = None,
    mode: Mode = None,
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
    changed = session.act(edit_guidance, "model_rule", name, changes)
    session.show_result(changed.name, "changed", key="name")


@app.command()
def remove(session: Session, name: Name) -> None:
    """Remove a rule in words."""
    removed = session.act(remove_guidance, "model_rule", name)
    session.show_result(removed.name, "removed", key="name")


@app.command()
def enable(session: Session, name: Name) -> None:
    """Give the rule to the model again. Safe to repeat."""
    _switch(session, name, True)


@app.command()
def disable(session: Session, name: Name) -> None:
    """Keep the rule but no longer give it to the model. Safe to repeat."""
    _switch(session, name, False)


def _switch(session: Session, name: str, enabled: bool) -> None:
    found = session.act(switch_guidance, "model_rule", name, enabled)
    session.show_result(found.name, "enabled" if enabled else "disabled", key="name")
