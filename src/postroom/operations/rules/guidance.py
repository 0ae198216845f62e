"""Guidance for the model in words: directions for all mail, and model rules for some."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Annotated, Any

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput, NotFound
from postroom.core.short_ids import part_of_id
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, command
from postroom.operations.rules.scopes import Scope, ScopeRef, scope_ref
from postroom.operations.short_ids import ambiguous
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import guidance as store
from postroom.store.rules.guidance import ACTIVE, Direction, Guidance, GuidanceKind, GuidanceView, ModelRule

DIRECTIONS = ("id", "position", "scope", "scope_ref", "enabled", "content")
MODEL_RULES = ("position", "name", "scope", "scope_ref", "enabled", "text")
POSITION = "Its position: the lowest comes first."

DirectionId = Annotated[str, Argument("The direction: its short id, or the whole one.", typed_as="ID")]
Account = Annotated[str | None, Argument("Only for mail of this account.", typed_as="--account ID_OR_ADDRESS")]
Text = Annotated[str | None, Argument("The new text.")]
Position = Annotated[int | None, Argument(POSITION)]
RuleName = Annotated[str, Argument("The model rule, by its name or its id.")]
# Hidden: it only tells users what to use instead.
Mode = Annotated[str | None, Argument("Model rules have no modes.", is_hidden=True)]


@RULES.operation(READ, command("directions list", *DIRECTIONS, row=attrgetter("row")))
async def list_directions(database: Database, /) -> list[GuidanceView]:
    """List the directions in the order in which the model gets them."""
    return await database.run(store.list_guidance("direction"))


@RULES.operation(OPERATE, command("directions add {text}", outcome=("id", "added")))
async def add_direction(
    by: Caller,
    /,
    text: Annotated[str, Argument("What you want, in words.")],
    account: Account = None,
    position: Annotated[int, Argument(POSITION)] = 0,
) -> GuidanceView:
    """Add a direction."""
    return await _add(by, Direction(text, "global" if account is None else "account", account, position))


@RULES.operation(OPERATE, command("directions edit {direction}", outcome=("id", "changed")))
async def edit_direction(
    by: Caller,
    /,
    direction: DirectionId,
    text: Text = None,
    account: Account = None,
    everywhere: Annotated[bool, Argument("Apply it to the mail of all accounts.")] = False,
    position: Position = None,
) -> GuidanceView:
    """Change a direction. Anything not given stays as it is."""
    if account is not None and everywhere:
        raise BadInput("--everywhere", "contradicts --account", "give one of them")
    scope = "global" if everywhere else None if account is None else "account"
    changes = {"scope": scope, "scope_ref": account, "content": text, "position": position}
    return await _edit(by, "direction", direction, changes, "give --text, --position, --account or --everywhere")


@RULES.operation(OPERATE, command("directions remove {direction}", outcome=("id", "removed")))
async def remove_direction(by: Caller, /, direction: DirectionId) -> GuidanceView:
    """Remove a direction."""
    return await _remove(by, "direction", direction)


@RULES.operation(OPERATE, command("directions enable {direction}", outcome=("id", "enabled")))
async def enable_direction(by: Caller, /, direction: DirectionId) -> GuidanceView:
    """Give the direction to the model again. Safe to repeat."""
    return await _switch(by, "direction", direction, True)


@RULES.operation(OPERATE, command("directions disable {direction}", outcome=("id", "disabled")))
async def disable_direction(by: Caller, /, direction: DirectionId) -> GuidanceView:
    """Keep a direction but no longer give it to the model. Safe to repeat."""
    return await _switch(by, "direction", direction, False)


@RULES.operation(READ, command("model-rules list", *MODEL_RULES, row=attrgetter("row")))
async def list_model_rules(database: Database, /) -> list[GuidanceView]:
    """List the model rules in order."""
    return await database.run(store.list_guidance("model_rule"))


@RULES.operation(OPERATE, command("model-rules add {name} {text}", outcome=("name", "added")))
async def add_model_rule(
    by: Caller,
    /,
    name: Annotated[str, Argument("Its name.")],
    text: Annotated[str, Argument("The rule, in words.")],
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Position = None,
    mode: Mode = None,
) -> GuidanceView:
    """Add a rule in words."""
    return await _add(by, ModelRule(name, text, scope or "global", ref, position or 0, mode or ACTIVE))


@RULES.operation(OPERATE, command("model-rules edit {name}", outcome=("name", "changed")))
async def edit_model_rule(
    by: Caller,
    /,
    name: RuleName,
    rename: Annotated[str | None, Argument("A new name.", typed_as="--rename NAME")] = None,
    text: Text = None,
    scope: Scope = None,
    ref: ScopeRef = None,
    position: Position = None,
    mode: Mode = None,
) -> GuidanceView:
    """Change a rule in words. Anything not given stays as it is."""
    changes = {"name": rename, "text": text, "scope": scope, "scope_ref": ref, "position": position, "mode": mode}
    return await _edit(by, "model_rule", name, changes, "give --text, --rename, --scope, --for or --position")


@RULES.operation(OPERATE, command("model-rules remove {name}", outcome=("name", "removed")))
async def remove_model_rule(by: Caller, /, name: RuleName) -> GuidanceView:
    """Remove a rule in words."""
    return await _remove(by, "model_rule", name)


@RULES.operation(OPERATE, command("model-rules enable {name}", outcome=("name", "enabled")))
async def enable_model_rule(by: Caller, /, name: RuleName) -> GuidanceView:
    """Give the rule to the model again. Safe to repeat."""
    return await _switch(by, "model_rule", name, True)


@RULES.operation(OPERATE, command("model-rules disable {name}", outcome=("name", "disabled")))
async def disable_model_rule(by: Caller, /, name: RuleName) -> GuidanceView:
    """Keep the rule but no longer give it to the model. Safe to repeat."""
    return await _switch(by, "model_rule", name, False)


async def _add(by: Caller, guidance: Guidance) -> GuidanceView:
    """Store new guidance. Its account may be given by address."""
    await prepare(by.database)
    ref = await scope_ref(by.database, guidance.scope, guidance.scope_ref)
    return await by.run(store.add_guidance(new_id(), replace(guidance, scope_ref=ref), by.signature, by.clock()))


async def _edit(by: Caller, kind: GuidanceKind, name: str, given: Mapping[str, Any], remedy: str) -> GuidanceView:
    """Change the fields that are given. A new scope starts without the old one's reference."""
    changes = {field: value for field, value in given.items() if value is not None}
    if not changes:
        raise BadInput("edit", "changes nothing", remedy)
    before = await _find(by.database, kind, name)
    if "scope" in changes or "scope_ref" in changes:
        scope = changes.get("scope", before.guidance.scope)
        changes["scope_ref"] = await scope_ref(by.database, scope, changes.get("scope_ref"))
    return await _change(by, before, changes)


