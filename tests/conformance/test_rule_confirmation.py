"""A rule that a token writes and that sends or deletes mail decides nothing before a person has confirmed it."""

from dataclasses import replace
from uuid import UUID

import pytest

from postroom.core.errors import Conflict, Refused
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.learning import RuleSuggestion
from postroom.core.rules.plan import make_plan
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation import prohibitions
from postroom.store.people.audit import Signature, list_audit
from postroom.store.rules import proposals, rule_plans, rules
from postroom.store.rules.rules import RuleView
from support.store.fault_cases_mail import keep_account
from support.store.fault_cases_registry import signed
from support.store.fault_cases_rules import SHOP, kept
from support.store.job_setup import JobSetup

FORWARD = RuleDraft("to eve", {"subject_contains": "invoice"}, "forward", {"to": "eve@example.net"})
ANSWER = RuleDraft("away", {"subject_contains": "hello"}, "auto_reply", {"text": "Away.", "cc": "eve@example.net"})
DELETE = RuleDraft("gone", {"sender_domain": "shop.example"}, "delete")
SEVERAL = RuleDraft(
    "label and send",
    {"sender_domain": "shop.example"},
    "several",
    {"actions": [{"action": "star"}, {"action": "forward", "parameters": {"to": "eve@example.net"}}]},
)


def by_token() -> Signature:
    return Signature(new_id(), f"token:{UUID(int=7)}", "admin")


async def written(setup: JobSetup, draft: RuleDraft, signer: Signature) -> RuleView:
    await setup.database.run(rules.keep_rules([(new_id(), draft)], "replace", "user", signer, setup.clock()))
    return await stored(setup, draft.name)


async def stored(setup: JobSetup, name: str) -> RuleView:
    return await setup.database.run(rules.load_rule(name))


async def decides(setup: JobSetup, name: str) -> bool:
    return name in [each.name for each in await setup.database.run(rules.enabled_rules())]


async def confirmed(setup: JobSetup, view: RuleView) -> RuleView:
    hashed = view.content_hash
    return await setup.database.run(rules.confirm_rule(view.id, hashed, signed(), setup.clock()))


@pytest.mark.parametrize("draft", [FORWARD, ANSWER, DELETE, SEVERAL], ids=lambda draft: draft.name)
async def test_what_a_token_writes_waits_once_and_then_decides(setup: JobSetup, draft: RuleDraft) -> None:
    view = await written(setup, draft, by_token())
    assert view.awaits_confirmation
    assert not await decides(setup, draft.name)
    assert [each.name for each in await setup.database.run(rules.unconfirmed_rules())] == [draft.name]
    assert not (await confirmed(setup, view)).awaits_confirmation
    assert await decides(setup, draft.name)
    assert await setup.database.run(rules.unconfirmed_rules()) == []
    [entry] = await setup.database.run(list_audit(5, action="rules.confirm"))
    assert (entry.actor, entry.object_id) == ("cli:ada", draft.name)


async def test_what_a_person_writes_or_what_can_be_undone_does_not_wait(setup: JobSetup) -> None:
    await written(setup, FORWARD, signed())
    await written(setup, SHOP, by_token())
    assert await decides(setup, FORWARD.name)
    assert await decides(setup, SHOP.name)


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"to": "mallory@example.net"}},
        {"conditions": {"has_attachment": True}},
        {"scope": "domain", "scope_ref": "shop.example"},
        {"action_type": "delete", "parameters": {}},
        {"continues": True},
        {"needs_approval": True},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_token_that_changes_the_content_loses_the_confirmation(
    setup: JobSetup, change: dict[str, object]
) -> None:
    view = await written(setup, FORWARD, signed())
    changed = replace(FORWARD, **change)  # pyright: ignore[reportArgumentType]
    edited = await setup.database.run(rules.edit_rule(view.id, view.version, changed, by_token(), setup.clock()))
    assert edited.awaits_confirmation
    assert not await decides(setup, FORWARD.name)


async def test_a_token_that_changes_only_words_keeps_the_confirmation(setup: JobSetup) -> None:
    view = await written(setup, FORWARD, signed())
    changed = replace(FORWARD, name="renamed", description="words", priority=7)
    await setup.database.run(rules.edit_rule(view.id, view.version, changed, by_token(), setup.clock()))
    assert await decides(setup, "renamed")


async def test_a_harmless_rule_that_a_token_turns_into_one_that_sends_waits(setup: JobSetup) -> None:
    view = await written(setup, SHOP, signed())
    sends = replace(SHOP, action_type="forward", parameters={"to": "eve@example.net"})
    await setup.database.run(rules.edit_rule(view.id, view.version, sends, by_token(), setup.clock()))
    assert not await decides(setup, SHOP.name)


async def test_a_token_does_not_switch_on_what_a_person_switched_off(setup: JobSetup) -> None:
    await written(setup, FORWARD, signed())
    for signer in (signed(), by_token()):
        await setup.database.run(rules.switch_rule(FORWARD.name, signer.is_token, signer, setup.clock()))
    assert (await stored(setup, FORWARD.name)).awaits_confirmation
    assert not await decides(setup, FORWARD.name)
    await setup.database.run(rules.switch_rule(FORWARD.name, False, signed(), setup.clock()))
    await setup.database.run(rules.switch_rule(FORWARD.name, True, signed(), setup.clock()))
    assert await decides(setup, FORWARD.name)


