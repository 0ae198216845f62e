"""Options and files by which commands receive rules: scope, documents, JSON, parameters."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.core.errors import BadInput
from postroom.core.rules.documents import read_documents
from postroom.core.rules.draft import RuleDraft

LARGEST_FILE = 8 * 1024 * 1024 + 1

Scope = Annotated[
    str | None, typer.Option("--scope", help="Which mail it applies to: global, account, domain or sender.")
]
ScopeRef = Annotated[
    str | None,
    typer.Option("--for", metavar="WHOM", help="The account (id or address), domain or sender of the scope."),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Accept rules with conditions on labels that no mailbox has yet.")
]


def read_bytes(
    path: Path, largest: int = LARGEST_FILE, option: str = "FILE", remedy: str = "give another file"
) -> bytes:
    """The first `largest` bytes of the file that an option names."""
    try:
        with path.open("rb") as file:
            return file.read(largest)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(option, f"{str(path)!r} cannot be read ({reason})", remedy) from None


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise no_utf_8(path) from None


def no_utf_8(path: Path) -> BadInput:
    return BadInput("FILE", f"{str(path)!r} is not UTF-8", "save it as UTF-8")


def read_drafts(path: Path) -> list[RuleDraft]:
    """Read the rules in a YAML or JSON file."""
    return read_documents(read_text(path))


def json_option(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(option, "is not JSON", """write it as '{"sender_domain": "shop.example"}'""") from None


def parameters_of(given: list[str]) -> dict[str, Any]:
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
