"""Rules, guidance and label descriptions: stored, changed, audited, on both databases."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from postroom.core.actions.steps import Step, combined
from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import labels
from postroom.store.people.audit import list_audit
from postroom.store.rules import guidance, rules
from support.store.fault_cases_mail import keep_account
from support.store.fault_cases_registry import signed
from support.store.fault_cases_rules import CLUB, SHOP, kept
from support.store.job_setup import JobSetup

FULL = RuleDraft(
    "full",
    {"and": [{"sender_domain": "shop.example"}, {"not": {"subject_contains": "invoice"}}]},
    "apply_label",
    {"label": "Shop"},
    "what shops send",
    "domain",
    "shop.example",
    -5,
    shadow=True,
    needs_approval=True,
    enabled=False,
    disabled_reason="review and enable",
)


async def _audited(setup: JobSetup) -> list[str]:
    return [entry.action for entry in await setup.database.run(list_audit(50))]


async def test_a_rule_is_kept_as_it_was_given(setup: JobSetup) -> None:
    await kept(setup, FULL, SHOP)
    full, shop = await setup.database.run(rules.list_rules())
    assert (full.draft, full.version, full.origin) == (FULL, 1, "user")
    assert shop.draft == SHOP
    assert [each.name for each in await setup.database.run(rules.enabled_rules())] == ["shop"]


async def test_rules_whose_names_are_there_are_refused_skipped_or_replaced_as_asked(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    other = replace(SHOP, action_type="trash")
    with pytest.raises(Conflict, match="already"):
        await kept(setup, CLUB, other)
    assert [each.name for each in await setup.database.run(rules.list_rules())] == ["shop"], "all or none"
    skipped = rules.keep_rules([(new_id(), other), (new_id(), CLUB)], "skip", "import", signed(), setup.clock())
    assert await setup.database.run(skipped) == (("club",), (), ("shop",))
    replaced = rules.keep_rules([(new_id(), other), (new_id(), CLUB)], "replace", "import", signed(), setup.clock())
    assert await setup.database.run(replaced) == ((), ("shop",), ("club",))
    view = await setup.database.run(rules.load_rule("shop"))
    assert (view.action, view.version) == ("trash", 2)


async def test_an_edit_counts_only_on_the_version_it_was_made_from(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    seen = await setup.database.run(rules.load_rule("shop"))
    first = await setup.database.run(
        rules.edit_rule(seen.id, seen.version, replace(SHOP, priority=1), signed(), setup.clock())
    )
    assert (first.priority, first.version) == (1, 2)
    with pytest.raises(Conflict, match="meanwhile"):
        await setup.database.run(
            rules.edit_rule(seen.id, seen.version, replace(SHOP, priority=2), signed(), setup.clock())
        )
    assert (await setup.database.run(rules.load_rule("shop"))).priority == 1


async def test_a_rule_cannot_take_the_name_of_another(setup: JobSetup) -> None:
    await kept(setup, SHOP, CLUB)
    shop = await setup.database.run(rules.load_rule("shop"))
    with pytest.raises(Conflict, match="club"):
        await setup.database.run(
            rules.edit_rule(shop.id, shop.version, replace(SHOP, name="club"), signed(), setup.clock())
        )


async def test_a_broken_rule_cannot_be_enabled_before_it_is_fixed(setup: JobSetup) -> None:
    broken = (new_id(), RuleDraft("old", {"sender_domian": "x.example"}, "archive", {}))
    await setup.database.run(rules.add_rules([broken], setup.clock()))
    await setup.database.run(rules.disable_rule(broken[0], "it makes no sense", setup.clock()))
    with pytest.raises(BadInput, match="did you mean 'sender_domain'"):
        await setup.database.run(rules.switch_rule("old", True, signed(), setup.clock()))
    view = await setup.database.run(rules.load_rule("old"))
    assert (view.enabled, view.disabled_reason) == (False, "it makes no sense")


async def test_a_rule_that_would_snooze_until_a_time_that_is_past_is_refused(setup: JobSetup) -> None:
    until = {"until": (setup.clock() + timedelta(hours=1)).isoformat()}
    later = RuleDraft("later", {"has_attachment": True}, "snooze", until)
    await kept(setup, later)
    await setup.database.run(rules.switch_rule("later", False, signed(), setup.clock()))
    setup.clock.forward(3600)
    both = combined([Step("star", {}), Step("snooze", until)])
    again = replace(later, name="new"), RuleDraft("two", {"has_attachment": True}, *both)
    id = (await setup.database.run(rules.load_rule("later"))).id
    refusals: list[Transaction[Any]] = [
        *(rules.keep_rules([(new_id(), each)], "skip", "user", signed(), setup.clock()) for each in again),
        rules.edit_rule(id, 2, replace(later, priority=5), signed(), setup.clock()),
        rules.switch_rule("later", True, signed(), setup.clock()),
    ]
    for refused in refusals:
        with pytest.raises(BadInput, match="is in the past; choose a time in the future"):
            await setup.database.run(refused)
    assert [(each.name, each.enabled) for each in await setup.database.run(rules.list_rules())] == [("later", False)]


async def test_switching_twice_changes_and_signs_once(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    for _ in range(2):
        view = await setup.database.run(
            rules.switch_rule("shop", False, signed()._replace(reason="too eager"), setup.clock())
        )
        assert (view.enabled, view.disabled_reason, view.version) == (False, "too eager", 2)
    assert (await setup.database.run(rules.switch_rule("shop", True, signed(), setup.clock()))).enabled
    assert await _audited(setup) == ["rules.enable", "rules.disable", "rules.add"]


async def test_those_who_switch_a_rule_at_once_all_succeed_and_one_signs(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    switching = [rules.switch_rule(SHOP.name, False, signed(), setup.clock()) for _ in range(6)]
    views = await asyncio.gather(*map(setup.database.run, switching))
    assert [each.enabled for each in views] == [False] * 6
    assert len(await setup.database.run(list_audit(10, action="rules.disable"))) == 1


async def test_every_change_of_a_rule_is_signed_with_what_it_was_and_became(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    seen = await setup.database.run(rules.load_rule("shop"))
    await setup.database.run(rules.edit_rule(seen.id, 1, replace(SHOP, priority=1), signed(), setup.clock()))
    await setup.database.run(rules.remove_rule("shop", signed(), setup.clock()))
    removed, edited, added = await setup.database.run(list_audit(3))
    assert [added.action, edited.action, removed.action] == ["rules.add", "rules.edit", "rules.remove"]
    assert added.after == {"name": "shop", "if": {"sender_domain": "shop.example"}, "then": "archive"}
    assert edited.before == added.after
    assert edited.after == {**(added.after or {}), "priority": 1} == removed.before
    with pytest.raises(NotFound, match="rules list"):
        await setup.database.run(rules.load_rule("shop"))


async def test_a_rule_that_disables_itself_is_signed_once(setup: JobSetup) -> None:
    await kept(setup, SHOP)
    rule = await setup.database.run(rules.load_rule("shop"))
    for _ in range(2):
        await setup.database.run(rules.disable_rule(rule.id, "it makes no sense", setup.clock(), signed()))
    assert await _audited(setup) == ["rules.disable", "rules.add"]


async def test_as_many_rules_as_are_allowed_are_kept_and_one_more_is_refused(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_RULES", 2)
    await kept(setup, SHOP, CLUB)
    with pytest.raises(BadInput, match="would be 3"):
        await kept(setup, FULL)


async def test_ten_thousand_rules_are_allowed(setup: JobSetup) -> None:
    with pytest.raises(BadInput, match="would be 10,001; remove some; 10,000 are allowed"):
        await kept(setup, *[SHOP] * 10_001)


async def test_the_audit_log_names_a_hundred_of_the_rules_that_came_together_and_counts_them_all(
    setup: JobSetup,
) -> None:
    await kept(setup, *(replace(SHOP, name=f"shop {number:03d}") for number in range(101)))
    [entry] = await setup.database.run(list_audit(9))
    assert entry.after is not None
    assert entry.after["added"] == [f"shop {number:03d}" for number in range(100)]
    assert (entry.after["added_count"], entry.after["replaced_count"], entry.after["skipped_count"]) == (101, 0, 0)


async def test_rules_that_come_with_postroom_are_added_once_and_counted(setup: JobSetup) -> None:
    given = [(new_id(), RuleDraft(name, {"sender_domain": "x.example"}, "archive", {})) for name in ("a", "b")]
    assert await setup.database.run(rules.add_rules(given[:1], setup.clock())) == 1
    assert await setup.database.run(rules.add_rules(given, setup.clock())) == 1
    assert await setup.database.run(rules.add_rules(given, setup.clock())) == 0


async def test_directions_are_reported_in_their_order_for_the_account_they_are_for(setup: JobSetup) -> None:
    mine, theirs = new_id(), new_id()
    for content, place in [
        ("last", {"position": 9}),
        ("first", {}),
        ("mine", {"scope": "account", "scope_ref": str(mine), "position": 5}),
        ("theirs", {"scope": "account", "scope_ref": str(theirs)}),
    ]:
        given: dict[str, Any] = dict(place)
        await setup.database.run(
            guidance.add_guidance(new_id(), guidance.Direction(content, **given), signed(), setup.clock())
        )
    told = await setup.database.run(guidance.directions_for(mine))
    assert [each.content for each in told] == ["first", "mine", "last"]
    [first] = [
        each for each in await setup.database.run(guidance.list_guidance("direction")) if each.guidance == told[0]
    ]
    off = replace(told[0], enabled=False)
    await setup.database.run(guidance.edit_guidance(first, off, signed(), setup.clock.forward(1)))
    assert [each.content for each in await setup.database.run(guidance.directions_for(mine))] == ["mine", "last"]


async def test_a_direction_that_was_changed_meanwhile_is_not_overwritten(setup: JobSetup) -> None:
    seen = await setup.database.run(guidance.add_guidance(new_id(), guidance.Direction("a"), signed(), setup.clock()))
    await setup.database.run(guidance.edit_guidance(seen, guidance.Direction("b"), signed(), setup.clock.forward(1)))
    with pytest.raises(Conflict, match="meanwhile"):
        await setup.database.run(
            guidance.edit_guidance(seen, guidance.Direction("c"), signed(), setup.clock.forward(1))
        )
    await setup.database.run(guidance.remove_guidance("direction", seen.id, signed(), setup.clock()))
    with pytest.raises(NotFound):
        await setup.database.run(guidance.remove_guidance("direction", seen.id, signed(), setup.clock()))
    assert await _audited(setup) == ["directions.remove", "directions.edit", "directions.add"]


async def test_a_direction_that_is_invalid_is_refused_and_the_field_is_named(setup: JobSetup) -> None:
    for fields, named in (
        ({"content": " "}, "content"),
        ({"content": "x" * 4_001}, "content"),
        ({"scope": "domain", "scope_ref": "x"}, "scope"),
        ({"scope": "account"}, "scope_ref"),
        ({"scope_ref": "y"}, "scope_ref"),
        ({"position": 1_000_001}, "position"),
        ({"position": -1_000_001}, "position"),
    ):
        given: dict[str, Any] = {"content": "x", **fields}
        with pytest.raises(BadInput) as refused:
            await setup.database.run(
                guidance.add_guidance(new_id(), guidance.Direction(**given), signed(), setup.clock())
            )
        assert refused.value.field == named


@pytest.mark.parametrize("position", [-1_000_000, 1_000_000])
async def test_the_longest_direction_is_kept_at_either_end(setup: JobSetup, position: int) -> None:
    given = guidance.Direction("x" * 4_000, position=position)
    view = await setup.database.run(guidance.add_guidance(new_id(), given, signed(), setup.clock()))
    assert view.guidance == given


async def test_one_direction_more_than_are_allowed_is_refused(setup: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guidance.MOST == {"direction": 200, "model_rule": 1_000}
    monkeypatch.setitem(guidance.MOST, "direction", 1)
    first, second = (
        guidance.add_guidance(new_id(), guidance.Direction(words), signed(), setup.clock()) for words in ("a", "b")
    )
    await setup.database.run(first)
    with pytest.raises(BadInput, match="there are already 1"):
        await setup.database.run(second)


async def test_what_is_added_switched_off_is_off(setup: JobSetup) -> None:
    direction, rule = guidance.Direction("a", enabled=False), guidance.ModelRule("r", "x", enabled=False)
    run, now = setup.database.run, setup.clock()
    assert not (await run(guidance.add_guidance(new_id(), direction, signed(), now))).guidance.enabled
    assert not (await run(guidance.add_guidance(new_id(), rule, signed(), now))).guidance.enabled
    assert await run(guidance.directions_for(new_id())) == []
    assert await run(guidance.model_rules_for(new_id(), "a@x.example")) == []


async def test_the_account_of_a_direction_is_an_id_in_whatever_letters(setup: JobSetup) -> None:
    account = new_id()

    async def added(ref: str) -> guidance.GuidanceView:
        direction = guidance.Direction("a", "account", ref)
        return await setup.database.run(guidance.add_guidance(new_id(), direction, signed(), setup.clock()))

    seen = await added(str(account).upper())
    assert await setup.database.run(guidance.directions_for(account)) == [seen.guidance]
    with pytest.raises(BadInput, match="scope_ref"):
        await added("mara@lindqvist.example")
    changed = replace(seen.guidance, scope_ref="nobody")
    with pytest.raises(BadInput, match="scope_ref"):
        await setup.database.run(guidance.edit_guidance(seen, changed, signed(), setup.clock.forward(1)))


async def test_a_model_rule_in_shadow_is_refused_with_what_to_use_instead(setup: JobSetup) -> None:
    rule = guidance.ModelRule("r", "x", mode="shadow")
    with pytest.raises(
        BadInput, match="directions and model rules have no shadow; use `postroom shadow begin --model`"
    ):
        await setup.database.run(guidance.add_guidance(new_id(), rule, signed(), setup.clock()))


async def test_model_rules_of_all_scopes_are_merged_in_their_order(setup: JobSetup) -> None:
    account = new_id()
    for rule in (
        guidance.ModelRule("all", "x", position=2),
        guidance.ModelRule("sender", "x", "sender", "Ida@Shop.example", 1),
        guidance.ModelRule("domain", "x", "domain", "SHOP.example", 3),
        guidance.ModelRule("account", "x", "account", str(account), 4),
        guidance.ModelRule("other", "x", "domain", "other.example"),
    ):
        await setup.database.run(guidance.add_guidance(new_id(), rule, signed(), setup.clock()))
    found = await setup.database.run(guidance.model_rules_for(account, "ida@SHOP.example"))
    assert [each.name for each in found] == ["sender", "all", "domain", "account"]


async def test_a_model_rule_keeps_a_name_of_its_own(setup: JobSetup) -> None:
    rule = guidance.ModelRule("school", "x")
    await setup.database.run(guidance.add_guidance(new_id(), rule, signed(), setup.clock()))
    other = await setup.database.run(
        guidance.add_guidance(new_id(), replace(rule, name="work"), signed(), setup.clock())
    )
    with pytest.raises(Conflict, match="school"):
        await setup.database.run(guidance.add_guidance(new_id(), rule, signed(), setup.clock()))
    with pytest.raises(Conflict, match="school"):
        await setup.database.run(guidance.edit_guidance(other, rule, signed(), setup.clock()))


async def test_a_model_rule_that_is_invalid_is_refused_and_the_field_is_named(setup: JobSetup) -> None:
    for fields, named in (
        ({"name": "a\nb"}, "name"),
        ({"text": ""}, "text"),
        ({"scope": "sender", "scope_ref": "nobody"}, "scope_ref"),
        ({"mode": "loud"}, "mode"),
    ):
        given: dict[str, Any] = {"name": "a", "text": "x", **fields}
        with pytest.raises(BadInput) as refused:
            await setup.database.run(
                guidance.add_guidance(new_id(), guidance.ModelRule(**given), signed(), setup.clock())
            )
        assert refused.value.field == named


async def test_what_is_told_of_a_label_is_kept_and_survives_a_sync(setup: JobSetup) -> None:
    account = (await setup.database.run(await keep_account(setup))).id
    seen = [labels.SeenLabel("L1", "Receipts", "user"), labels.SeenLabel("L2", "Travel", "user")]
    await setup.database.run(labels.sync_labels(account, seen, setup.clock()))
    receipts, travel = await setup.database.run(labels.list_all_labels())
    await setup.database.run(labels.edit_labels([receipts], "what I paid for", None, signed(), setup.clock()))
    await setup.database.run(labels.edit_labels([receipts], None, False, signed(), setup.clock()))
    await setup.database.run(labels.sync_labels(account, seen, setup.clock()))
    changed, same = await setup.database.run(labels.list_all_labels())
    assert (changed.description, changed.available_to_classifier) == ("what I paid for", False)
    assert same == travel
    assert await _audited(setup) == ["labels.edit", "labels.edit"]


async def test_a_label_that_is_gone_cannot_be_described(setup: JobSetup) -> None:
    account = (await setup.database.run(await keep_account(setup))).id
    await setup.database.run(labels.sync_labels(account, [labels.SeenLabel("L1", "Receipts", "user")], setup.clock()))
    [receipts] = await setup.database.run(labels.list_all_labels())
    await setup.database.run(labels.sync_labels(account, [labels.SeenLabel("INBOX", "INBOX", "system")], setup.clock()))
    with pytest.raises(NotFound, match="gone"):
        await setup.database.run(labels.edit_labels([receipts], "x", None, signed(), setup.clock()))


async def test_a_rule_that_names_a_deleted_label_in_another_case_is_disabled_too(setup: JobSetup) -> None:
    account = (await setup.database.run(await keep_account(setup))).id
    await setup.database.run(labels.sync_labels(account, [labels.SeenLabel("L1", "Receipts", "user")], setup.clock()))
    await kept(setup, RuleDraft("looks", {"label_present": "RECEIPTS"}, "archive"))
    await setup.database.run(labels.sync_labels(account, [labels.SeenLabel("INBOX", "INBOX", "system")], setup.clock()))
    assert not (await setup.database.run(rules.load_rule("looks"))).enabled
