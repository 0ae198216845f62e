"""The JSON Schemas of arguments and answers."""

from collections.abc import Collection
from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter

from postroom.interfaces.argument_forms import Arguments


@cache
def input_schema(form: type[Arguments]) -> dict[str, Any]:
    schema = _without(("title",), form.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


@cache
def output_schema(form: type[Any]) -> dict[str, Any]:
    return _without(("title", "format"), TypeAdapter[Any](form).json_schema(mode="serialization"))


def _without(keys: Collection[str], schema: dict[str, Any]) -> dict[str, Any]:
    """Remove these keys, such as titles, which repeat the names: a model that reads the schema pays for each word."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            plain[key] = {name: _without(keys, inner) for name, inner in cast("dict[str, Any]", value).items()}
        elif key not in keys:
            plain[key] = _plain(keys, value)
    return plain


def _plain(keys: Collection[str], value: Any) -> Any:
    match value:
        case dict():
            return _without(keys, cast("dict[str, Any]", value))
        case list():
            return [_plain(keys, inner) for inner in cast("list[Any]", value)]
        case _:
            return value
