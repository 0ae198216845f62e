"""The reference of the JSON API, written from its operations and its description."""

from collections.abc import Callable, Mapping
from typing import Any

from postroom.interfaces.http.api.openapi import openapi, plain_path, who_may
from postroom.interfaces.http.api.operation import PREFIX, ApiOperation
from postroom.interfaces.http.api.registry import NOUNS, ApiNoun

FormOf = Callable[[dict[str, Any], dict[str, Any]], str]


def api_reference(form_of: FormOf) -> str:
    return "\n\n".join([_summary(), *(_section(noun, form_of) for noun in NOUNS)])


def _summary() -> str:
    rows = ["| operation | people | tokens | what it does |", "|---|---|---|---|"]
    for noun in NOUNS:
        rows += [_row(each) for each in noun.operations]
    return "\n".join(rows)


def _row(operation: ApiOperation) -> str:
    access = operation.access
    people = f"`{access.person}`{', confirmed' if access.is_fresh else ''}"
    tokens = ", ".join(f"`{role}`" for role in sorted(access.tokens)) or "–"
    if len(access.tokens) > 2:
        tokens = "any"
    return f"| `{operation.method} {plain_path(operation.path)}` | {people} | {tokens} | {operation.description} |"


def _section(noun: ApiNoun, form_of: FormOf) -> str:
    return "\n\n".join([f"## {noun.title}", *(_operation(each, form_of) for each in noun.operations)])


def _operation(operation: ApiOperation, form_of: FormOf) -> str:
    description = openapi()
    schemas = description["components"]["schemas"]
    declared = description["paths"][f"{PREFIX}{plain_path(operation.path)}"][operation.method.lower()]
    lines = [f"### `{operation.method} {plain_path(operation.path)}`", "", operation.description, ""]
    lines.append(f"For {who_may(operation)}.")
    rows = [
        _argument(each["in"], each["name"], each, each["required"], schemas, form_of) for each in declared["parameters"]
    ]
    if "requestBody" in declared:
        rows += _body(declared["requestBody"], schemas, form_of)
    if rows:
        lines += ["", "| in | argument | type | default | meaning |", "|---|---|---|---|---|", *rows]
    answer = declared["responses"][str(operation.status)]["content"]["application/json"]["schema"]
    shown = "the description itself" if operation.id == "read_openapi" else form_of(answer, schemas)
    return "\n".join([*lines, "", f"Answers {operation.status}:", "", "```text", shown, "```"])


def _body(body: Mapping[str, Any], schemas: dict[str, Any], form_of: FormOf) -> list[str]:
    form = schemas[body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
    needed = form.get("required", ())
    return [
        _argument(
            "body", name, {"schema": each, "description": each.get("description", "")}, name in needed, schemas, form_of
        )
        for name, each in form.get("properties", {}).items()
    ]


def _argument(
    place: str, name: str, given: Mapping[str, Any], required: bool, schemas: dict[str, Any], form_of: FormOf
) -> str:
    kind = " ".join(form_of(given["schema"], schemas).split())
    default = given["schema"].get("default")
    shown = "required" if required else "" if default is None else f"`{default}`"
    return f"| {place} | `{name}` | {kind} | {shown} | {given['description']} |"
