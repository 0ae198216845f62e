"""Rules, directions, model rules and what is said of labels: kept, changed, signed, on both databases."""

from dataclasses import replace
from typing import Any

import pytest

from conformance.desk import Desk
from conformance.fault_cases_mail import keep_account
from conformance.fault_cases_registry import signed
from conformance.fault_cases_rules import CLUB, SHOP, kept
from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.rules.draft import RuleDraft
from postroom.store import guidance, labels, rules
from postroom.store.audit import list_audit
from postroom.store.engine.ids import new_id

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


async def _audited(desk: Desk) -> list[str]:
    return [entry.action for entry in await desk.database.run(list_audit(50))]


async def test_a_rule_is_kept_as_it_was_given(desk: Desk) -> None:
    await kept(desk, FULL, SHOP)
    full, shop = await desk.database.run(rules.list_rules())
    assert (full.draft, full.version, full.origin) == (FULL, 1, "user")
    assert shop.draft == SHOP
    assert [each.name for each in await desk.database.run(rules.enabled_rules())] == ["shop"]


async def test_rules_whose_names_are_there_are_refused_skipped_or_replaced_as_asked(desk: Desk) -> None:
    await kept(desk, SHOP)
    other = replace(SHOP, action_type="trash")
    with pytest.raises(Conflict, match="already"):
        await kept(desk, CLUB, other)
    assert [each.name for each in await desk.database.run(rules.list_rules())] == ["shop"], "all or none"
    skipped = rules.keep_rules([(new_id(), other), (new_id(), CLUB)], "skip", "import", signed(), desk.clock())
    assert await desk.database.run(skipped) == (("club",), (), ("shop",))
    replaced = rules.keep_rules([(new_id(), other), (new_id(), CLUB)], "replace", "import", signed(), desk.clock())
    assert await desk.database.run(replaced) == ((), ("shop",), ("club",))
    view = await desk.database.run(rules.load_rule("shop"))
    assert (view.action, view.version) == ("trash", 2)


async def test_an_edit_counts_only_on_the_version_it_was_made_from(desk: Desk) -> None:
    await kept(desk, SHOP)
    seen = await desk.database.run(rules.load_rule("shop"))
    first = await desk.database.run(
        rules.edit_rule(seen.id, seen.version, replace(SHOP, priority=1), signed(), desk.clock())
    )
    assert (first.priority, first.version) == (1, 2)
    with pytest.raises(Conflict, match="meanwhile"):
        await desk.database.run(
            rules.edit_rule(seen.id, seen.version, replace(SHOP, priority=2), signed(), desk.clock())
        )
    assert (await desk.database.run(rules.load_rule("shop"))).priority == 1


async def test_a_rule_cannot_take_the_name_of_another(desk: Desk) -> None:
    await kept(desk, SHOP, CLUB)
    shop = await desk.database.run(rules.load_rule("shop"))
    with pytest.raises(Conflict, match="club"):
        await desk.database.run(
            rules.edit_rule(shop.id, shop.version, replace(SHOP, name="club"), signed(), desk.clock())
        )


async def test_a_broken_rule_cannot_be_enabled_before_it_is_mended(desk: Desk) -> None:
    broken = rules.NewRule(new_id(), "old", "", {"sender_domian": "x.example"}, "archive", {})
    await desk.database.run(rules.add_rules([broken], desk.clock()))
    await desk.database.run(rules.disable_rule(broken.id, "it makes no sense", desk.clock()))
    with pytest.raises(BadInput, match="did you mean 'sender_domain'"):
        await desk.database.run(rules.switch_rule("old", True, signed(), desk.clock()))
    view = await desk.database.run(rules.load_rule("old"))
    assert (view.enabled, view.disabled_reason) == (False, "it makes no sense")


async def test_switching_twice_changes_and_signs_once(desk: Desk) -> None:
    await kept(desk, SHOP)
    for _ in range(2):
        view = await desk.database.run(
            rules.switch_rule("shop", False, signed()._replace(reason="too eager"), desk.clock())
        )
        assert (view.enabled, view.disabled_reason, view.version) == (False, "too eager", 2)
    assert (await desk.database.run(rules.switch_rule("shop", True, signed(), desk.clock()))).enabled
    assert await _audited(desk) == ["rules.enable", "rules.disable", "rules.add"]


