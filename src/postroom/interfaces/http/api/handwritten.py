"""How an operation is declared: its method and path, who may call it, its arguments and its answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_type_hints

from postroom.core.access import READ, Access
from postroom.interfaces.http.answers import Form, form_of, json_of
from postroom.interfaces.http.api.forms import Arguments
from postroom.interfaces.http.api.operation import PREFIX

Method = Literal["GET", "POST", "PUT", "DELETE"]
Run = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Handwritten:
    """One operation. Its function takes the call, and `path`, `query` and `body` if it has such arguments.

    With `once`, an `Idempotency-Key` makes sure that a repeated request is not done twice.
    """

    method: Method
    path: str
    access: Access
    run: Run
    status: int = 200
    once: bool = False

    @property
    def name(self) -> str:
        """The operation as people write it, and as the audit log names it: `GET /api/v1/mail`."""
        return f"{self.method} {PREFIX}{self.path}"

    @property
    def id(self) -> str:
        return self.run.__name__

    @property
    def noun(self) -> str:
        return self.run.__module__.rpartition(".")[2]

    @property
    def is_safe(self) -> bool:
        return self.method == "GET"

    @property
    def description(self) -> str:
        return " ".join((self.run.__doc__ or "").split())

    @property
    def answer(self) -> type[Form]:
        """The form of its answer."""
        return form_of(_types(self.run)["return"])

    def json(self, answer: object) -> Any:
        """An answer as JSON."""
        return json_of(_types(self.run)["return"], answer)

    def arguments(self, part: Literal["path", "query", "body"]) -> type[Arguments] | None:
        """Return the form of the arguments in one part of the request; None if it has none there."""
        return _types(self.run).get(part)


@cache
def _types(run: Run) -> dict[str, type[Any]]:
    return get_type_hints(run)


class Noun:
    """The operations of one noun, in the order in which they are declared and matched."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.operations: list[Handwritten] = []

    def get(self, path: str, access: Access = READ) -> Callable[[Run], Run]:
        return self._declared("GET", path, access)

    def post(self, path: str, access: Access, *, status: int = 200, once: bool = False) -> Callable[[Run], Run]:
        return self._declared("POST", path, access, status, once)

    def put(self, path: str, access: Access) -> Callable[[Run], Run]:
        return self._declared("PUT", path, access)

    def delete(self, path: str, access: Access) -> Callable[[Run], Run]:
        return self._declared("DELETE", path, access)

    def _declared(
        self, method: Method, path: str, access: Access, status: int = 200, once: bool = False
    ) -> Callable[[Run], Run]:
        def declared(run: Run) -> Run:
            self.operations.append(Handwritten(method, path, access, run, status, once))
            return run

        return declared
