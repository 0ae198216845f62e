"""Several actions as one in a real mailbox: done together, undone together, and told when they end halfway."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from email import message_from_bytes, policy
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.steps import Step, check_steps, combined
from postroom.core.errors import BadInput
from postroom.core.jobs.types import CATALOGUE
from postroom.core.rules.draft import RuleDraft
from postroom.store.actions import actions
from postroom.store.actions.decisions import decisions_about
from postroom.store.actions.protection import protect
from postroom.store.actions.undos import undoable
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import undo_job
from postroom.store.jobs.jobs import retry_job
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail import load_message
from postroom.store.rules.rules import add_rules, edit_rule, load_rule
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.approvals import Approvals
from postroom.triage.act.undo_requests import undo_these
from postroom_sandbox.faults import Fault
from support.message_setup import MessageSetup, message_id_of, message_setup, until_job_is
from support.product import raw_mail
from support.scale import scale

SEQUENCES = scale(20, 2_000)
PLACES = ("archive", "trash", "restore", "snooze")
OTHERS = ("apply_label", "remove_label", "mark_read", "mark_unread", "star", "unstar")


@pytest.fixture
async def setup(database: Database, tmp_path: Path) -> AsyncGenerator[MessageSetup]:
    async with message_setup(database, tmp_path) as opened:
        yield opened


def label(name: str, action: Any = "apply_label") -> Step:
    return Step(action, {"label": name})


async def do(setup: MessageSetup, *steps: Step) -> actions.ActionView:
    action_type, parameters = combined(steps)
    return await setup.do(action_type, **parameters)


def sent(setup: MessageSetup) -> list[str]:
    found = setup.product.mailbox.search(label_ids=["SENT"], include_spam_trash=True)
    return [str(message_from_bytes(each.mail.raw, policy=policy.default)["To"]) for each in found]


async def test_labels_are_changed_in_one_call_and_put_back_in_one(setup: MessageSetup) -> None:
    before, seen = setup.labels, list[tuple[str, int]]()
    setup.product.mailbox.observers.append(lambda change: seen.append((change.kind, len(change.changed))))
    done = await do(setup, label("Receipts"), Step("archive"), Step("mark_read"))
    # One call adds one label and removes two; a call for each would be seen as three changes.
    assert seen == [("labelAdded", 1), ("labelRemoved", 2)]
    assert done.state == "completed", done.error
    assert done.undo_hint is not None
    assert done.undo_hint["inverse_parameters"]["add_labels"] == ["INBOX", "UNREAD"]
    assert not {"INBOX", "UNREAD"} & setup.labels
    assert len(setup.labels - before) == 1
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before
    assert seen[2:] == [("labelAdded", 2), ("labelRemoved", 1)]


async def test_one_undo_puts_a_labelled_message_back_out_of_the_trash(setup: MessageSetup) -> None:
    before = setup.labels
    done = await do(setup, label("Junk"), Step("trash"))
    assert "TRASH" in setup.labels
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before


async def test_an_undo_of_several_keeps_what_the_user_changed_meanwhile(setup: MessageSetup) -> None:
    done = await do(setup, label("Receipts"), Step("archive"), Step("star"))
    receipts = setup.product.mailbox.labels.named("Receipts")
    assert receipts is not None
    setup.product.mailbox.modify(setup.gmail_id, add=["IMPORTANT"], remove=["STARRED"])
    assert (await setup.undo(done.id)).undone == "completed"
    assert {"INBOX", "IMPORTANT"} <= setup.labels
    assert not {"STARRED", receipts.id} & setup.labels


async def test_a_label_that_was_deleted_keeps_nothing_else_from_being_put_back(setup: MessageSetup) -> None:
    before, mailbox = setup.labels, setup.product.mailbox
    label_id = mailbox.labels.create("Gone Soon", {}).id
    mailbox.modify(setup.gmail_id, add=[label_id])
    done = await do(setup, label("Gone Soon", "remove_label"), Step("archive"), Step("mark_read"))
    mailbox.delete_label(label_id)
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before


async def test_a_label_that_cannot_be_removed_fails_the_whole_before_anything_is_changed(setup: MessageSetup) -> None:
    before = setup.labels
    done = await do(setup, label("Receipts"), label("Never Existed", "remove_label"), Step("archive"))
    assert done.state == "failed"
    assert "Never Existed" in (done.error or "")
    assert setup.labels == before


async def test_a_failure_in_the_middle_is_told_retried_from_there_and_can_be_undone(setup: MessageSetup) -> None:
    before = setup.labels
    setup.product.emulator.faults.order(Fault(403, "forbidden", path="/trash", times=1))
    done = await do(setup, label("Junk"), Step("trash"))
    assert done.state == "failed"
    assert done.error
    assert len(setup.labels - before) == 1, "the label is on, the trash was refused"
    job = next(
        each
        for each in await setup.database.run(jobs.list_jobs(state=None, type="action.gmail", limit=10))
        if str(done.id) in each.payload_json
    )
    await until_job_is(setup.database, job.id, lambda view: view.state == "failed")
    await setup.database.run(retry_job(job.id, wall_clock()))
    again = await setup.until(done.id, lambda view: view.state == "completed")
    assert "TRASH" in setup.labels
    assert (await setup.undo(again.id)).undone == "completed"
    assert setup.labels == before


async def test_what_was_done_before_the_failure_can_be_undone_without_a_retry(setup: MessageSetup) -> None:
    before = setup.labels
    setup.product.emulator.faults.order(Fault(403, "forbidden", path="/trash", times=1))
    done = await do(setup, label("Junk"), Step("star"), Step("trash"))
    assert (done.state, "STARRED" in setup.labels) == ("failed", True)
    assert [each.id for each in await setup.database.run(undoable(10))] == [done.id], "with its rule, or its hour"
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before


async def test_an_undo_of_what_was_refused_keeps_what_the_user_does_afterwards(setup: MessageSetup) -> None:
    setup.product.emulator.faults.order(Fault(403, "forbidden", path="/modify", times=1))
    done = await do(setup, Step("star"), Step("archive"))
    assert (done.state, "INBOX" in setup.labels) == ("failed", True)
    setup.product.mailbox.modify(setup.gmail_id, add=["STARRED"], remove=["INBOX"])
    assert await setup.database.run(undoable(10)) == [], "nothing was done"
    job = undo_job(CATALOGUE, done.account_id, (done.id,))
    await setup.database.run(jobs.enqueue_many([job], wall_clock()))
    ended = await until_job_is(setup.database, job.id, lambda view: view.state == "failed")
    assert "it changed nothing" in (ended.last_error or "")
    assert ("STARRED" in setup.labels, "INBOX" in setup.labels) == (True, False)


async def test_an_undo_of_what_a_protection_stopped_keeps_what_the_user_does_afterwards(setup: MessageSetup) -> None:
    mailbox = setup.product.mailbox
    legal = mailbox.labels.create("Legal", {}).id
    account = (await setup.database.run(load_message(setup.id))).account_id
    seen = [SeenLabel(each.id, each.name, each.type) for each in mailbox.labels.all()]
    await setup.database.run(sync_labels(account, seen, wall_clock()))
    await setup.database.run(protect("label", "Legal", "", setup.signed(), wall_clock()))
    mailbox.modify(setup.gmail_id, add=[legal])
    done = await do(setup, Step("star"), Step("archive"))
    assert (done.state, "INBOX" in setup.labels) == ("canceled", True)
    mailbox.modify(setup.gmail_id, add=["STARRED"], remove=["INBOX"])
    assert await setup.database.run(undoable(10)) == [], "nothing was done"


async def _ended_unread(setup: MessageSetup) -> actions.ActionView:
    """Star and archive are done, but the answer is lost, and from then on the mailbox refuses everything."""
    faults = setup.product.emulator.faults

    def refuse(_change: object) -> None:
        setup.product.mailbox.observers.remove(refuse)
        faults.order(Fault(403, "forbidden", path="/modify", times=1))
        faults.order(Fault(403, "forbidden", path=f"/messages/{setup.gmail_id}", times=1))

    setup.product.mailbox.observers.append(refuse)
    faults.order(Fault(kind="drop_reply", path="/modify", times=1))
    done = await do(setup, Step("star"), Step("archive"))
    assert (done.state, "STARRED" in setup.labels, "INBOX" in setup.labels) == ("failed", True, False)
    assert done.undo_hint is not None
    assert done.undo_hint.get("planned"), "the mailbox could be read, and the test shows nothing"
    return done


async def test_what_was_done_in_a_mailbox_that_could_not_be_read_then_is_undone_as_a_whole(setup: MessageSetup) -> None:
    before = setup.labels
    done = await _ended_unread(setup)
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before


async def test_what_the_user_may_have_done_is_left_where_the_mailbox_could_not_be_read(setup: MessageSetup) -> None:
    done = await _ended_unread(setup)
    setup.product.mailbox.modify(setup.gmail_id, add=["INBOX"])
    now = setup.labels
    job = undo_job(CATALOGUE, done.account_id, (done.id,))
    await setup.database.run(jobs.enqueue_many([job], wall_clock()))
    ended = await until_job_is(setup.database, job.id, lambda view: view.state == "failed")
    assert "nothing was changed" in (ended.last_error or "")
    assert setup.labels == now


async def test_what_was_undone_is_not_begun_again_by_a_retry_of_its_job(setup: MessageSetup) -> None:
    before = setup.labels
    setup.product.emulator.faults.order(Fault(403, "forbidden", path="/trash", times=1))
    done = await do(setup, label("Junk"), Step("trash"))
    assert (await setup.undo(done.id)).undone == "completed"
    job = next(
        each
        for each in await setup.database.run(jobs.list_jobs(state="failed", type="action.gmail", limit=10))
        if str(done.id) in each.payload_json
    )
    await setup.database.run(retry_job(job.id, wall_clock()))
    ended = await until_job_is(setup.database, job.id, lambda view: view.state in ("failed", "completed"))
    assert "undone" in (ended.last_error or "")
    assert setup.labels == before, "it could never be undone again"


async def test_mail_is_sent_once_after_the_labels_and_stays_sent_when_they_are_undone(setup: MessageSetup) -> None:
    before = setup.labels
    done = await do(setup, label("Sent on"), Step("archive"), Step("forward", {"to": "bea@example.org"}))
    assert done.state == "completed", done.error
    assert sent(setup) == ["bea@example.org"]
    assert "INBOX" not in setup.labels
    assert done.undo_hint is not None
    assert done.undo_hint["stays_sent"] is True
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before
    assert len(sent(setup)) == 1


async def test_a_mail_that_cannot_be_sent_leaves_a_part_that_can_be_undone(setup: MessageSetup) -> None:
    before = setup.labels
    setup.product.emulator.faults.order(Fault(400, "invalidArgument", path="/drafts", times=50))
    done = await do(setup, Step("archive"), Step("forward", {"to": "bea@example.org"}))
    assert done.state == "failed"
    assert "INBOX" not in setup.labels
    assert [each.id for each in await setup.database.run(undoable(10))] == [done.id]
    assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before
    assert sent(setup) == []


async def test_deleting_last_of_several_is_for_good(setup: MessageSetup) -> None:
    done = await do(setup, Step("mark_read"), Step("delete"))
    assert done.state == "completed"
    assert setup.gmail_id not in setup.product.mailbox
    job = undo_job(CATALOGUE, done.account_id, (done.id,))
    await setup.database.run(jobs.enqueue_many([job], wall_clock()))
    ended = await until_job_is(setup.database, job.id, lambda view: view.state == "failed")
    assert "cannot be undone" in (ended.last_error or "")


async def test_a_snooze_among_several_counts_as_one_and_its_undo_leaves_an_earlier_one(setup: MessageSetup) -> None:
    done = await do(setup, label("Later"), Step("snooze", {"amount": 3, "units": "hours"}))
    later = setup.product.mailbox.labels.named("Later")
    assert later is not None
    assert done.undo_hint is not None
    assert {later.id, done.undo_hint["snooze_label_id"]} <= setup.labels
    assert "INBOX" not in setup.labels
    assert await setup.database.run(actions.is_snoozed_again(done.id, wall_clock())) is False
    before = setup.labels
    again = await do(setup, Step("mark_read"), Step("snooze", {"amount": 5, "units": "hours"}))
    assert await setup.database.run(actions.is_snoozed_again(done.id, wall_clock())) is True
    assert (await setup.undo(again.id)).undone == "completed"
    assert setup.labels == before


async def test_rules_that_continue_act_together_and_each_is_named(setup: MessageSetup) -> None:
    about = {"subject_contains": "together"}
    drafts = [
        RuleDraft("Label it", about, "apply_label", {"label": "Receipts"}, priority=1, continues=True),
        RuleDraft("Not this", {"subject_contains": "other"}, "trash", {}, priority=2),
        RuleDraft("File it", about, *combined([Step("archive"), Step("mark_read")]), priority=3),
        RuleDraft("Never reached", about, "star", {}, priority=4),
    ]
    await setup.database.run(add_rules([(new_id(), draft) for draft in drafts], wall_clock()))
    message = setup.product.mailbox.deliver(raw_mail("All together"))
    await setup.product.live.sync()
    await setup.product.settled(3)
    message_id = await message_id_of(setup.database, "All together")
    (view,) = await setup.database.run(decisions_about(message_id))
    assert (view.decision.rule_name, [name for _, name in view.decision.other_rules]) == ("Label it", ["File it"])
    (planned,) = await setup.database.run(actions.list_actions(10, message_id=message_id))
    done = await setup.ended(planned.id)
    assert done.action_type == "several"
    labels = setup.product.mailbox.get(message.id).labels
    assert not {"INBOX", "UNREAD", "STARRED"} & labels
    assert [each.id for each in await setup.database.run(undoable(10, rule_name="File it"))] == [done.id]


async def test_a_rule_is_undone_while_it_still_acts_and_every_message_is_as_it_came(setup: MessageSetup) -> None:
    several = combined([label("Receipts"), Step("archive"), Step("mark_read")])
    await setup.database.run(
        add_rules([(new_id(), RuleDraft("File it", {"subject_contains": "bill"}, *several))], wall_clock())
    )
    mailbox, came = setup.product.mailbox, dict[str, frozenset[str]]()

    async def undo_all() -> None:
        chosen = await setup.database.run(undoable(100, rule_name="File it"))
        await undo_these(setup.database, CATALOGUE, chosen, wall_clock)

    async def arrive(first: int) -> None:
        for number in range(first, first + 3):
            message = mailbox.deliver(raw_mail(f"bill {number}"))
            came[message.id] = message.labels
        await setup.product.live.sync()

    await arrive(0)
    await setup.product.until_decided(2 + len(came))
    await asyncio.gather(undo_all(), arrive(10), undo_all())
    await setup.product.until_decided(2 + len(came))
    done = [each for each in await setup.database.run(actions.list_actions(100)) if each.rule_name == "File it"]
    assert len(done) == len(came)
    for each in done:
        await setup.ended(each.id)
    await asyncio.gather(undo_all(), undo_all())
    for each in done:
        await setup.until(each.id, lambda view: view.undone == "completed")
    assert {id: mailbox.get(id).labels for id in came} == came


async def _waiting(setup: MessageSetup, subject: str) -> tuple[str, UUID]:
    """Mail about which a rule wants to do several things, once somebody approves: its Gmail id, and the action's."""
    several = combined([label("Receipts"), Step("archive"), Step("mark_read")])
    draft = RuleDraft("Ask first", {"subject_contains": "ask"}, *several, needs_approval=True)
    await setup.database.run(add_rules([(new_id(), draft)], wall_clock()))
    message = setup.product.mailbox.deliver(raw_mail(subject))
    await setup.product.live.sync()
    await setup.product.until_decided(3)
    (planned,) = await setup.database.run(
        actions.list_actions(10, message_id=await message_id_of(setup.database, subject))
    )
    assert planned.state == "approved_pending"
    return message.id, planned.id