async def test_a_token_switches_on_again_what_it_switched_off_itself(setup: JobSetup) -> None:
    await written(setup, FORWARD, signed())
    for enabled in (False, True):
        await setup.database.run(rules.switch_rule(FORWARD.name, enabled, by_token(), setup.clock()))
    assert await decides(setup, FORWARD.name)


async def test_a_token_does_not_end_the_shadow_in_which_a_person_put_a_rule(setup: JobSetup) -> None:
    view = await written(setup, replace(FORWARD, shadow=True), signed())
    assert await decides(setup, FORWARD.name), "in shadow it decides, and nothing is done"
    await setup.database.run(rules.edit_rule(view.id, view.version, FORWARD, by_token(), setup.clock()))
    assert not await decides(setup, FORWARD.name)


async def test_a_token_does_not_switch_on_what_a_person_imported_for_review(setup: JobSetup) -> None:
    await written(setup, FORWARD.for_review(), signed())
    await setup.database.run(rules.switch_rule(FORWARD.name, True, by_token(), setup.clock()))
    assert (await stored(setup, FORWARD.name)).awaits_confirmation


async def test_rules_as_code_and_proposals_wait_as_well(setup: JobSetup) -> None:
    plan = make_plan([FORWARD], [])
    await setup.database.run(rule_plans.apply_plan(plan, [new_id()], by_token(), setup.clock()))
    account = (await setup.database.run(await keep_account(setup))).id
    await setup.database.run(proposed(RuleSuggestion(account, DELETE, {"count": 3, "messages": []}), setup))
    [proposal] = await setup.database.run(proposals.list_proposals("open", 5))
    accept = proposals.accept_proposal(proposal.id, new_id(), False, by_token(), setup.clock())
    await setup.database.run(accept)
    assert [each.name for each in await setup.database.run(rules.unconfirmed_rules())] == [FORWARD.name, DELETE.name]


@transaction
def proposed(suggested: RuleSuggestion, setup: JobSetup) -> Script[None]:
    yield from proposals.proposing([suggested], setup.clock())


async def test_a_confirmation_holds_for_what_was_shown(setup: JobSetup) -> None:
    view = await written(setup, FORWARD, by_token())
    await written(setup, replace(FORWARD, parameters={"to": "mallory@example.net"}), by_token())
    with pytest.raises(Conflict, match="changed meanwhile"):
        await confirmed(setup, view)
    assert not await decides(setup, FORWARD.name)


async def test_no_token_confirms(setup: JobSetup) -> None:
    view = await written(setup, FORWARD, by_token())
    confirm = rules.confirm_rule(view.id, view.content_hash, by_token(), setup.clock())
    with pytest.raises(Refused, match="no token may confirm a rule"):
        await setup.database.run(confirm)
    assert (await stored(setup, FORWARD.name)).awaits_confirmation


async def test_confirming_twice_changes_nothing_more(setup: JobSetup) -> None:
    first = await confirmed(setup, await written(setup, FORWARD, by_token()))
    assert await confirmed(setup, first) == first


async def test_content_that_is_changed_behind_our_back_is_not_confirmed(setup: JobSetup) -> None:
    await kept(setup, FORWARD)
    await setup.database.run(tampered('parameters_json = \'{"to": "mallory@example.net"}\''))
    assert not await decides(setup, FORWARD.name)


async def test_rules_from_before_confirmations_decide_until_a_token_changes_them(setup: JobSetup) -> None:
    await kept(setup, FORWARD)
    await setup.database.run(tampered(f"confirmed_hash = '{rules.EARLIER}'"))
    assert await decides(setup, FORWARD.name)
    view = await stored(setup, FORWARD.name)
    moved = replace(FORWARD, priority=5)
    view = await setup.database.run(rules.edit_rule(view.id, view.version, moved, by_token(), setup.clock()))
    assert await decides(setup, FORWARD.name)
    other = replace(FORWARD, parameters={"to": "mallory@example.net"})
    await setup.database.run(rules.edit_rule(view.id, view.version, other, by_token(), setup.clock()))
    assert not await decides(setup, FORWARD.name)


@transaction
def tampered(change: str) -> Script[None]:
    """What somebody with access to the database could do."""
    yield Text(f"UPDATE rules SET {change}")


@pytest.mark.parametrize("enabled_again", [True, False], ids=["a token switched it on again", "it stayed off"])
async def test_what_a_person_switched_off_after_a_backup_is_not_switched_on_by_a_token(
    setup: JobSetup, enabled_again: bool
) -> None:
    view = await written(setup, FORWARD, signed())
    here = await setup.database.run(prohibitions.load_prohibitions())
    off = replace(view, enabled=enabled_again, confirmed_hash=None)
    replaced = replace(here, rules={view.id: off})
    await setup.database.run(prohibitions.begin_paused(replaced, setup.clock(), signed(), setup.clock()))
    assert not await decides(setup, FORWARD.name)
    await setup.database.run(rules.switch_rule(FORWARD.name, True, by_token(), setup.clock()))
    assert (await stored(setup, FORWARD.name)).awaits_confirmation
    assert not await decides(setup, FORWARD.name)


async def test_a_rule_that_is_disabled_by_itself_keeps_its_confirmation(setup: JobSetup) -> None:
    view = await written(setup, FORWARD, signed())
    process = Signature(new_id(), "process:worker", "worker")
    await setup.database.run(rules.disable_rule(view.id, "Label 'x' was deleted", setup.clock(), process))
    await setup.database.run(rules.switch_rule(FORWARD.name, True, by_token(), setup.clock()))
    assert await decides(setup, FORWARD.name)