async def test_every_change_of_a_rule_is_signed_with_what_it_was_and_became(desk: Desk) -> None:
    await kept(desk, SHOP)
    seen = await desk.database.run(rules.load_rule("shop"))
    await desk.database.run(rules.edit_rule(seen.id, 1, replace(SHOP, priority=1), signed(), desk.clock()))
    await desk.database.run(rules.remove_rule("shop", signed(), desk.clock()))
    removed, edited, added = await desk.database.run(list_audit(3))
    assert [added.action, edited.action, removed.action] == ["rules.add", "rules.edit", "rules.remove"]
    assert added.after == {"name": "shop", "if": {"sender_domain": "shop.example"}, "then": "archive"}
    assert edited.before == added.after
    assert edited.after == {**(added.after or {}), "priority": 1} == removed.before
    with pytest.raises(NotFound, match="rules list"):
        await desk.database.run(rules.load_rule("shop"))


async def test_a_rule_that_disables_itself_is_signed_once(desk: Desk) -> None:
    await kept(desk, SHOP)
    rule = await desk.database.run(rules.load_rule("shop"))
    for _ in range(2):
        await desk.database.run(rules.disable_rule(rule.id, "it makes no sense", desk.clock(), signed()))
    assert await _audited(desk) == ["rules.disable", "rules.add"]


async def test_as_many_rules_as_are_allowed_are_kept_and_one_more_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_RULES", 2)
    await kept(desk, SHOP, CLUB)
    with pytest.raises(BadInput, match="would be 3"):
        await kept(desk, FULL)


async def test_ten_thousand_rules_are_allowed(desk: Desk) -> None:
    with pytest.raises(BadInput, match="would be 10,001; remove some; 10,000 are allowed"):
        await kept(desk, *[SHOP] * 10_001)


async def test_the_audit_log_names_a_hundred_of_the_rules_that_came_together_and_counts_them_all(desk: Desk) -> None:
    await kept(desk, *(replace(SHOP, name=f"shop {number:03d}") for number in range(101)))
    [entry] = await desk.database.run(list_audit(9))
    assert entry.after is not None
    assert entry.after["added"] == [f"shop {number:03d}" for number in range(100)]
    assert (entry.after["added_count"], entry.after["replaced_count"], entry.after["skipped_count"]) == (101, 0, 0)


async def test_rules_that_come_with_postroom_are_added_once_and_counted(desk: Desk) -> None:
    given = [rules.NewRule(new_id(), name, "", {"sender_domain": "x.example"}, "archive", {}) for name in ("a", "b")]
    assert await desk.database.run(rules.add_rules(given[:1], desk.clock())) == 1
    assert await desk.database.run(rules.add_rules(given, desk.clock())) == 1
    assert await desk.database.run(rules.add_rules(given, desk.clock())) == 0


async def test_directions_are_told_in_their_order_for_the_account_they_are_for(desk: Desk) -> None:
    mine, theirs = new_id(), new_id()
    for content, place in [
        ("last", {"position": 9}),
        ("first", {}),
        ("mine", {"scope": "account", "scope_ref": str(mine), "position": 5}),
        ("theirs", {"scope": "account", "scope_ref": str(theirs)}),
    ]:
        given: dict[str, Any] = dict(place)
        await desk.database.run(
            guidance.add_guidance(new_id(), guidance.Direction(content, **given), signed(), desk.clock())
        )
    told = await desk.database.run(guidance.directions_for(mine))
    assert [each.content for each in told] == ["first", "mine", "last"]
    [first] = [
        each for each in await desk.database.run(guidance.list_guidance("direction")) if each.guidance == told[0]
    ]
    off = replace(told[0], enabled=False)
    await desk.database.run(guidance.edit_guidance(first, off, signed(), desk.clock.forward(1)))
    assert [each.content for each in await desk.database.run(guidance.directions_for(mine))] == ["mine", "last"]


