"""Running an operation: the interface's caller, the parts of the process and the arguments meet here."""

from collections.abc import Mapping
from typing import Any

from postroom.operations.caller import Caller
from postroom.operations.operation import Operation
from postroom.operations.parts import Parts


async def run_operation(operation: Operation, parts: Parts, by: Caller, arguments: Mapping[str, Any]) -> Any:
    """Run an operation with these arguments and whatever else it needs, and return its answer.

    A reason among the arguments becomes that of the caller's signature.
    """
    if operation.signs and (reason := arguments.get("reason")):
        by = by.because(reason)
    given = [by if type_ is Caller else parts.get(type_) for type_ in operation.parts]
    own = {each.name for each in operation.arguments}
    return await operation.run(*given, **{name: value for name, value in arguments.items() if name in own})
