"""One visit to a page: its address with the filters in it, and what the visitor may do.

Filters come from the address, so that a page can be shared as it is seen. A value that makes no sense is refused with
the name of the filter; nothing is guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.exceptions import HTTPException
from starlette.requests import Request

from postroom.core.errors import BadInput
from postroom.core.visitors import PersonRole, Visitor
from postroom.interfaces.dashboard.visiting import visitor_of

UTC = ZoneInfo("UTC")
LONGEST_FILTER = 500
REFUSED = "refused"
"""The parameter of an address that names a form to show again."""
Choice = TypeVar("Choice", bound=str)


def check_storable(given: Mapping[str, object]) -> None:
    """Refuse NUL, which PostgreSQL cannot compare with anything, before a query fails because of it."""
    for name, value in given.items():
        if isinstance(value, str) and "\0" in value:
            raise HTTPException(400, detail=f"{name[:40]}: contains a NUL character, which nothing here has; remove it")


@dataclass(frozen=True, slots=True)
class Visit:
    path: str
    parameters: Mapping[str, str]
    """The parts of the path that have names, such as the id of a message."""
    filters: Mapping[str, str]
    visitor: Visitor
    zone: ZoneInfo = UTC
    """The reader's time zone."""
    refused: str = ""
    """The id of a form that was refused, which the page shows again."""

    @classmethod
    def of(cls, request: Request, path: str, zone: ZoneInfo) -> "Visit":
        check_storable({**request.path_params, **request.query_params})
        filters = {name: value for name, value in sorted(request.query_params.items()) if value}
        refused = filters.pop(REFUSED, "")
        return cls(path, request.path_params, filters, visitor_of(request), zone, refused)

    @property
    def address(self) -> str:
        return self.with_filters()

    def with_filters(self, **changes: str | int | None) -> str:
        """Return the address of this page with other filters; None or an empty text removes one."""
        merged = {**self.filters, **{name: str(value or "") for name, value in changes.items()}}
        query = urlencode({name: value for name, value in sorted(merged.items()) if value})
        return f"{self.path}?{query}" if query else self.path

    def may(self, role: PersonRole) -> bool:
        return self.visitor.may(role)

    def text(self, name: str) -> str | None:
        """Return the filter's text, None without one."""
        given = self.filters.get(name)
        if given is not None and len(given) > LONGEST_FILTER:
            raise BadInput(name, f"is longer than {LONGEST_FILTER} characters", "shorten it")
        return given

    def choice(self, name: str, choices: Sequence[Choice], default: Choice) -> Choice:
        """Return the chosen one of a few values."""
        given = self.filters.get(name)
        if given is None:
            return default
        for each in choices:
            if each == given:
                return each
        raise BadInput(name, f"{given[:40]!r} is none of them", f"choose one of: {', '.join(choices)}")

    def number(self, name: str, default: int, highest: int) -> int:
        given = self.filters.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdecimal() or len(given) > 18 or int(given) > highest:
            raise BadInput(name, f"{given[:40]!r} is no number up to {highest:,}", "write it in digits")
        return int(given)