async def test_a_direction_that_was_changed_meanwhile_is_not_overwritten(desk: Desk) -> None:
    seen = await desk.database.run(guidance.add_guidance(new_id(), guidance.Direction("a"), signed(), desk.clock()))
    await desk.database.run(guidance.edit_guidance(seen, guidance.Direction("b"), signed(), desk.clock.forward(1)))
    with pytest.raises(Conflict, match="meanwhile"):
        await desk.database.run(guidance.edit_guidance(seen, guidance.Direction("c"), signed(), desk.clock.forward(1)))
    await desk.database.run(guidance.remove_guidance("direction", seen.id, signed(), desk.clock()))
    with pytest.raises(NotFound):
        await desk.database.run(guidance.remove_guidance("direction", seen.id, signed(), desk.clock()))
    assert await _audited(desk) == ["directions.remove", "directions.edit", "directions.add"]


async def test_a_direction_that_makes_no_sense_is_refused_and_the_field_is_named(desk: Desk) -> None:
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
            await desk.database.run(
                guidance.add_guidance(new_id(), guidance.Direction(**given), signed(), desk.clock())
            )
        assert refused.value.field == named


@pytest.mark.parametrize("position", [-1_000_000, 1_000_000])
async def test_the_longest_direction_is_kept_at_either_end(desk: Desk, position: int) -> None:
    given = guidance.Direction("x" * 4_000, position=position)
    view = await desk.database.run(guidance.add_guidance(new_id(), given, signed(), desk.clock()))
    assert view.guidance == given


async def test_one_direction_more_than_are_allowed_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guidance.MOST == {"direction": 200, "model_rule": 1_000}
    monkeypatch.setitem(guidance.MOST, "direction", 1)
    first, second = (
        guidance.add_guidance(new_id(), guidance.Direction(words), signed(), desk.clock()) for words in ("a", "b")
    )
    await desk.database.run(first)
    with pytest.raises(BadInput, match="are 1 already"):
        await desk.database.run(second)


async def test_what_is_added_switched_off_is_off(desk: Desk) -> None:
    direction, rule = guidance.Direction("a", enabled=False), guidance.ModelRule("r", "x", enabled=False)
    run, now = desk.database.run, desk.clock()
    assert not (await run(guidance.add_guidance(new_id(), direction, signed(), now))).guidance.enabled
    assert not (await run(guidance.add_guidance(new_id(), rule, signed(), now))).guidance.enabled
    assert await run(guidance.directions_for(new_id())) == []
    assert await run(guidance.model_rules_for(new_id(), "a@x.example")) == []


async def test_the_account_of_a_direction_is_an_id_in_whatever_letters(desk: Desk) -> None:
    account = new_id()

    async def added(ref: str) -> guidance.GuidanceView:
        direction = guidance.Direction("a", "account", ref)
        return await desk.database.run(guidance.add_guidance(new_id(), direction, signed(), desk.clock()))

    seen = await added(str(account).upper())
    assert await desk.database.run(guidance.directions_for(account)) == [seen.guidance]
    with pytest.raises(BadInput, match="scope_ref"):
        await added("mara@lindqvist.example")
    changed = replace(seen.guidance, scope_ref="nobody")
    with pytest.raises(BadInput, match="scope_ref"):
        await desk.database.run(guidance.edit_guidance(seen, changed, signed(), desk.clock.forward(1)))


async def test_a_model_rule_in_shadow_is_refused_with_what_to_use_instead(desk: Desk) -> None:
    rule = guidance.ModelRule("r", "x", mode="shadow")
    with pytest.raises(
        BadInput, match="directions and model rules have no shadow; use `postroom shadow begin --model`"
    ):
        await desk.database.run(guidance.add_guidance(new_id(), rule, signed(), desk.clock()))