async def _approved(setup: MessageSetup, id: UUID) -> actions.ActionView:
    answers = Approvals(setup.database, CATALOGUE, wall_clock)
    await answers.approve(id, (await answers.show(id)).action_hash, setup.signed())
    return await setup.ended(id)


async def test_an_approval_is_for_what_was_shown_although_the_rule_was_changed_since(setup: MessageSetup) -> None:
    gmail_id, id = await _waiting(setup, "ask me")
    before = setup.product.mailbox.get(gmail_id).labels
    rule = await setup.database.run(load_rule("Ask first"))
    changed = replace(rule.draft, action_type="trash", parameters={}, needs_approval=False)
    await setup.database.run(edit_rule(rule.id, rule.version, changed, setup.signed(), wall_clock()))
    done = await _approved(setup, id)
    receipts = setup.product.mailbox.labels.named("Receipts")
    assert done.state == "completed", done.error
    assert receipts is not None
    assert setup.product.mailbox.get(gmail_id).labels == before - {"INBOX", "UNREAD"} | {receipts.id}
    assert (await setup.undo(id)).undone == "completed"
    assert setup.product.mailbox.get(gmail_id).labels == before


async def test_an_approval_takes_no_mail_out_of_the_trash_where_its_reader_put_it_since(setup: MessageSetup) -> None:
    gmail_id, id = await _waiting(setup, "ask me")
    setup.product.mailbox.modify(gmail_id, add=["TRASH"], remove=["INBOX"])
    before = setup.product.mailbox.get(gmail_id).labels
    done = await _approved(setup, id)
    assert done.state == "completed", done.error
    assert "TRASH" in setup.product.mailbox.get(gmail_id).labels
    assert (await setup.undo(id)).undone == "completed"
    assert setup.product.mailbox.get(gmail_id).labels == before


