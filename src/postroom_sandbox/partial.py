"""Partial responses: with `fields=messages(id,threadId),nextPageToken` everything else is left out, as at Google."""

import re
from typing import Any, cast

from postroom_sandbox.refusal import invalid

_TOKEN = re.compile(r"[\w$*-]+|[(),/]")

# The fields to keep, each with the fields to keep below it; an empty mask keeps everything.
Mask = dict[str, "Mask"]


def selected(answer: dict[str, Any], fields: str) -> dict[str, Any]:
    return cast("dict[str, Any]", _keep(answer, parse_fields(fields))) if fields else answer


def parse_fields(fields: str) -> Mask:
    tokens = _TOKEN.findall(fields)
    if "".join(tokens) != fields.replace(" ", ""):
        raise invalid(f"Invalid field selection {fields}")
    mask, rest = _several(tokens, fields)
    if rest:
        raise invalid(f"Invalid field selection {fields}")
    return mask


def _several(tokens: list[str], fields: str) -> tuple[Mask, list[str]]:
    mask: Mask = {}
    while True:
        name, inner, tokens = _one(tokens, fields)
        mask.setdefault(name, {}).update(inner)
        if tokens[:1] != [","]:
            return mask, tokens
        tokens = tokens[1:]


def _one(tokens: list[str], fields: str) -> tuple[str, Mask, list[str]]:
    if not tokens or tokens[0] in "(),/":
        raise invalid(f"Invalid field selection {fields}")
    name, tokens = tokens[0], tokens[1:]
    if tokens[:1] == ["/"]:
        below, inner, tokens = _one(tokens[1:], fields)
        return name, {below: inner}, tokens
    if tokens[:1] == ["("]:
        inner, tokens = _several(tokens[1:], fields)
        if tokens[:1] != [")"]:
            raise invalid(f"Invalid field selection {fields}")
        return name, inner, tokens[1:]
    return name, {}, tokens


def _keep(value: object, mask: Mask) -> object:
    if not mask:
        return value
    if isinstance(value, list):
        return [_keep(each, mask) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)
        everything = mask.get("*")
        if everything is not None:
            return {name: _keep(each, everything) for name, each in named.items()}
        return {name: _keep(each, mask[name]) for name, each in named.items() if name in mask}
    return value
