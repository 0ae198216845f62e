"""Labels of a mailbox as they were last seen, and what the user did to messages in the mailbox."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.rule import labels_used
from postroom.store.engine.database import Text, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs.jobs import list_jobs
from postroom.store.mail.labels import SeenLabel, keep_label, list_labels, sync_labels, why_not_created
from postroom.store.mail.mail import keep_account as keep
from postroom.store.mail.mail import load_message
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.rules.rules import RuleView, add_rules, list_rules
from support.store.fault_cases_inbox import ENDPOINT
from support.store.fault_cases_mail import keep_account, store_message
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

RECEIPTS, TRAVEL = SeenLabel("L1", "Receipts", "user"), SeenLabel("L2", "Travel", "user")
INBOX = SeenLabel("INBOX", "INBOX", "system")
SECOND = timedelta(seconds=1)


async def _rule(setup: JobSetup, name: str, conditions: dict[str, Any], action: Any = "archive", **more: Any) -> None:
    parameters = more.pop("parameters", {})
    rule = (new_id(), RuleDraft(name, conditions, action, parameters, **more))
    await setup.database.run(add_rules([rule], setup.clock()))


async def _rules(setup: JobSetup) -> dict[str, RuleView]:
    return {rule.name: rule for rule in await setup.database.run(list_rules())}


async def _account(setup: JobSetup) -> UUID:
    return (await setup.database.run(await keep_account(setup))).id


async def test_labels_are_taken_over_renamed_and_forgotten_as_the_mailbox_shows_them(setup: JobSetup) -> None:
    account = await _account(setup)
    await setup.database.run(sync_labels(account, [RECEIPTS, TRAVEL], setup.clock()))
    renamed = SeenLabel("L1", "Invoices", "user")
    synced = await setup.database.run(sync_labels(account, [renamed], setup.clock()))
    assert synced.gone == ("Travel",)
    assert [(each.provider_label_id, each.name) for each in await setup.database.run(list_labels(account))] == [
        ("L1", "Invoices")
    ]


async def test_what_the_user_wrote_about_a_label_survives_a_sync(setup: JobSetup) -> None:
    account = await _account(setup)
    await setup.database.run(sync_labels(account, [RECEIPTS], setup.clock()))

    @transaction
    def describe() -> Any:
        yield Text("UPDATE labels SET description = 'what I paid for'")

    await setup.database.run(describe())
    await setup.database.run(sync_labels(account, [RECEIPTS, TRAVEL], setup.clock()))
    found = {each.name: each.description for each in await setup.database.run(list_labels(account))}
    assert found == {"Receipts": "what I paid for", "Travel": ""}


async def test_rules_that_use_a_deleted_label_are_disabled_with_the_reason_and_kept(setup: JobSetup) -> None:
    account = await _account(setup)
    await setup.database.run(sync_labels(account, [RECEIPTS, TRAVEL], setup.clock()))
    await _rule(setup, "acts", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    await _rule(setup, "looks", {"not": {"or": [{"label_present": "L1"}]}})
    await _rule(setup, "other label", {"label_present": "L2"})
    await _rule(setup, "no label", {"subject_contains": "Receipts"})
    synced = await setup.database.run(sync_labels(account, [TRAVEL], setup.clock()))
    rules = await _rules(setup)
    assert {name for name, rule in rules.items() if not rule.enabled} == {"acts", "looks"}
    assert set(synced.disabled) == {rules["acts"].id, rules["looks"].id}
    assert "Receipts" in (rules["acts"].disabled_reason or "")
    assert "deleted" in (rules["acts"].disabled_reason or "")


async def test_a_label_that_another_account_still_has_disables_no_rule_of_all(setup: JobSetup) -> None:
    mine = await _account(setup)
    theirs = (await setup.database.run(keep(new_id(), "gmail", "gmail:user:b@x", "b@x", setup.clock()))).id
    for account in (mine, theirs):
        await setup.database.run(sync_labels(account, [RECEIPTS], setup.clock()))
    await _rule(setup, "all", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    await setup.database.run(sync_labels(mine, [INBOX], setup.clock()))
    assert (await _rules(setup))["all"].enabled
    await setup.database.run(sync_labels(theirs, [INBOX], setup.clock()))
    assert not (await _rules(setup))["all"].enabled


async def test_a_rule_of_one_account_needs_a_label_of_that_account(setup: JobSetup) -> None:
    mine = await _account(setup)
    theirs = (await setup.database.run(keep(new_id(), "gmail", "gmail:user:b@x", "b@x", setup.clock()))).id
    for account in (mine, theirs):
        await setup.database.run(sync_labels(account, [RECEIPTS], setup.clock()))
    for name, account in (("mine", mine), ("theirs", theirs)):
        scope = {"scope": "account", "scope_ref": str(account)}
        await _rule(setup, name, {"has_attachment": True}, "apply_label", parameters={"label": "receipts"}, **scope)
        await _rule(setup, f"{name} by id", {"label_present": "L1"}, **scope)
    await _rule(setup, "of all by id", {"label_present": "L1"})
    await setup.database.run(sync_labels(mine, [INBOX], setup.clock()))
    enabled = {name for name, rule in (await _rules(setup)).items() if rule.enabled}
    assert enabled == {"theirs", "theirs by id", "of all by id"}


async def test_a_renamed_label_is_lost_under_its_old_name_and_rules_that_use_its_id_go_on(setup: JobSetup) -> None:
    account = await _account(setup)
    await setup.database.run(sync_labels(account, [RECEIPTS, TRAVEL], setup.clock()))
    await _rule(setup, "by name", {"label_present": "Receipts"})
    await _rule(setup, "by id", {"label_present": "L1"})
    await _rule(setup, "in other letters", {"label_present": "Travel"})
    renamed = [SeenLabel("L1", "Invoices", "user"), SeenLabel("L2", "TRAVEL", "user")]
    await setup.database.run(sync_labels(account, renamed, setup.clock()))
    rules = await _rules(setup)
    assert {name for name, rule in rules.items() if not rule.enabled} == {"by name"}
    assert rules["by name"].disabled_reason == "Label 'Receipts' was renamed to 'Invoices' in Gmail"


async def test_rules_of_another_account_are_left_alone(setup: JobSetup) -> None:
    account = await _account(setup)
    await setup.database.run(sync_labels(account, [RECEIPTS], setup.clock()))
    scope = {"scope": "account", "scope_ref": str(new_id())}
    await _rule(setup, "theirs", {"label_present": "L1"}, **scope)
    await setup.database.run(sync_labels(account, [INBOX], setup.clock()))
    assert (await _rules(setup))["theirs"].enabled


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


async def _stored(setup: JobSetup) -> list[tuple[Any, ...]]:
    @transaction
    def read() -> Any:
        rows = yield sql("select_messages_of", ENDPOINT, ["m1", "m2"])
        return [(provider_id, labels, deleted_at) for _, provider_id, labels, deleted_at, _ in rows]

    return await setup.database.run(read())


async def test_labels_put_on_and_taken_off_in_the_mailbox_reach_the_stored_message_in_their_order(
    setup: JobSetup,
) -> None:
    await setup.database.run(await store_message(setup))
    changes = [
        Change("m1", labels_added=frozenset({"STARRED"}), labels_removed=frozenset({"INBOX"})),
        Change("m1", labels_removed=frozenset({"STARRED"})),
        Change("unknown", deleted=True),
    ]
    assert await setup.database.run(apply_changes(ENDPOINT, changes, setup.clock())) == 1
    assert await _stored(setup) == [("m1", "[]", None)]
    assert await setup.database.run(apply_changes(ENDPOINT, changes, setup.clock())) == 0, "told twice"


async def test_a_message_deleted_in_the_mailbox_is_marked_once(setup: JobSetup) -> None:
    await setup.database.run(await store_message(setup))
    gone = [Change("m1", deleted=True)]
    assert await setup.database.run(apply_changes(ENDPOINT, gone, setup.clock())) == 1
    ((_, _, first),) = await _stored(setup)
    assert first is not None
    setup.clock.forward(60)
    assert await setup.database.run(apply_changes(ENDPOINT, gone, setup.clock())) == 0
    assert (await _stored(setup))[0][2] == first


async def test_changes_of_one_mailbox_touch_no_message_of_another(setup: JobSetup) -> None:
    await setup.database.run(await store_message(setup))
    assert (
        await setup.database.run(apply_changes("gmail:user:other@x", [Change("m1", deleted=True)], setup.clock())) == 0
    )


async def test_an_answer_without_any_label_forgets_none_and_disables_no_rule(setup: JobSetup) -> None:
    account = await _account(setup)
    await setup.database.run(sync_labels(account, [INBOX, RECEIPTS], setup.clock()))
    await _rule(setup, "receipts", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    synced = await setup.database.run(sync_labels(account, [], setup.clock()))
    assert (synced.gone, synced.disabled) == ((), ())
    assert len(await setup.database.run(list_labels(account))) == 2
    assert (await _rules(setup))["receipts"].enabled


async def test_a_list_that_was_asked_for_before_a_label_was_made_does_not_take_it_for_deleted(setup: JobSetup) -> None:
    account, asked_at = await _account(setup), setup.clock()
    await setup.database.run(sync_labels(account, [INBOX], asked_at))
    made_at = setup.clock.forward(1)
    await setup.database.run(keep_label(account, RECEIPTS, made_at))
    await _rule(setup, "receipts", {"subject_contains": "x"}, "apply_label", parameters={"label": "Receipts"})
    synced = await setup.database.run(sync_labels(account, [INBOX], setup.clock.forward(1), asked_at))
    assert (synced.gone, synced.disabled) == ((), ())
    later = setup.clock.forward(1)
    assert (await setup.database.run(sync_labels(account, [INBOX], later, later))).gone == ("Receipts",)
    assert (await _rules(setup))["receipts"].disabled_reason == "Label 'Receipts' was deleted from Gmail"


@pytest.mark.parametrize(
    ("renamed", "reason"), [(False, "was deleted from Gmail"), (True, "was renamed to 'Bills' in Gmail")]
)
async def test_a_label_that_was_lost_is_created_only_for_a_later_word(
    setup: JobSetup, renamed: bool, reason: str
) -> None:
    account, before = await _account(setup), setup.clock()
    await setup.database.run(sync_labels(account, [INBOX, RECEIPTS], before))
    after = [SeenLabel("L1", "Bills", "user")] if renamed else []
    await setup.database.run(sync_labels(account, [INBOX, *after], setup.clock.forward(1)))
    for word in ("Receipts", "RECEIPTS") if renamed else ("Receipts", "RECEIPTS", "L1"):
        for asked_at in (None, before, setup.clock()):
            assert await setup.database.run(why_not_created(account, word, asked_at)) == reason
        assert await setup.database.run(why_not_created(account, word, setup.clock() + SECOND)) is None
    assert await setup.database.run(why_not_created(account, "Travel", before)) is None


async def test_the_reason_does_not_speak_of_gmail_in_another_mailbox(setup: JobSetup) -> None:
    account = await setup.database.run(keep(new_id(), "imap", "imap:x", "me@example.com", setup.clock()))
    await setup.database.run(sync_labels(account.id, [INBOX, RECEIPTS], setup.clock()))
    await setup.database.run(sync_labels(account.id, [INBOX], setup.clock.forward(1)))
    assert await setup.database.run(why_not_created(account.id, "Receipts", None)) == "was deleted from the mailbox"


async def test_a_label_that_is_back_is_not_lost_any_more(setup: JobSetup) -> None:
    account, before = await _account(setup), setup.clock()
    for seen in ([INBOX, RECEIPTS], [INBOX], [INBOX, SeenLabel("L9", "receipts", "user")]):
        await setup.database.run(sync_labels(account, seen, setup.clock.forward(1)))
    assert await setup.database.run(why_not_created(account, "Receipts", before)) is None


async def test_an_unknown_label_on_a_message_has_the_labels_looked_at_once(setup: JobSetup) -> None:
    await setup.database.run(await store_message(setup))
    account = (await setup.database.run(await keep_account(setup))).id
    changes = [Change("m1", labels_added=frozenset({"Label_7", "STARRED"}))]
    await setup.database.run(apply_changes(ENDPOINT, changes, setup.clock()))
    more = [Change("m1", labels_added=frozenset({"Label_8"}))]
    await setup.database.run(apply_changes(ENDPOINT, more, setup.clock()))
    asked = await setup.database.run(list_jobs(state=None, type="labels.sync.gmail", limit=10))
    assert [json.loads(each.payload_json) for each in asked] == [{"account_id": str(account)}]


async def test_known_labels_and_those_of_gmail_itself_ask_for_nothing(setup: JobSetup) -> None:
    await setup.database.run(await store_message(setup))
    account = (await setup.database.run(await keep_account(setup))).id
    await setup.database.run(sync_labels(account, [INBOX, RECEIPTS], setup.clock()))
    changes = [Change("m1", labels_added=frozenset({"L1", "YELLOW_STAR", "CATEGORY_PERSONAL"}))]
    await setup.database.run(apply_changes(ENDPOINT, changes, setup.clock()))
    assert await setup.database.run(list_jobs(state=None, type="labels.sync.gmail", limit=10)) == []


async def test_a_stored_message_has_the_names_of_its_own_labels_and_of_no_others(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.deliver(Sample("1", labels=frozenset({"INBOX", "Label_1"})))
    message = await setup.database.run(load_message(mail_setup.ids["1"]))
    assert message.facts.labels == {"INBOX", "inbox", "Label_1", "receipts"}


@pytest.mark.parametrize(("label", "asked"), [("Label_1", 0), ("Label_9", 1), ("CATEGORY_FORUMS", 0)])
async def test_new_mail_with_a_label_that_nobody_knows_has_the_labels_looked_at(
    setup: JobSetup, label: str, asked: int
) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.deliver(Sample("1", labels=frozenset({"INBOX", label})))
    assert len(await setup.database.run(list_jobs(state=None, type="labels.sync.gmail", limit=10))) == asked
