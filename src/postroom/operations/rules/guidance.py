"""Guidance for the model in words: directions for all mail, and model rules for some."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from postroom.core.errors import Conflict, NotFound
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.rules.scopes import scope_ref
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import guidance as store
from postroom.store.rules.guidance import ACTIVE, Direction, Guidance, GuidanceKind, GuidanceView, ModelRule

__all__ = [
    "ACTIVE",
    "Direction",
    "GuidanceView",
    "ModelRule",
    "add_guidance",
    "edit_guidance",
    "list_guidance",
    "remove_guidance",
    "switch_guidance",
]

# A shorter suffix of an id would be unique only by chance.
SHORTEST_END = 4


async def list_guidance(database: Database, kind: GuidanceKind) -> list[GuidanceView]:
    """List all of one kind, in the order in which the model gets them."""
    return await database.run(store.list_guidance(kind))


async def add_guidance(by: Caller, guidance: Guidance) -> GuidanceView:
    """Store new guidance. Its account may be given by address."""
    await prepare(by.database)
    ref = await scope_ref(by.database, guidance.scope, guidance.scope_ref)
    return await by.run(store.add_guidance(new_id(), replace(guidance, scope_ref=ref), by.signature, by.clock()))


async def edit_guidance(by: Caller, kind: GuidanceKind, name: str, changes: Mapping[str, Any]) -> GuidanceView:
    """Change the given fields. A new scope starts without the old one's reference."""
    before = await _find(by.database, kind, name)
    changes = dict(changes)
    if "scope" in changes or "scope_ref" in changes:
        scope = changes.get("scope", before.guidance.scope)
        changes["scope_ref"] = await scope_ref(by.database, scope, changes.get("scope_ref"))
    return await _change(by, before, changes)


async def switch_guidance(by: Caller, kind: GuidanceKind, name: str, enabled: bool) -> GuidanceView:
    """Give it to the model, or withhold it. Safe to repeat."""
    before = await _find(by.database, kind, name)
    if before.guidance.enabled == enabled:
        return before
    return await _change(by, before, {"enabled": enabled})


async def remove_guidance(by: Caller, kind: GuidanceKind, name: str) -> GuidanceView:
    """Delete it, and return it as it was."""
    found = await _find(by.database, kind, name)
    await by.run(store.remove_guidance(kind, found.id, by.signature, by.clock()))
    return found


async def _change(by: Caller, before: GuidanceView, changes: Mapping[str, Any]) -> GuidanceView:
    after = replace(before.guidance, **changes)
    return await by.run(store.edit_guidance(before, after, by.signature, by.clock()))


async def _find(database: Database, kind: GuidanceKind, given: str) -> GuidanceView:
    """Find guidance by its name, if it has one, or by the end of its id: ids created together begin alike."""
    await prepare(database)
    views = await list_guidance(database, kind)
    named = [view for view in views if view.name == given]
    found = named or [view for view in views if len(given) >= SHORTEST_END and str(view.id).endswith(given.lower())]
    if not found:
        what, command = kind.replace("_", " "), f"postroom {kind.replace('_', '-')}s list"
        raise NotFound(f"there is no {what} {given}; `{command}` lists them")
    if len(found) > 1:
        raise Conflict("ID", f"{len(found)} end in {given}", "give more of it")
    return found[0]
