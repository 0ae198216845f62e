"""The operations of the JSON API, made from the table of operations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, cast

from postroom.core.access import Access
from postroom.core.views import Page
from postroom.interfaces.argument_forms import REASON, Arguments, form_of_arguments, values_of
from postroom.interfaces.cursors import sealed
from postroom.interfaces.http.answers import Form, form_of, json_of
from postroom.operations.caller import Caller
from postroom.operations.operation import Http, Method, Operation, OperationArgument
from postroom.operations.parts import Parts
from postroom.operations.running import run_operation

PREFIX = "/api/v1"
Place = Literal["path", "query", "body"]


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """An operation at its method and path."""

    operation: Operation
    http: Http

    @property
    def method(self) -> Method:
        return self.http.method

    @property
    def path(self) -> str:
        return self.http.path

    @property
    def status(self) -> int:
        return self.http.status

    @property
    def once(self) -> bool:
        return self.http.once

    @property
    def access(self) -> Access:
        return self.operation.access

    @property
    def description(self) -> str:
        return self.operation.description

    @property
    def name(self) -> str:
        """The operation as people write it, and as the audit log names it: `GET /api/v1/mail`."""
        return f"{self.method} {PREFIX}{self.path}"

    @property
    def id(self) -> str:
        return self.operation.id

    @property
    def is_safe(self) -> bool:
        return self.method == "GET"

    @property
    def answer(self) -> type[Form]:
        """The form of its answer."""
        return form_of(self.operation.answer)

    def arguments(self, place: Place) -> type[Arguments] | None:
        """Return the form of the arguments in one part of the request; None if it has none there."""
        return _forms(self.operation, self.http).get(place)

    async def run(self, parts: Parts, by: Caller, given: Iterable[Arguments]) -> Any:
        """Run it, and return its answer as JSON."""
        values = {name: value for form in given for name, value in values_of(self.operation, form).items()}
        answer = await run_operation(self.operation, parts, by, values)
        if isinstance(answer, Page):
            page = cast("Page[Any]", answer)
            answer = replace(page, next=sealed(self.id, page.next))
        return json_of(self.operation.answer, answer)


@cache
def _forms(operation: Operation, http: Http) -> Mapping[Place, type[Arguments]]:
    name = "".join(word.capitalize() for word in operation.id.split("_"))
    rest: Place = "query" if http.method == "GET" else "body"
    places: dict[Place, list[OperationArgument]] = {} if http.method in ("GET", "DELETE") else {"body": []}
    for each in operation.arguments:
        place: Place = "path" if f"{{{each.name}" in http.path else rest
        places.setdefault(place, []).append(each)
    if operation.signs:
        places.setdefault(rest, []).append(REASON)
    return {place: form_of_arguments(f"{name}{place.capitalize()}", tuple(each)) for place, each in places.items()}
