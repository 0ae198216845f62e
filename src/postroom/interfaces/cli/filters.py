"""`postroom filters`: ingestion rules, which say how much of a message is stored."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands

if TYPE_CHECKING:
    from postroom.core.mail.ingestion import IngestionRule
    from postroom.operations.connectors.filters import IngestionRuleView

app = command_group("List the filters (ingestion rules) that say how much of a message is stored; add or remove some.")

COLUMNS = ("position", "name", "tier", "condition", "origin", "enabled")
OPTIONS = {"number": "--position", "name": "--name", "tier": "--tier", "header": "--header"}
_HEADER = re.compile(r"([^=~]*)([=~])?(.*)", re.DOTALL)


@app.command("list")
def list_(session: Session) -> None:
    """List the filters in the order in which they are tried, yours and the built-in ones."""
    from postroom.operations.connectors.filters import list_filters

    session.show_list(map(_row, session.call(list_filters)), COLUMNS)


@app.command()
def add(
    session: Session,
    name: Annotated[str, typer.Option("--name", help="What the filter is called.")],
    tier: Annotated[
        str | None,
        typer.Option(
            "--tier", help="How much of a matching message is stored (its ingestion tier): full, metadata or skip."
        ),
    ] = None,
    position: Annotated[
        int, typer.Option("--position", help="Its position: the lowest comes first; built-in filters start at 900.")
    ] = 100,
    sender_domain: Annotated[
        str | None, typer.Option("--sender-domain", metavar="DOMAIN", help="Match mail from exactly this domain.")
    ] = None,
    sender_domain_suffix: Annotated[
        str | None,
        typer.Option(
            "--sender-domain-suffix", metavar="DOMAIN", help="Match mail from this domain and its subdomains."
        ),
    ] = None,
    sender: Annotated[
        str | None, typer.Option("--sender", metavar="ADDRESS", help="Match mail from this address.")
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(
            "--header",
            metavar="NAME[=VALUE|~VALUE]",
            help="Match mail with this header: present, equal to this value, or containing it.",
        ),
    ] = None,
    mime_type: Annotated[
        str | None,
        typer.Option("--mime-type", metavar="TYPE", help="Match mail with a part of this type, such as image/*."),
    ] = None,
) -> None:
    """Add a filter with one condition. With only the name of a built-in filter, enable that filter again."""
    from postroom.operations.connectors.filters import add_filter, is_shipped, restore_filter

    given = {
        "--sender-domain": sender_domain,
        "--sender-domain-suffix": sender_domain_suffix,
        "--sender": sender,
        "--header": header,
        "--mime-type": mime_type,
    }
    conditions = {option: value for option, value in given.items() if value is not None}
    if not conditions and tier is None and is_shipped(name):
        was_off = session.act(restore_filter, name)
        _show(name, "switched on" if was_off else "was on", session)
        return
    rule = _rule(name, tier, position, conditions)
    session.act(add_filter, rule)
    _show(name, "added", session)


add_commands(app, "filters", "connectors.filters")


def _rule(name: str, tier: str | None, position: int, conditions: dict[str, str]) -> "IngestionRule":
    """Return the rule; BadInput names the option that is wrong."""
    from postroom.core.mail.ingestion import parse_rule

    if len(conditions) != 1:
        problem = "a rule has exactly one condition" if conditions else "a rule needs a condition"
        named = "give one of --sender-domain, --sender-domain-suffix, --sender, --header, --mime-type"
        raise BadInput("filters", f"{problem}; {len(conditions)} are given", named)
    [(option, text)] = conditions.items()
    try:
        return parse_rule({"name": name, "tier": tier, "number": position, **_condition(option, text)})
    except BadInput as error:
        raise BadInput(OPTIONS.get(error.field, option), error.problem, error.remedy) from None


def _condition(option: str, text: str) -> dict[str, str]:
    match option:
        case "--sender-domain":
            return {"kind": "sender_domain", "value": text}
        case "--sender-domain-suffix":
            return {"kind": "sender_domain_suffix", "value": text}
        case "--sender":
            return {"kind": "sender_address", "value": text}
        case "--mime-type":
            return {"kind": "mime_type", "value": text}
        case _:
            found = _HEADER.fullmatch(text)
            name, mark, value = found.groups() if found else (text, None, "")
            kind = {"=": "header_equals", "~": "header_contains"}.get(mark or "", "header_present")
            return {"kind": kind, "header": name} | ({"value": value} if mark else {})


def _show(name: str, result: str, session: Session) -> None:
    session.show_result(name, result, key="name")
    if not session.as_json:
        typer.echo("Connectors apply it within 15 minutes.", err=True)


def _row(view: "IngestionRuleView") -> dict[str, object]:
    rule = view.rule
    return {
        "position": rule.number,
        "name": rule.name,
        "tier": rule.tier,
        "condition": rule.formula,
        "kind": rule.kind,
        "header": rule.header or None,
        "value": rule.value or None,
        "origin": view.origin,
        "enabled": view.enabled,
    }
