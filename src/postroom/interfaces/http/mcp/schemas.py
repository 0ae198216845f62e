"""The validation of arguments, and the JSON Schemas of arguments and answers."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from postroom.core.errors import BadInput
from postroom.core.strict import MOST_KEYS, shown_name
from postroom.core.suggestions import did_you_mean
from postroom.interfaces.http.argument_forms import Arguments

AnyArguments = TypeVar("AnyArguments", bound=Arguments)


def read_arguments(tool: str, form: type[AnyArguments], given: Mapping[str, Any] | None) -> AnyArguments:
    """Validate the arguments. Raises BadInput, which names the wrong one."""
    try:
        if given is not None and len(given) > MOST_KEYS:
            raise BadInput("arguments", f"are more than {MOST_KEYS}", f"{tool} takes {', '.join(form.model_fields)}")
        return form.model_validate(given or {})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = [shown_name(str(part)) for part in first["loc"]]
    field = ".".join(path) or "arguments"
    match first["type"]:
        case "extra_forbidden":
            takes = ", ".join(form.model_fields) or "no arguments"
            remedy = did_you_mean(path[-1], form.model_fields, f"leave it out; {tool} takes {takes}")
            raise BadInput(field, f"is not an argument of {tool}", remedy)
        case "missing":
            raise BadInput(field, "is missing", _described(form, field))
        case "timezone_aware":
            raise BadInput(field, "has no time zone", "add an offset, such as Z or +01:00")
        case _:
            raise BadInput(field, first["msg"], _described(form, field))


def _described(form: type[Arguments], path: str) -> str:
    """The description of the argument, also for a field inside it."""
    field = form.model_fields.get(path.partition(".")[0])
    return (field and field.description) or "see its schema"


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