async def test_any_sequence_of_several_actions_and_undos_leaves_the_mailbox_as_it_was(setup: MessageSetup) -> None:
    seed = new_id().int % 2**32
    print(f"seed={seed}")
    rng = Random(seed)
    setup.product.mailbox.labels.create("Old Too", {})
    before = setup.labels
    for _ in range(SEQUENCES):
        done: list[actions.ActionView] = []
        for _ in range(rng.randint(1, 3)):
            view = await do(setup, *_some_steps(rng))
            assert view.state == "completed", view.error
            done.append(view)
        for view in reversed(done):
            if view.undo_hint is not None and view.undo_hint["inverse_action"] != "none":
                assert (await setup.undo(view.id)).undone == "completed"
        assert setup.labels == before, [each.parameters for each in done]


def _some_steps(rng: Random) -> list[Step]:
    """Steps that can be together, at least two."""
    while True:
        names = [*rng.sample(OTHERS, rng.randint(1, 4)), *rng.sample(PLACES, rng.randint(0, 1))]
        steps = [_step(rng, name) for name in names]
        try:
            check_steps(steps)
        except BadInput:
            continue
        if len(steps) > 1:
            return steps


def _step(rng: Random, name: Any) -> Step:
    if name == "snooze":
        return Step(name, {"amount": rng.randint(1, 9), "units": "hours"})
    return label(rng.choice(["Old", "Old Too"]), name) if name.endswith("_label") else Step(name)
