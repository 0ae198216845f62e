"""Rules as commands receive them: from options, or from a file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from postroom.core.errors import BadInput
from postroom.core.rules.documents import read_documents
from postroom.core.rules.draft import RuleDraft
from postroom.interfaces.cli.files import read_text
from postroom.operations.operation import Argument
from postroom.operations.rules.scopes import Scope, ScopeRef

AllowMissing = Annotated[bool, Argument("Accept rules with conditions on labels that no mailbox has yet.")]


@dataclass(frozen=True)
class RuleOptions:
    """The fields of a rule, for a new one and for one that is changed."""

    conditions: Annotated[
        str | None, Argument("""Its conditions: '{"sender_domain": "shop.example"}'.""", typed_as="--if JSON")
    ] = None
    then: Annotated[
        str | None, Argument("Its action: archive, apply_label, trash, …, or none.", typed_as="--then ACTION")
    ] = None
    actions: Annotated[
        Sequence[str],
        Argument(
            "One of several actions, in order, instead of --then: 'apply_label Receipts', archive; repeatable.",
            typed_as="--action ACTION",
        ),
    ] = ()
    parameters: Annotated[
        Sequence[str],
        Argument("A parameter of the action, such as label=Receipts; repeatable.", typed_as="--param NAME=VALUE"),
    ] = ()
    scope: Scope = None
    scope_ref: ScopeRef = None
    priority: Annotated[int | None, Argument("Its priority: the lowest is tried first (100).")] = None
    description: Annotated[str | None, Argument("What it is for, in words.")] = None
    goes_on: Annotated[
        bool | None,
        Argument("Whether the rules after it are tried too, and add theirs.", typed_as="--continue/--stop"),
    ] = None

    def document(self, **others: Any) -> dict[str, Any]:
        """The fields that are given, these and others, as they stand in a file."""
        given = {
            "if": None if self.conditions is None else _json("--if", self.conditions),
            "then": self.then,
            "actions": list(self.actions) or None,
            "parameters": _parameters(self.parameters) or None,
            "scope": self.scope,
            "scope_ref": self.scope_ref,
            "priority": self.priority,
            "description": self.description,
            "continue": self.goes_on,
        }
        return {name: value for name, value in (given | others).items() if value is not None}


def read_drafts(path: Path) -> list[RuleDraft]:
    """Read the rules in a YAML or JSON file."""
    return read_documents(read_text(path))


def read_only_rule(path: Path) -> RuleDraft:
    drafts = read_drafts(path)
    if len(drafts) != 1:
        raise BadInput("--file", f"has {len(drafts)} rules", "give a file with one, or use `postroom rules import`")
    return drafts[0]


def _json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(option, "is not JSON", """write it as '{"sender_domain": "shop.example"}'""") from None


def _parameters(given: Sequence[str]) -> dict[str, Any]:
    """Read parameters such as `label=Receipts amount=3`; a name given twice makes a list."""
    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not (name and equals):
            raise BadInput("--param", f"{each!r} is not NAME=VALUE", "write it as label=Receipts")
        value: Any = int(text) if text.isascii() and text.isdigit() and len(text) < 10 and name == "amount" else text
        before = found.get(name)
        match before:
            case None:
                found[name] = value
            case list():
                found[name] = [*before, value]
            case _:
                found[name] = [before, value]
    return found
