"""Ingestion rule verbs: the user's own rules, and which rules of the shipped pack are off.

The pack is in the code (`core/mail/ingestion.py`), so that it grows with new versions; the database has a row for a
shipped rule only if the user switched it off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.mail.ingestion import BULK_PACK, IngestionRule, as_data, parse_rule
from postroom.store.engine.codecs import from_json, json_text
from postroom.store.engine.database import Rows, Script, query, sql, transaction
from postroom.store.engine.reading import read_row
from postroom.store.people.audit import Signature, auditing

MOST_RULES = 1000
PACK = {rule.name: rule for rule in BULK_PACK}

Origin = Literal["pack", "user"]


@dataclass(frozen=True, slots=True)
class IngestionRuleView:
    """A rule, its origin, and whether it is on."""

    rule: IngestionRule
    origin: Origin
    enabled: bool


@transaction
def add_ingestion_rule(rule: IngestionRule, signed: Signature, now: datetime) -> Script[None]:
    """Add a rule of the user's own. Its name must be new."""
    if rule.name in PACK:
        raise Conflict("name", f"{rule.name!r} is the name of a shipped rule", "give yours another name")
    [[own]] = yield sql("lock_ingestion_rules")
    if own >= MOST_RULES:
        raise BadInput("rules", f"there are already {own:,}", "remove some first; one domain suffix often covers many")
    if not (yield from _insert(rule, True, "user", now)):
        raise Conflict("name", f"there is already a rule {rule.name!r}", "give yours another name, or remove that one")
    yield from auditing(signed.under("filters.add", "ingestion_rule", rule.name, after=as_data(rule)), now)


@transaction
def remove_ingestion_rule(name: str, signed: Signature, now: datetime) -> Script[Origin]:
    """Remove a rule of the user's own, or switch off one of the pack; return which it was."""
    yield sql("lock_ingestion_rules")
    rows = yield sql("delete_ingestion_rule", name)
    stored = next(iter(_read_rules(rows)), None)
    match stored:
        case None if name in PACK:
            yield from _insert(PACK[name], False, "pack", now)
            before: dict[str, object] = {"enabled": True}
        case None:
            raise NotFound(f"there is no rule {name!r}; see `postroom filters list`")
        case IngestionRuleView(origin="pack"):
            raise NotFound(f"the shipped rule {name!r} is already switched off; `postroom filters list` shows it")
        case _:
            before = as_data(stored.rule)
    yield from auditing(signed.under("filters.remove", "ingestion_rule", name, before=before), now)
    return "pack" if stored is None else "user"


@transaction
def restore_pack_rule(name: str, signed: Signature, now: datetime) -> Script[bool]:
    """Switch a rule of the pack on again. False if it was on."""
    if name not in PACK:
        raise NotFound(f"there is no shipped rule {name!r}; they are {', '.join(PACK)}")
    yield sql("lock_ingestion_rules")
    rows = yield sql("delete_ingestion_rule", name)
    if not rows:
        return False
    if _read_rules(rows)[0].origin == "user":
        raise Conflict(
            "name", f"you have a rule {name!r} of your own, which is older than the shipped one", "remove yours"
        )
    yield from auditing(signed.under("filters.restore", "ingestion_rule", name, after={"enabled": True}), now)
    return True


@query
def list_ingestion_rules() -> Script[list[IngestionRuleView]]:
    """The user's rules and the pack, in the order in which they are tried.

    A rule of the user's own replaces a shipped one with the same name.
    """
    rows = yield sql("select_ingestion_rules")
    stored = {view.rule.name: view for view in _read_rules(rows)}
    own = [view for view in stored.values() if view.origin == "user"]
    pack = [
        IngestionRuleView(rule, "pack", rule.name not in stored)
        for rule in BULK_PACK
        if rule.name not in {view.rule.name for view in own}
    ]
    return sorted([*own, *pack], key=lambda view: (view.rule.number, view.rule.name))


def version_of(rules: Iterable[IngestionRule]) -> str:
    """A version of the rules: changes whenever they do, and is the same everywhere."""
    return sha256(json_text([as_data(rule) for rule in rules]).encode()).hexdigest()[:16]


def _insert(rule: IngestionRule, enabled: bool, origin: Origin, now: datetime) -> Script[bool]:
    conditions = {name: value for name, value in as_data(rule).items() if name in ("kind", "value", "header")}
    taken = yield sql(
        "insert_ingestion_rule", rule.name, rule.number, json_text(conditions), rule.tier, enabled, origin, now
    )
    return bool(taken)


def _read_rules(rows: Rows) -> list[IngestionRuleView]:
    return [read_row(IngestionRuleView, row, rule=_rule(row)) for row in rows.by_name()]


def _rule(row: Mapping[str, Any]) -> IngestionRule:
    fields = {"name": row["name"], "number": row["position"], "tier": row["tier"]}
    return parse_rule(fields | from_json(row["conditions_json"]))
