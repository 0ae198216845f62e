"""Strict models for input from outside, and their errors: the field, the problem, the remedy."""

import contextlib
import json
import re
from typing import Any, cast, get_args

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from postroom.core.errors import BadInput
from postroom.core.suggestions import did_you_mean

LONGEST_SHOWN = 80
MOST_KEYS = 64
LONGEST_NUMBER = 20
_MAYBE_LONG = re.compile(rb"[0-9]{19}")
NOT_ONE_LINE = "is empty, or contains characters that are not allowed"


def is_crowded(value: object) -> bool:
    return isinstance(value, dict) and len(cast("dict[Any, Any]", value)) > MOST_KEYS


class Strict(BaseModel):
    """Frozen, and unknown keys are refused, so that a producer's mistake is seen and not silently dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, data: Any) -> Any:
        """Refuse too many keys at once: a million unknown ones, each with an error, would exhaust the memory."""
        if is_crowded(data):
            raise ValueError(f"has more than {MOST_KEYS} keys")
        return data


def problem_in(error: ValidationError, model: type[BaseModel], schema: str, see: str) -> BadInput:
    """The error to show; `see` is its remedy where there is no better one.

    An unknown key comes first: a mistyped name is also reported as missing, which tells the caller nothing new.
    """
    found = error.errors(include_url=False, include_input=False)
    worst = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = [str(part) for part in worst["loc"]]
    field = ".".join(shown_name(part) for part in path) or model.__name__.lower()
    match worst["type"]:
        case "extra_forbidden":
            above = _model_at(model, path[:-1])
            known = above.model_fields if above else ()
            return BadInput(
                field, f"is not a field of {schema}", did_you_mean(path[-1][:LONGEST_SHOWN], known, "leave it out")
            )
        case "timezone_aware":
            return BadInput(field, "has no time zone", "add an offset, such as Z or +01:00")
        case "string_pattern_mismatch":
            return BadInput(field, NOT_ONE_LINE, _remedy(model, path, see))
        case _:
            return BadInput(field, worst["msg"].removeprefix("Value error, "), _remedy(model, path, see))


def _remedy(model: type[BaseModel], path: list[str], see: str) -> str:
    """The description of the innermost known field on the path, if it has one."""
    for length in range(len(path), 0, -1):
        above = _model_at(model, path[: length - 1])
        if above is not None and path[length - 1] in above.model_fields:
            described = above.model_fields[path[length - 1]].description
            return f"give {described}" if described else see
    return see


def _model_at(model: type[BaseModel], path: list[str]) -> type[BaseModel] | None:
    for part in path:
        field = model.model_fields.get(part)
        inner = _models_in(field.annotation) if field is not None else []
        if not inner:
            return None
        model = inner[0]
    return model


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models in an annotation such as `Position | None`."""
    parts = (annotation, *get_args(annotation))
    return [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]


def shown_name(part: str) -> str:
    """A name from outside, made safe to show: shortened, and without control characters."""
    shown = part if part.isprintable() else ascii(part)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def one_line(field: str, given: object, longest: int) -> str:
    """A text of one line. Raises BadInput."""
    if not isinstance(given, str) or not given.strip() or len(given) > longest or not given.isprintable():
        raise BadInput(field, "is not one line of text", f"give between 1 and {longest} characters")
    return given.strip()


def yes_or_no(field: str, given: object) -> bool:
    """A boolean, and no number. Raises BadInput."""
    if not isinstance(given, bool):
        raise BadInput(field, "is neither true nor false", "write true or false")
    return given


def fits_64_bits(number: int) -> bool:
    """Whether an integer survives storage: JSON readers turn those beyond 64 bits into floats."""
    return -(2**63) <= number < 2**64


def exact_json(content: bytes | bytearray) -> Any:
    """The parsed JSON. Raises orjson.JSONDecodeError, and BadInput for integers that would be rounded.

    Two rounded ids that differ only in their last digits would be equal, and one of the events lost as a duplicate.
    """
    found = orjson.loads(content)
    if _MAYBE_LONG.search(content):
        with contextlib.suppress(RecursionError):  # the caller refuses such deep nesting
            json.loads(content, parse_int=_whole_number)
    return found


def _whole_number(digits: str) -> int:
    if len(digits) <= LONGEST_NUMBER and fits_64_bits(number := int(digits)):
        return number
    raise BadInput("body", "contains a whole number beyond 64 bits, which would be rounded", "write it as text")
