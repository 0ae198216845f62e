"""Running an operation: the interface's caller, the parts of the process and the arguments meet here."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from postroom.operations.caller import Caller
from postroom.operations.operation import Operation
from postroom.operations.parts import Parts
from postroom.store.engine.database import Database


async def run_operation(operation: Operation, parts: Parts, by: Caller, arguments: Mapping[str, Any]) -> Any:
    """Run an operation with these arguments and whatever else it needs, and return its answer.

    A reason among the arguments becomes that of the caller's signature.
    """
    if operation.signs and (reason := arguments.get("reason")):
        by = by.because(reason)
    given = [by if type_ is Caller else parts.get(type_) for type_ in operation.parts]
    return await operation.run(*given, **operation.keywords(arguments))


async def find_named(operation: Operation, database: Database, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with the ids that people mean by their names, or by some digits."""
    found = dict(arguments)
    for each in operation.arguments:
        if each.found_by is not None and each.name in found:
            find, named = each.found_by.find, found[each.name]
            if isinstance(named, str):
                found[each.name] = await find(database, named)
            elif not isinstance(named, UUID):
                found[each.name] = [await find(database, name) for name in named]
    return found
