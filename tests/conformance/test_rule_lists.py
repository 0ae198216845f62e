"""Rules as a page lists them: by key, with their hits, and moved; on both databases."""

from dataclasses import replace
from datetime import timedelta

import pytest

from postroom.core.errors import BadInput, NotFound
from postroom.core.rules.draft import PRIORITIES, RuleDraft
from postroom.core.rules.order import RulePlace
from postroom.store.engine.ids import new_id
from postroom.store.mail.contacts import count_contacts, note_correspondents
from postroom.store.people.audit import list_audit
from postroom.store.rules import rule_lists, rules
from support.store.fault_cases_registry import signed
from support.store.fault_cases_rules import CLUB, SHOP, kept
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample


async def names(setup: JobSetup) -> list[str]:
    return [view.name for view in await setup.database.run(rules.list_rules())]


async def test_rules_are_listed_by_key_with_their_numbers(setup: JobSetup) -> None:
    await kept(setup, *(RuleDraft(f"r{number}", SHOP.conditions, "star", priority=number // 3) for number in range(10)))
    place, seen = rule_lists.BEGINNING, list[tuple[int, str]]()
    while page := await setup.database.run(rule_lists.rules_page(None, None, place, 4)):
        seen += [(number, view.name) for view, number in page]
        place = RulePlace(page[-1].rule.priority, page[-1].rule.id)
    assert seen == [(number + 1, f"r{number}") for number in range(10)]


async def test_rules_are_filtered_by_scope_and_state_and_counted(setup: JobSetup) -> None:
    off = replace(SHOP, name="off", enabled=False, disabled_reason="because")
    watching = replace(SHOP, name="watching", shadow=True)
    await kept(setup, SHOP, off, watching, replace(CLUB, scope="domain", scope_ref="x.example"))

    async def found(**given: str) -> list[str]:
        chosen = rule_lists.rules_page(given.get("scope"), given.get("state"), rule_lists.BEGINNING, 10)  # type: ignore[arg-type]
        return [each.rule.name for each in await setup.database.run(chosen)]

    assert await found(scope="domain") == ["club"]
    assert await found(scope="global") == ["shop", "off", "watching"]
    assert await found(state="off") == ["off"]
    assert await found(state="shadow") == ["watching"]
    assert await found(state="on") == ["shop", "club"]
    counts = await setup.database.run(rule_lists.count_rules())
    assert (counts.all_rules, counts.on, counts.shadow, counts.off) == (4, 2, 1, 1)


async def test_hits_are_counted_by_hour_and_the_last_one_is_known(setup: JobSetup) -> None:
    box = await MailSetup(setup).opened()
    await box.rules(SHOP, CLUB, replace(SHOP, name="watching", priority=1, shadow=True))
    watching, shop, club = await setup.database.run(rules.list_rules())
    await box.decide(Sample("m1"), Sample("m2"))
    later = setup.clock.forward(3600 * 5)
    await box.decide(Sample("m3"))
    hits = await setup.database.run(rule_lists.rule_hits(later - timedelta(days=7)))
    assert sorted(hits[str(shop.id)].values()) == [1, 2]
    assert str(club.id) not in hits
    last = await setup.database.run(rule_lists.last_hits([shop.id, club.id, watching.id]))
    assert (last[shop.id], last[watching.id], club.id in last) == (later, later, False)
    assert await setup.database.run(rule_lists.last_hits([])) == {}


async def test_a_rule_moves_one_place_and_the_audit_log_says_so(setup: JobSetup) -> None:
    await kept(setup, *(RuleDraft(name, SHOP.conditions, "star") for name in "abc"))
    ids = {view.name: view.id for view in await setup.database.run(rules.list_rules())}
    assert await setup.database.run(rule_lists.move_rule(ids["c"], False, signed(), setup.clock())) == "c"
    assert await names(setup) == ["a", "c", "b"]
    await setup.database.run(rule_lists.move_rule(ids["a"], True, signed(), setup.clock()))
    assert await names(setup) == ["c", "a", "b"]
    entries = [entry for entry in await setup.database.run(list_audit(10)) if entry.action == "rules.move"]
    assert [(entry.object_id, entry.before) for entry in entries] == [
        ("a", {"priority": 100, "place": 1}),
        ("c", {"priority": 100, "place": 3}),
    ]


async def test_at_the_end_of_the_list_a_move_changes_nothing(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    [view] = await setup.database.run(rules.list_rules())
    await setup.database.run(rule_lists.move_rule(view.id, True, signed(), setup.clock()))
    assert (await setup.database.run(rules.list_rules())) == [view]
    assert "rules.move" not in [entry.action for entry in await setup.database.run(list_audit(10))]


async def test_priorities_stay_within_their_limits(setup: JobSetup) -> None:
    await kept(setup, *(RuleDraft(name, SHOP.conditions, "star", priority=PRIORITIES[-1]) for name in "ab"))
    first, second = await setup.database.run(rules.list_rules())
    with pytest.raises(BadInput, match="no room"):
        await setup.database.run(rule_lists.move_rule(first.id, True, signed(), setup.clock()))
    assert await names(setup) == ["a", "b"]
    await setup.database.run(rule_lists.move_rule(second.id, False, signed(), setup.clock()))
    assert await names(setup) == ["b", "a"]


async def test_an_unknown_rule_is_not_found(setup: JobSetup) -> None:
    with pytest.raises(NotFound, match="no such rule"):
        await setup.database.run(rule_lists.move_rule(new_id(), True, signed(), setup.clock()))
    with pytest.raises(NotFound, match="no such rule"):
        await setup.database.run(rule_lists.rule_with_id(new_id()))


async def test_contacts_are_counted_up_to_a_limit(setup: JobSetup) -> None:
    await setup.database.run(note_correspondents([f"x{n}@a.example" for n in range(5)], setup.clock()))
    [counted] = await setup.database.run(count_contacts(100))
    assert (counted.source, counted.count, counted.newest_at) == ("sent", 5, setup.clock())
    assert [each.count for each in await setup.database.run(count_contacts(3))] == [3]
