"""Labels of a mailbox, kept as they were last seen; and what the user did to messages in the mailbox itself."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from conformance.desk import Desk
from conformance.fault_cases_inbox import ENDPOINT
from conformance.fault_cases_mail import keep_account, store_message
from conformance.mailroom import Letter, Mailroom
from postroom.core.rules.rule import labels_used
from postroom.store.engine.database import Text, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import list_jobs
from postroom.store.labels import SeenLabel, keep_label, list_labels, sync_labels, why_not_created
from postroom.store.mail import keep_account as keep
from postroom.store.mail import load_message
from postroom.store.mail_changes import Change, apply_changes
from postroom.store.rules import NewRule, RuleView, add_rules, list_rules

RECEIPTS, TRAVEL = SeenLabel("L1", "Receipts", "user"), SeenLabel("L2", "Travel", "user")
INBOX = SeenLabel("INBOX", "INBOX", "system")
SECOND = timedelta(seconds=1)


async def _rule(desk: Desk, name: str, conditions: dict[str, Any], action: str = "archive", **more: Any) -> None:
    parameters = more.pop("parameters", {})
    rule = NewRule(new_id(), name, "", conditions, action, parameters, **more)
    await desk.database.run(add_rules([rule], desk.clock()))


async def _rules(desk: Desk) -> dict[str, RuleView]:
    return {rule.name: rule for rule in await desk.database.run(list_rules())}


async def _account(desk: Desk) -> UUID:
    return (await desk.database.run(await keep_account(desk))).id


async def test_labels_are_taken_over_renamed_and_forgotten_as_the_mailbox_shows_them(desk: Desk) -> None:
    account = await _account(desk)
    await desk.database.run(sync_labels(account, [RECEIPTS, TRAVEL], desk.clock()))
    renamed = SeenLabel("L1", "Invoices", "user")
    synced = await desk.database.run(sync_labels(account, [renamed], desk.clock()))
    assert synced.gone == ("Travel",)
    assert [(each.provider_label_id, each.name) for each in await desk.database.run(list_labels(account))] == [
        ("L1", "Invoices")
    ]


async def test_what_the_user_wrote_about_a_label_survives_a_sync(desk: Desk) -> None:
    account = await _account(desk)
    await desk.database.run(sync_labels(account, [RECEIPTS], desk.clock()))

    @transaction
    def describe() -> Any:
        yield Text("UPDATE labels SET description = 'what I paid for'")

    await desk.database.run(describe())
    await desk.database.run(sync_labels(account, [RECEIPTS, TRAVEL], desk.clock()))
    found = {each.name: each.description for each in await desk.database.run(list_labels(account))}
    assert found == {"Receipts": "what I paid for", "Travel": ""}


async def test_rules_that_use_a_deleted_label_are_disabled_with_the_reason_and_kept(desk: Desk) -> None:
    account = await _account(desk)
    await desk.database.run(sync_labels(account, [RECEIPTS, TRAVEL], desk.clock()))
    await _rule(desk, "acts", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    await _rule(desk, "looks", {"not": {"or": [{"label_present": "L1"}]}})
    await _rule(desk, "other label", {"label_present": "L2"})
    await _rule(desk, "no label", {"subject_contains": "Receipts"})
    synced = await desk.database.run(sync_labels(account, [TRAVEL], desk.clock()))
    rules = await _rules(desk)
    assert {name for name, rule in rules.items() if not rule.enabled} == {"acts", "looks"}
    assert set(synced.disabled) == {rules["acts"].id, rules["looks"].id}
    assert "Receipts" in (rules["acts"].disabled_reason or "")
    assert "deleted" in (rules["acts"].disabled_reason or "")


async def test_a_label_that_another_account_still_has_disables_no_rule_of_all(desk: Desk) -> None:
    mine = await _account(desk)
    theirs = (await desk.database.run(keep(new_id(), "gmail", "gmail:user:b@x", "b@x", desk.clock()))).id
    for account in (mine, theirs):
        await desk.database.run(sync_labels(account, [RECEIPTS], desk.clock()))
    await _rule(desk, "all", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    await desk.database.run(sync_labels(mine, [INBOX], desk.clock()))
    assert (await _rules(desk))["all"].enabled
    await desk.database.run(sync_labels(theirs, [INBOX], desk.clock()))
    assert not (await _rules(desk))["all"].enabled


async def test_a_rule_of_one_account_needs_a_label_of_that_account(desk: Desk) -> None:
    mine = await _account(desk)
    theirs = (await desk.database.run(keep(new_id(), "gmail", "gmail:user:b@x", "b@x", desk.clock()))).id
    for account in (mine, theirs):
        await desk.database.run(sync_labels(account, [RECEIPTS], desk.clock()))
    for name, account in (("mine", mine), ("theirs", theirs)):
        scope = {"scope": "account", "scope_ref": str(account)}
        await _rule(desk, name, {"has_attachment": True}, "apply_label", parameters={"label": "receipts"}, **scope)
        await _rule(desk, f"{name} by id", {"label_present": "L1"}, **scope)
    await _rule(desk, "of all by id", {"label_present": "L1"})
    await desk.database.run(sync_labels(mine, [INBOX], desk.clock()))
    enabled = {name for name, rule in (await _rules(desk)).items() if rule.enabled}
    assert enabled == {"theirs", "theirs by id", "of all by id"}


async def test_a_renamed_label_is_lost_under_its_old_name_and_rules_that_use_its_id_go_on(desk: Desk) -> None:
    account = await _account(desk)
    await desk.database.run(sync_labels(account, [RECEIPTS, TRAVEL], desk.clock()))
    await _rule(desk, "by name", {"label_present": "Receipts"})
    await _rule(desk, "by id", {"label_present": "L1"})
    await _rule(desk, "in other letters", {"label_present": "Travel"})
    renamed = [SeenLabel("L1", "Invoices", "user"), SeenLabel("L2", "TRAVEL", "user")]
    await desk.database.run(sync_labels(account, renamed, desk.clock()))
    rules = await _rules(desk)
    assert {name for name, rule in rules.items() if not rule.enabled} == {"by name"}
    assert rules["by name"].disabled_reason == "the label 'Receipts' was renamed to 'Invoices' in Gmail"


async def test_rules_of_another_account_are_left_alone(desk: Desk) -> None:
    account = await _account(desk)
    await desk.database.run(sync_labels(account, [RECEIPTS], desk.clock()))
    scope = {"scope": "account", "scope_ref": str(new_id())}
    await _rule(desk, "theirs", {"label_present": "L1"}, **scope)
    await desk.database.run(sync_labels(account, [INBOX], desk.clock()))
    assert (await _rules(desk))["theirs"].enabled


@pytest.mark.parametrize(
    ("conditions", "parameters", "used"),
    [
        ({"label_present": "A"}, {}, {"A"}),
        ({"and": [{"not": {"label_present": "A"}}, {"or": [{"label_present": "B"}]}]}, {"label": "C"}, {"A", "B", "C"}),
        ({"label_present": 5}, {"label": None}, set()),
        ("nonsense", {}, set()),
    ],
)
def test_the_labels_a_rule_uses_are_found_wherever_they_stand(
    conditions: object, parameters: dict[str, Any], used: set[str]
) -> None:
    assert labels_used(conditions, parameters) == used


async def _stored(desk: Desk) -> list[tuple[Any, ...]]:
    @transaction
    def read() -> Any:
        rows = yield sql("select_messages_of", ENDPOINT, ["m1", "m2"])
        return [(provider_id, labels, deleted_at) for _, provider_id, labels, deleted_at, _ in rows]

    return await desk.database.run(read())


async def test_labels_put_on_and_taken_off_in_the_mailbox_reach_the_stored_message_in_their_order(desk: Desk) -> None:
    await desk.database.run(await store_message(desk))
    changes = [
        Change("m1", labels_added=frozenset({"STARRED"}), labels_removed=frozenset({"INBOX"})),
        Change("m1", labels_removed=frozenset({"STARRED"})),
        Change("unknown", deleted=True),
    ]
    assert await desk.database.run(apply_changes(ENDPOINT, changes, desk.clock())) == 1
    assert await _stored(desk) == [("m1", "[]", None)]
    assert await desk.database.run(apply_changes(ENDPOINT, changes, desk.clock())) == 0, "told twice"


async def test_a_message_deleted_in_the_mailbox_is_marked_once(desk: Desk) -> None:
    await desk.database.run(await store_message(desk))
    gone = [Change("m1", deleted=True)]
    assert await desk.database.run(apply_changes(ENDPOINT, gone, desk.clock())) == 1
    ((_, _, first),) = await _stored(desk)
    assert first is not None
    desk.clock.forward(60)
    assert await desk.database.run(apply_changes(ENDPOINT, gone, desk.clock())) == 0
    assert (await _stored(desk))[0][2] == first


async def test_changes_of_one_mailbox_touch_no_message_of_another(desk: Desk) -> None:
    await desk.database.run(await store_message(desk))
    assert await desk.database.run(apply_changes("gmail:user:other@x", [Change("m1", deleted=True)], desk.clock())) == 0


async def test_an_answer_without_any_label_forgets_none_and_disables_no_rule(desk: Desk) -> None:
    account = await _account(desk)
    await desk.database.run(sync_labels(account, [INBOX, RECEIPTS], desk.clock()))
    await _rule(desk, "receipts", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    synced = await desk.database.run(sync_labels(account, [], desk.clock()))
    assert (synced.gone, synced.disabled) == ((), ())
    assert len(await desk.database.run(list_labels(account))) == 2
    assert (await _rules(desk))["receipts"].enabled


async def test_a_list_that_was_asked_for_before_a_label_was_made_does_not_take_it_for_deleted(desk: Desk) -> None:
    account, asked_at = await _account(desk), desk.clock()
    await desk.database.run(sync_labels(account, [INBOX], asked_at))
    made_at = desk.clock.forward(1)
    await desk.database.run(keep_label(account, RECEIPTS, made_at))
    await _rule(desk, "receipts", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    synced = await desk.database.run(sync_labels(account, [INBOX], desk.clock.forward(1), asked_at))
    assert (synced.gone, synced.disabled) == ((), ())
    later = desk.clock.forward(1)
    assert (await desk.database.run(sync_labels(account, [INBOX], later, later))).gone == ("Receipts",)
    assert (await _rules(desk))["receipts"].disabled_reason == "the label 'Receipts' was deleted in Gmail"


@pytest.mark.parametrize(("renamed", "reason"), [(False, "was deleted"), (True, "was renamed to 'Bills'")])
async def test_a_label_that_was_lost_is_created_only_for_a_later_word(desk: Desk, renamed: bool, reason: str) -> None:
    account, before = await _account(desk), desk.clock()
    await desk.database.run(sync_labels(account, [INBOX, RECEIPTS], before))
    after = [SeenLabel("L1", "Bills", "user")] if renamed else []
    await desk.database.run(sync_labels(account, [INBOX, *after], desk.clock.forward(1)))
    for word in ("Receipts", "RECEIPTS") if renamed else ("Receipts", "RECEIPTS", "L1"):
        for asked_at in (None, before, desk.clock()):
            assert await desk.database.run(why_not_created(account, word, asked_at)) == reason
        assert await desk.database.run(why_not_created(account, word, desk.clock() + SECOND)) is None
    assert await desk.database.run(why_not_created(account, "Travel", before)) is None


async def test_a_label_that_is_back_is_not_lost_any_more(desk: Desk) -> None:
    account, before = await _account(desk), desk.clock()
    for seen in ([INBOX, RECEIPTS], [INBOX], [INBOX, SeenLabel("L9", "receipts", "user")]):
        await desk.database.run(sync_labels(account, seen, desk.clock.forward(1)))
    assert await desk.database.run(why_not_created(account, "Receipts", before)) is None


async def test_an_unknown_label_on_a_message_has_the_labels_looked_at_once(desk: Desk) -> None:
    await desk.database.run(await store_message(desk))
    account = (await desk.database.run(await keep_account(desk))).id
    changes = [Change("m1", labels_added=frozenset({"Label_7", "STARRED"}))]
    await desk.database.run(apply_changes(ENDPOINT, changes, desk.clock()))
    more = [Change("m1", labels_added=frozenset({"Label_8"}))]
    await desk.database.run(apply_changes(ENDPOINT, more, desk.clock()))
    asked = await desk.database.run(list_jobs(state=None, type="labels.sync.gmail", limit=10))
    assert [json.loads(each.payload_json) for each in asked] == [{"account_id": str(account)}]


async def test_known_labels_and_those_of_gmail_itself_ask_for_nothing(desk: Desk) -> None:
    await desk.database.run(await store_message(desk))
    account = (await desk.database.run(await keep_account(desk))).id
    await desk.database.run(sync_labels(account, [INBOX, RECEIPTS], desk.clock()))
    changes = [Change("m1", labels_added=frozenset({"L1", "YELLOW_STAR", "CATEGORY_PERSONAL"}))]
    await desk.database.run(apply_changes(ENDPOINT, changes, desk.clock()))
    assert await desk.database.run(list_jobs(state=None, type="labels.sync.gmail", limit=10)) == []


async def test_a_stored_message_has_the_names_of_its_own_labels_and_of_no_others(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    await room.deliver(Letter("1", labels=frozenset({"INBOX", "Label_1"})))
    message = await desk.database.run(load_message(room.ids["1"]))
    assert message.facts.labels == {"INBOX", "inbox", "Label_1", "receipts"}


@pytest.mark.parametrize(("label", "asked"), [("Label_1", 0), ("Label_9", 1), ("CATEGORY_FORUMS", 0)])
async def test_new_mail_with_a_label_that_nobody_knows_has_the_labels_looked_at(
    desk: Desk, label: str, asked: int
) -> None:
    room = await Mailroom(desk).opened()
    await room.deliver(Letter("1", labels=frozenset({"INBOX", label})))
    assert len(await desk.database.run(list_jobs(state=None, type="labels.sync.gmail", limit=10))) == asked