async def test_model_rules_of_all_scopes_are_merged_in_their_order(desk: Desk) -> None:
    account = new_id()
    for rule in (
        guidance.ModelRule("all", "x", position=2),
        guidance.ModelRule("sender", "x", "sender", "Ida@Shop.example", 1),
        guidance.ModelRule("domain", "x", "domain", "SHOP.example", 3),
        guidance.ModelRule("account", "x", "account", str(account), 4),
        guidance.ModelRule("other", "x", "domain", "other.example"),
    ):
        await desk.database.run(guidance.add_guidance(new_id(), rule, signed(), desk.clock()))
    found = await desk.database.run(guidance.model_rules_for(account, "ida@SHOP.example"))
    assert [each.name for each in found] == ["sender", "all", "domain", "account"]


async def test_a_model_rule_keeps_a_name_of_its_own(desk: Desk) -> None:
    rule = guidance.ModelRule("school", "x")
    await desk.database.run(guidance.add_guidance(new_id(), rule, signed(), desk.clock()))
    other = await desk.database.run(guidance.add_guidance(new_id(), replace(rule, name="work"), signed(), desk.clock()))
    with pytest.raises(Conflict, match="school"):
        await desk.database.run(guidance.add_guidance(new_id(), rule, signed(), desk.clock()))
    with pytest.raises(Conflict, match="school"):
        await desk.database.run(guidance.edit_guidance(other, rule, signed(), desk.clock()))


async def test_a_model_rule_that_makes_no_sense_is_refused_and_the_field_is_named(desk: Desk) -> None:
    for fields, named in (
        ({"name": "a\nb"}, "name"),
        ({"text": ""}, "text"),
        ({"scope": "sender", "scope_ref": "nobody"}, "scope_ref"),
        ({"mode": "loud"}, "mode"),
    ):
        given: dict[str, Any] = {"name": "a", "text": "x", **fields}
        with pytest.raises(BadInput) as refused:
            await desk.database.run(
                guidance.add_guidance(new_id(), guidance.ModelRule(**given), signed(), desk.clock())
            )
        assert refused.value.field == named


async def test_what_is_said_of_a_label_is_kept_and_survives_a_sync(desk: Desk) -> None:
    account = (await desk.database.run(await keep_account(desk))).id
    seen = [labels.SeenLabel("L1", "Receipts", "user"), labels.SeenLabel("L2", "Travel", "user")]
    await desk.database.run(labels.sync_labels(account, seen, desk.clock()))
    receipts, travel = await desk.database.run(labels.list_all_labels())
    await desk.database.run(labels.edit_labels([receipts], "what I paid for", None, signed(), desk.clock()))
    await desk.database.run(labels.edit_labels([receipts], None, False, signed(), desk.clock()))
    await desk.database.run(labels.sync_labels(account, seen, desk.clock()))
    changed, same = await desk.database.run(labels.list_all_labels())
    assert (changed.description, changed.available_to_classifier) == ("what I paid for", False)
    assert same == travel
    assert await _audited(desk) == ["labels.edit", "labels.edit"]


async def test_a_label_that_is_gone_cannot_be_described(desk: Desk) -> None:
    account = (await desk.database.run(await keep_account(desk))).id
    await desk.database.run(labels.sync_labels(account, [labels.SeenLabel("L1", "Receipts", "user")], desk.clock()))
    [receipts] = await desk.database.run(labels.list_all_labels())
    await desk.database.run(labels.sync_labels(account, [labels.SeenLabel("INBOX", "INBOX", "system")], desk.clock()))
    with pytest.raises(NotFound, match="gone"):
        await desk.database.run(labels.edit_labels([receipts], "x", None, signed(), desk.clock()))


async def test_a_rule_that_names_a_deleted_label_in_another_case_is_disabled_too(desk: Desk) -> None:
    account = (await desk.database.run(await keep_account(desk))).id
    await desk.database.run(labels.sync_labels(account, [labels.SeenLabel("L1", "Receipts", "user")], desk.clock()))
    await kept(desk, RuleDraft("looks", {"label_present": "RECEIPTS"}, "archive"))
    await desk.database.run(labels.sync_labels(account, [labels.SeenLabel("INBOX", "INBOX", "system")], desk.clock()))
    assert not (await desk.database.run(rules.load_rule("looks"))).enabled
