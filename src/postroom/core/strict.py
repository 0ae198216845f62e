"""Strict models of what comes from outside, and how a refusal of one is told: the field, the problem, the remedy."""

import contextlib
import difflib
import json
import re
from typing import Any, cast, get_args

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from postroom.core.errors import BadInput

LONGEST_SHOWN = 80
MOST_KEYS = 64
LONGEST_NUMBER = 20
_MAYBE_LONG = re.compile(rb"[0-9]{19}")
NOT_ONE_LINE = "is empty, or holds characters that have no place in it"


def is_crowded(value: object) -> bool:
    return isinstance(value, dict) and len(cast("dict[Any, Any]", value)) > MOST_KEYS


class Strict(BaseModel):
    """Frozen, and unknown keys are refused, so that a producer's mistake is seen and not silently dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, data: Any) -> Any:
        """A million unknown keys would each get an error of its own, and take the memory of the process."""
        if is_crowded(data):
            raise ValueError(f"has more than {MOST_KEYS} keys")
        return data


def problem_in(error: ValidationError, model: type[BaseModel], schema: str, see: str) -> BadInput:
    """What to tell; `see` is for where nothing better is known.

    The unknown key comes before all else: when a name is mistyped, that it is also missing is no news.
    """
    found = error.errors(include_url=False, include_input=False)
    worst = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = [str(part) for part in worst["loc"]]
    field = ".".join(shown_name(part) for part in path) or model.__name__.lower()
    match worst["type"]:
        case "extra_forbidden":
            above = _model_at(model, path[:-1])
            near = difflib.get_close_matches(path[-1][:LONGEST_SHOWN], list(above.model_fields), n=1) if above else []
            return BadInput(
                field, f"is not a field of {schema}", f"did you mean {near[0]!r}?" if near else "leave it out"
            )
        case "timezone_aware":
            return BadInput(field, "has no time zone", "add an offset, such as Z or +01:00")
        case "string_pattern_mismatch":
            return BadInput(field, NOT_ONE_LINE, _remedy(model, path, see))
        case _:
            return BadInput(field, worst["msg"].removeprefix("Value error, "), _remedy(model, path, see))


def _remedy(model: type[BaseModel], path: list[str], see: str) -> str:
    """What the innermost named field on the path may hold, where that is written down."""
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
    """The models among what an annotation such as `Position | None` allows."""
    parts = (annotation, *get_args(annotation))
    return [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]


def shown_name(part: str) -> str:
    """A name from outside as a message may repeat it: not at any length, and without what moves a cursor."""
    shown = part if part.isprintable() else ascii(part)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def fits_64_bits(number: int) -> bool:
    """Whether a whole number is kept as it is: those beyond 64 bits become fractions when they are read again."""
    return -(2**63) <= number < 2**64


def exact_json(content: bytes | bytearray) -> Any:
    """The JSON in it. Raises orjson.JSONDecodeError, and BadInput for whole numbers that would be rounded.

    Two ids that differ in their last digits would be the same afterwards, and one of two events lost as a repetition.
    """
    found = orjson.loads(content)
    if _MAYBE_LONG.search(content):
        with contextlib.suppress(RecursionError):  # what is nested so deep is refused by whoever reads it
            json.loads(content, parse_int=_checked)
    return found


def _checked(digits: str) -> int:
    if len(digits) <= LONGEST_NUMBER and fits_64_bits(number := int(digits)):
        return number
    raise BadInput("body", "holds a whole number beyond 64 bits, which would be rounded", "write it as text")
