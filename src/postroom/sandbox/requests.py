"""Reads requests as Google's front end does: unknown names and wrong types are refused, not ignored."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, cast

import orjson
from starlette.requests import Request

from postroom.sandbox.refusal import invalid

Json = dict[str, Any]

# What every method of a Google API takes besides its own parameters.
STANDARD_PARAMETERS = frozenset(
    {"$.xgafv", "access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser",
     "uploadType", "upload_protocol"}
)  # fmt: skip

MOST_RESULTS = 500


@dataclass(frozen=True)
class Parameters:
    """A query string whose names are all known."""

    request: Request

    def only(self, *known: str) -> "Parameters":
        for name in self.request.query_params:
            if name not in known and name not in STANDARD_PARAMETERS:
                raise invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.')
        return self

    def text(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def texts(self, name: str) -> frozenset[str]:
        return frozenset(self.request.query_params.getlist(name))

    def flag(self, name: str) -> bool:
        value = self.text(name).lower() or "false"
        if value not in ("true", "false"):
            raise invalid(f"Invalid value at '{name}' (TYPE_BOOL), \"{value}\"")
        return value == "true"

    def number(self, name: str, default: int | None = None) -> int:
        value = self.text(name)
        if not value and default is not None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= 20):
            raise invalid(f"Invalid value at '{name}' (TYPE_UINT64), \"{value}\"")
        return int(value)

    def page_size(self) -> int:
        return min(self.number("maxResults", 100), MOST_RESULTS) or 100


async def json_body(request: Request, *known: str) -> Json:
    """The fields of a JSON body, all of them known."""
    try:
        body: object = orjson.loads(await request.body() or b"{}")
    except orjson.JSONDecodeError:
        raise invalid("Invalid JSON payload received.") from None
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received.")
    fields = cast(Json, body)
    for name in fields:
        if name not in known:
            raise invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    return fields


def texts_in(fields: Json, name: str) -> list[str]:
    values: object = fields.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast("list[object]", values)):
        raise invalid(f"Invalid value at '{name}' (TYPE_STRING)")
    return cast("list[str]", values)


def text_in(fields: Json, name: str) -> str:
    value: object = fields.get(name, "")
    if not isinstance(value, str):
        raise invalid(f"Invalid value at '{name}' (TYPE_STRING)")
    return value


def page_token(*place: object) -> str:
    """A place in a list as an opaque text."""
    return base64.urlsafe_b64encode(":".join(map(str, place)).encode()).decode()


def place_in(token: str) -> tuple[int, str]:
    """The place that a page token of ours names: a number and an id, which may be empty."""
    try:
        number, _, name = base64.urlsafe_b64decode(token).decode("ascii").partition(":")
        return int(number), name
    except (binascii.Error, ValueError):
        raise invalid("Invalid pageToken") from None
