"""Stored ingestion rules: the user's own beside the built-in ones, which are disabled and not deleted."""

import asyncio

import pytest

from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.mail.ingestion import BULK_PACK, IngestionRule, parse_rule
from postroom.store.engine.database import Database
from postroom.store.intake import ingestion_rules
from postroom.store.intake.ingestion_rules import (
    add_ingestion_rule,
    list_ingestion_rules,
    remove_ingestion_rule,
    restore_pack_rule,
    version_of,
)
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.store.fault_cases_registry import signed

RULES = [
    parse_rule({"number": 5, "name": "one", "kind": "sender_domain", "value": "Shop.Example", "tier": "skip"}),
    parse_rule({"number": 5, "name": "a", "kind": "sender_address", "value": "a@b.example", "tier": "full"}),
    parse_rule({"number": 1, "name": "b", "kind": "header_present", "header": "X-Ä", "tier": "metadata"}),
    parse_rule({"number": 2, "name": "c", "kind": "header_equals", "header": "X-A", "value": "JA", "tier": "skip"}),
    parse_rule({"number": 3, "name": "d", "kind": "header_contains", "header": "X-A", "value": "n", "tier": "skip"}),
    parse_rule({"number": 4, "name": "e", "kind": "mime_type", "value": "image/*", "tier": "metadata"}),
    parse_rule({"number": 950, "name": "f", "kind": "sender_domain_suffix", "value": "b.example", "tier": "full"}),
]


async def add(database: Database, clock: ManualClock, *rules: IngestionRule) -> None:
    for rule in rules:
        await database.run(add_ingestion_rule(rule, signed(), clock()))


async def enabled(database: Database) -> list[IngestionRule]:
    return [view.rule for view in await database.run(list_ingestion_rules()) if view.enabled]


async def test_a_new_installation_has_the_pack(database: Database) -> None:
    views = await database.run(list_ingestion_rules())
    assert [view.rule for view in views] == list(BULK_PACK)
    assert all(view.enabled and view.origin == "pack" for view in views)


async def test_rules_of_every_kind_come_back_as_they_were_in_their_order(
    database: Database, clock: ManualClock
) -> None:
    await add(database, clock, *RULES)
    expected = sorted([*RULES, *BULK_PACK], key=lambda rule: (rule.number, rule.name))
    assert await enabled(database) == expected


async def test_a_rule_of_ones_own_is_removed_for_good(database: Database, clock: ManualClock) -> None:
    await add(database, clock, RULES[0])
    assert await database.run(remove_ingestion_rule("one", signed(), clock())) == "user"
    assert await enabled(database) == list(BULK_PACK)
    with pytest.raises(NotFound, match="there is no rule 'one'"):
        await database.run(remove_ingestion_rule("one", signed(), clock()))


async def test_a_shipped_rule_is_switched_off_and_on_again(database: Database, clock: ManualClock) -> None:
    assert await database.run(remove_ingestion_rule("list-id", signed(), clock())) == "pack"
    views = {view.rule.name: view for view in await database.run(list_ingestion_rules())}
    assert not views["list-id"].enabled
    assert len(views) == len(BULK_PACK)
    with pytest.raises(NotFound, match="already switched off"):
        await database.run(remove_ingestion_rule("list-id", signed(), clock()))
    assert await database.run(restore_pack_rule("list-id", signed(), clock()))
    assert not await database.run(restore_pack_rule("list-id", signed(), clock()))
    assert await enabled(database) == list(BULK_PACK)
    with pytest.raises(NotFound, match="they are invitation"):
        await database.run(restore_pack_rule("one", signed(), clock()))


async def test_ones_own_rule_stays_when_a_later_version_ships_one_of_its_name(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(database, clock, RULES[0])
    shipped = IngestionRule(960, "one", "sender_domain", "metadata", "d.example")
    monkeypatch.setattr(ingestion_rules, "BULK_PACK", (*BULK_PACK, shipped))
    monkeypatch.setitem(ingestion_rules.PACK, "one", shipped)
    assert await enabled(database) == [RULES[0], *BULK_PACK]
    with pytest.raises(Conflict, match="of your own"):
        await database.run(restore_pack_rule("one", signed(), clock()))
    assert await enabled(database) == [RULES[0], *BULK_PACK]
    assert await database.run(remove_ingestion_rule("one", signed(), clock())) == "user"
    assert await enabled(database) == [*BULK_PACK, shipped]
    assert await database.run(remove_ingestion_rule("one", signed(), clock())) == "pack"
    assert await enabled(database) == list(BULK_PACK)


async def test_a_name_stands_for_one_rule(database: Database, clock: ManualClock) -> None:
    await add(database, clock, RULES[0])
    for name in ("one", "list-id"):
        with pytest.raises(Conflict):
            await add(database, clock, IngestionRule(7, name, "sender_domain", "full", "c.example"))


async def test_of_two_who_add_the_same_name_at_once_one_is_refused(
    database: Database, second_database: Database, clock: ManualClock
) -> None:
    adding = [each.run(add_ingestion_rule(RULES[0], signed(), clock())) for each in (database, second_database)]
    outcomes = await asyncio.gather(*adding, return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) == ["Conflict", "NoneType"]


async def test_there_is_an_end_to_rules(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion_rules, "MOST_RULES", 1)
    await add(database, clock, RULES[0])
    with pytest.raises(BadInput, match="remove some first"):
        await add(database, clock, RULES[1])


async def test_the_version_changes_when_the_rules_do_and_only_then(database: Database, clock: ManualClock) -> None:
    first = version_of(await enabled(database))
    assert version_of(BULK_PACK) == first
    await add(database, clock, RULES[0])
    second = version_of(await enabled(database))
    await database.run(remove_ingestion_rule("one", signed(), clock()))
    assert second != first == version_of(await enabled(database))


async def test_every_change_is_audited(database: Database, clock: ManualClock) -> None:
    await add(database, clock, RULES[0])
    await database.run(remove_ingestion_rule("one", signed(), clock()))
    await database.run(remove_ingestion_rule("list-id", signed(), clock()))
    await database.run(restore_pack_rule("list-id", signed(), clock()))
    entries = list(reversed(await database.run(list_audit(10))))
    assert [(each.action, each.object_id) for each in entries] == [
        ("filters.add", "one"),
        ("filters.remove", "one"),
        ("filters.remove", "list-id"),
        ("filters.restore", "list-id"),
    ]
    assert entries[0].after == entries[1].before
    assert (entries[0].after or {})["value"] == "shop.example"