async def _switch(by: Caller, kind: GuidanceKind, name: str, enabled: bool) -> GuidanceView:
    """Give it to the model, or withhold it."""
    before = await _find(by.database, kind, name)
    if before.guidance.enabled == enabled:
        return before
    return await _change(by, before, {"enabled": enabled})


async def _remove(by: Caller, kind: GuidanceKind, name: str) -> GuidanceView:
    """Delete it, and return it as it was."""
    found = await _find(by.database, kind, name)
    await by.run(store.remove_guidance(kind, found.id, by.signature, by.clock()))
    return found


async def _change(by: Caller, before: GuidanceView, changes: Mapping[str, Any]) -> GuidanceView:
    after = replace(before.guidance, **changes)
    return await by.run(store.edit_guidance(before, after, by.signature, by.clock()))


async def _find(database: Database, kind: GuidanceKind, given: str) -> GuidanceView:
    """Find guidance by its name, if it has one, or by a part of its id."""
    await prepare(database)
    views = await database.run(store.list_guidance(kind))
    named = [view for view in views if view.name == given]
    part = part_of_id(given)
    ends_so = (
        () if part is None else (view for view in views if part.fits(view.id) or view.id.hex.endswith(part.digits))
    )
    found = named or list(ends_so)
    if not found:
        raise NotFound(f"there is no {store.words_of(kind)} {given}; {store.command_to_list(kind)} lists them")
    if len(found) > 1:
        raise ambiguous("ID", given, [view.id for view in found])
    return found[0]
