"""Every action and its undo in a real mailbox: what changes, what is restored, and what the user did meanwhile."""

import json
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import BadInput, Refused
from postroom.core.jobs.job import JobView
from postroom.core.jobs.types import CATALOGUE
from postroom.store.accounts import accounts
from postroom.store.actions import actions, pauses, protection, undos
from postroom.store.engine.database import Database, Script, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import undo_job
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import labels, mail
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.undo_requests import MOST, undo_these
from postroom_sandbox.faults import Fault
from support.message_setup import MessageSetup, message_setup, until_job_is

REVERSIBLE = (
    *("archive", "apply_label", "remove_label", "mark_read", "mark_unread", "star", "unstar", "trash", "restore"),
    "snooze",
)


@pytest.fixture
async def setup(database: Database, tmp_path: Path) -> AsyncGenerator[MessageSetup]:
    async with message_setup(database, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("action", REVERSIBLE)
async def test_an_action_is_done_and_undone(setup: MessageSetup, action: str) -> None:
    if action == "restore":
        setup.product.mailbox.modify(setup.gmail_id, add=["TRASH"])
    if action == "unstar":
        setup.product.mailbox.modify(setup.gmail_id, add=["STARRED"])
    before = setup.labels
    done = await setup.do(action)
    assert done.state == "completed", done.error
    if action != "mark_unread":
        assert setup.labels != before
        assert (await setup.undo(done.id)).undone == "completed"
    assert setup.labels == before


async def test_what_changed_nothing_is_recorded_as_such_and_cannot_be_undone(setup: MessageSetup) -> None:
    done = await setup.do("mark_unread")
    assert done.undo_hint is not None
    assert done.undo_hint["no_op"] is True
    job = undo_job(CATALOGUE, done.account_id, (done.id,))
    await setup.database.run(jobs.enqueue_many([job], wall_clock()))
    view = await _ended_job(setup, job.id)
    assert "nothing to undo" in (view.last_error or "")


async def test_deleting_is_for_good(setup: MessageSetup) -> None:
    before = setup.labels
    done = await setup.do("delete")
    assert done.state == "completed"
    assert setup.gmail_id not in setup.product.mailbox
    assert done.undo_hint == {
        "action": "delete",
        "inverse_action": "none",
        "irreversible": True,
        "pre_labels": sorted(before),
    }


async def test_an_undo_leaves_alone_what_the_user_changed_meanwhile(setup: MessageSetup) -> None:
    done = await setup.do("archive")
    setup.product.mailbox.modify(setup.gmail_id, add=["STARRED"], remove=["UNREAD"])
    await setup.undo(done.id)
    assert {"INBOX", "STARRED"} <= setup.labels
    assert "UNREAD" not in setup.labels


async def test_undoing_an_archive_does_not_fetch_the_message_out_of_the_trash(setup: MessageSetup) -> None:
    done = await setup.do("archive")
    setup.product.mailbox.modify(setup.gmail_id, add=["TRASH"])
    assert (await setup.undo(done.id)).undone == "completed"
    assert "TRASH" in setup.labels
    assert "INBOX" not in setup.labels


async def test_an_action_is_undone_once(setup: MessageSetup) -> None:
    done = await setup.do("star")
    await setup.undo(done.id)
    job = undo_job(CATALOGUE, done.account_id, (done.id,))
    await setup.database.run(jobs.enqueue_many([job], wall_clock()))
    assert (await _ended_job(setup, job.id)).state == "completed", "what was wanted is so"
    assert "STARRED" not in setup.labels


async def test_a_message_that_was_deleted_meanwhile_fails_its_action_for_good(setup: MessageSetup) -> None:
    setup.product.mailbox.delete(setup.gmail_id)
    done = await setup.do("archive")
    assert done.state == "failed"
    assert "deleted" in (done.error or "")


async def test_snoozed_mail_comes_back_and_the_undo_of_a_snooze_takes_its_waking_back(setup: MessageSetup) -> None:
    before = setup.labels
    done = await setup.do("snooze", amount=30, units="minutes")
    assert done.undo_hint is not None
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    assert "INBOX" not in setup.labels
    label = setup.product.mailbox.labels.get(done.undo_hint["snooze_label_id"])
    assert label.name == "Postroom/Snoozed"
    await setup.undo(done.id)
    shown = await setup.database.run(jobs.show_job(wake))
    assert shown is not None
    assert shown.state == "canceled"
    assert setup.labels == before


async def test_an_undo_of_a_snooze_that_fails_leaves_its_waking(setup: MessageSetup) -> None:
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    setup.product.mailbox.delete(setup.gmail_id)
    assert (await setup.undo(done.id)).undone == "failed"
    shown = await setup.database.run(jobs.show_job(UUID(done.undo_hint["unsnooze_job_id"])))
    assert shown is not None
    assert shown.state == "queued"


async def test_what_was_to_be_back_by_now_is_not_hidden_any_more(setup: MessageSetup) -> None:
    """The first attempt settled when it comes back and got no further; the next one comes too late."""
    before = setup.labels
    await setup.database.run(pauses.pause(pauses.ALL, "to look around", setup.signed(), wall_clock()))
    id = await setup.ask("snooze", amount=30, units="minutes")
    job = await _until_parked(setup, await _job_of(setup, id))
    wake = new_job(CATALOGUE, "unsnooze.gmail", {}, not_before=wall_clock() + timedelta(hours=1))
    hidden = setup.product.mailbox.labels.create("Postroom/Snoozed", {}).id
    image = {"snooze_until": wall_clock().isoformat(), "unsnooze_job_id": str(wake.id), "snooze_label_id": hidden}

    @transaction
    def first_attempt() -> Script[None]:
        yield sql("begin_action", id, job.id, wall_clock())
        yield sql("set_pre_image", id, json.dumps({"labels": sorted(before), **image}), None, wall_clock())
        yield from jobs.enqueue_many.script([wake], wall_clock())

    await setup.database.run(first_attempt())
    await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock()))
    done = await setup.ended(id)
    assert (done.state, setup.labels) == ("completed", before)


async def test_mail_that_was_protected_while_its_action_waited_is_not_touched(setup: MessageSetup) -> None:
    before = setup.labels
    await setup.database.run(pauses.pause(pauses.ALL, "to look around", setup.signed(), wall_clock()))
    id = await setup.ask("archive")
    job = await _job_of(setup, id)
    await _until_parked(setup, job)
    await setup.database.run(protection.protect("sender", "shop@store.example", "", setup.signed(), wall_clock()))
    await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock()))
    ended = await setup.ended(id)
    assert (ended.state, ended.error) == ("canceled", "the sender is protected")
    assert (await _ended_job(setup, job)).state == "completed"
    assert setup.labels == before


@pytest.mark.parametrize("was_hidden", [True, False])
async def test_a_snooze_that_is_broken_off_gives_back_what_it_hid_and_nothing_else(
    setup: MessageSetup, was_hidden: bool
) -> None:
    """The first attempt got no answer. Before the next, the user puts a protected label on the message; where it was
    not hidden, he has archived it himself."""
    mailbox = setup.product.mailbox
    legal = mailbox.labels.create("Legal", {}).id
    account = (await setup.database.run(mail.load_message(setup.id))).account_id
    seen = [labels.SeenLabel(each.id, each.name, each.type) for each in mailbox.labels.all()]
    await setup.database.run(labels.sync_labels(account, seen, wall_clock()))
    await setup.database.run(protection.protect("label", "Legal", "", setup.signed(), wall_clock()))
    fault = Fault(kind="drop_reply", path="/modify", times=1) if was_hidden else Fault(503, method="messages.modify")
    setup.product.emulator.faults.order(fault)
    asked = await setup.ask("snooze")
    job = await _job_of(setup, asked)
    await until_job_is(setup.database, job, lambda each: each.last_error is not None)
    assert ("INBOX" in setup.labels) is not was_hidden
    mailbox.modify(setup.gmail_id, add=[legal], remove=[] if was_hidden else ["INBOX"])
    setup.product.emulator.faults.clear()
    await setup.database.run(jobs.retry_job(job, wall_clock()))
    assert (await setup.ended(asked)).state == "canceled"
    (wake,) = await setup.database.run(jobs.list_jobs(None, "unsnooze.gmail", 10))
    assert (await _ended_job(setup, wake.id)).state == "completed"
    assert ("INBOX" in setup.labels) is was_hidden


async def test_snoozed_mail_of_an_account_that_was_removed_comes_back_when_it_is_connected_again(
    setup: MessageSetup,
) -> None:
    before = setup.labels
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    account = (await setup.database.run(mail.load_message(setup.id))).account_id
    await setup.database.run(accounts.remove_account(account, setup.signed(), wall_clock()))
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    await _until_parked(setup, wake)
    await setup.database.run(accounts.resume_account(account, setup.signed(), wall_clock()))
    assert (await _ended_job(setup, wake)).state == "completed"
    assert setup.labels == before


MEANWHILE = (
    *("nothing", "trashed", "reported as spam", "deleted", "label deleted", "label removed", "woken and archived"),
    *("archived with its label on", "moved to the inbox", "starred"),
)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_waking_puts_a_message_back_unless_the_user_has_moved_it(setup: MessageSetup, meanwhile: str) -> None:
    before = setup.labels
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    wake, label = UUID(done.undo_hint["unsnooze_job_id"]), done.undo_hint["snooze_label_id"]
    match meanwhile:
        case "trashed":
            setup.product.mailbox.modify(setup.gmail_id, add=["TRASH"])
        case "deleted":
            setup.product.mailbox.delete(setup.gmail_id)
        case "label deleted":
            setup.product.mailbox.delete_label(label)
        case "woken and archived":
            setup.product.mailbox.modify(setup.gmail_id, add=["INBOX"], remove=[label])
            setup.product.mailbox.modify(setup.gmail_id, remove=["INBOX"])
        case "label removed":
            setup.product.mailbox.modify(setup.gmail_id, remove=[label])
        case "archived with its label on":
            setup.product.mailbox.modify(setup.gmail_id, add=["INBOX"])
            setup.product.mailbox.modify(setup.gmail_id, remove=["INBOX"])
        case "moved to the inbox":
            setup.product.mailbox.modify(setup.gmail_id, add=["INBOX"], remove=[label])
        case "reported as spam":
            setup.product.mailbox.modify(setup.gmail_id, add=["SPAM"])
        case "starred":
            setup.product.mailbox.modify(setup.gmail_id, add=["STARRED"])
        case _:
            pass
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(setup, wake)).state == "completed"
    if meanwhile == "trashed":
        assert setup.labels == (before - {"INBOX"}) | {"TRASH"}
    elif meanwhile == "reported as spam":
        assert setup.labels == (before - {"INBOX"}) | {"SPAM"}
    elif meanwhile in ("woken and archived", "archived with its label on"):
        assert setup.labels == before - {"INBOX"}
    elif meanwhile == "starred":
        assert setup.labels == before | {"STARRED"}
    elif meanwhile != "deleted":
        assert setup.labels == before


async def test_snoozed_mail_comes_back_when_the_mailbox_has_forgotten_what_was_done_to_it(setup: MessageSetup) -> None:
    before = setup.labels
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    setup.product.mailbox.modify(setup.gmail_id, add=["INBOX"], remove=[done.undo_hint["snooze_label_id"]])
    setup.product.mailbox.modify(setup.gmail_id, remove=["INBOX"])
    setup.product.mailbox.expire_history()
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(setup, wake)).state == "completed"
    assert setup.labels == before


async def test_what_happened_before_mail_was_hidden_does_not_keep_it_hidden(setup: MessageSetup) -> None:
    """The user archives a message and takes that back; only then it is snoozed, and its label taken off."""
    before = setup.labels
    setup.product.mailbox.modify(setup.gmail_id, remove=["INBOX"])
    setup.product.mailbox.modify(setup.gmail_id, add=["INBOX"])
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    setup.product.mailbox.modify(setup.gmail_id, remove=[done.undo_hint["snooze_label_id"]])
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(setup, wake)).state == "completed"
    assert setup.labels == before


async def test_a_waking_that_gmail_refuses_is_tried_again(setup: MessageSetup) -> None:
    """Its label may have been deleted between a look at the message and the change."""
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    setup.product.emulator.faults.order(Fault(400, "invalidArgument", method="messages.modify", times=1))
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    waiting = await until_job_is(setup.database, wake, lambda job: job.last_error is not None)
    assert waiting.state == "queued", "nobody else would bring it back"
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(setup, wake)).state == "completed"
    assert "INBOX" in setup.labels


async def test_mail_that_is_snoozed_again_sleeps_until_then_also_when_that_is_undone_too_late(
    setup: MessageSetup,
) -> None:
    before = setup.labels
    first = await setup.do("snooze", amount=30, units="minutes")
    asleep = setup.labels
    second = await setup.do("snooze", amount=2, units="hours")
    assert first.undo_hint is not None
    assert second.undo_hint is not None
    wakes = [UUID(each.undo_hint["unsnooze_job_id"]) for each in (first, second) if each.undo_hint]
    await setup.database.run(jobs.retry_job(wakes[0], wall_clock()))
    assert (await _ended_job(setup, wakes[0])).state == "completed"
    assert setup.labels == asleep
    await setup.undo(second.id)
    assert setup.labels == asleep
    waiting = await setup.database.run(jobs.show_job(wakes[1]))
    assert waiting is not None
    assert waiting.state == "queued", "nobody else would wake it"
    await setup.database.run(jobs.retry_job(wakes[1], wall_clock()))
    assert (await _ended_job(setup, wakes[1])).state == "completed"
    assert setup.labels == before


@pytest.mark.parametrize("woken", ["before", "in the trash", "later"])
async def test_snoozed_mail_that_was_trashed_and_is_given_back_is_seen_again(setup: MessageSetup, woken: str) -> None:
    before = setup.labels
    snoozed = await setup.do("snooze")
    assert snoozed.undo_hint is not None
    wake = UUID(snoozed.undo_hint["unsnooze_job_id"])

    async def its_time_comes() -> None:
        await setup.database.run(jobs.retry_job(wake, wall_clock()))
        assert (await _ended_job(setup, wake)).state == "completed"

    if woken == "before":
        await its_time_comes()
    trashed = await setup.do("trash")
    if woken == "in the trash":
        await its_time_comes()
        assert "INBOX" not in setup.labels, "the user threw it away"
    assert (await setup.undo(trashed.id)).undone == "completed"
    if woken == "later":
        assert "INBOX" not in setup.labels, "it sleeps again"
        await its_time_comes()
    assert setup.labels == before


async def test_the_undo_of_a_second_snooze_leaves_the_first_in_force(setup: MessageSetup) -> None:
    before = setup.labels
    first = await setup.do("snooze", amount=30, units="minutes")
    second = await setup.do("snooze", amount=2, units="hours")
    await setup.undo(second.id)
    assert first.undo_hint is not None
    wake = UUID(first.undo_hint["unsnooze_job_id"])
    await setup.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(setup, wake)).state == "completed"
    assert setup.labels == before


async def test_while_paused_nothing_is_changed_and_then_all_goes_on(setup: MessageSetup) -> None:
    before = setup.labels
    await setup.database.run(pauses.pause(pauses.ALL, "to look around", setup.signed(), wall_clock()))
    id = await setup.ask("archive")
    job = await _job_of(setup, id)
    await _until_parked(setup, job)
    assert setup.labels == before
    assert await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock())) == 1
    assert (await setup.ended(id)).state == "completed"
    assert "INBOX" not in setup.labels


async def test_protected_mail_is_not_touched_even_on_request(setup: MessageSetup) -> None:
    await setup.database.run(protection.protect("label", "STARRED", "", setup.signed(), wall_clock()))
    await setup.database.run(protection.protect("sender", "SHOP@store.example", "", setup.signed(), wall_clock()))
    with pytest.raises(Refused, match="protected"):
        await setup.ask("archive")


@pytest.mark.parametrize(
    ("action", "parameters", "field"),
    [
        ("apply_label", {"label": " "}, "parameters.label"),
        ("snooze", {"until": "2020-01-01T00:00:00Z"}, "parameters.until"),
        ("snooze", {"until": "2099-01-01T00:00:00Z", "amount": 3, "units": "days"}, "parameters.until"),
        ("explode", {"x": 1}, "action"),
    ],
)
async def test_what_is_invalid_is_refused_before_anything_is_recorded(
    setup: MessageSetup, action: str, parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        await setup.ask(action, **parameters)
    assert refused.value.field == field
    assert await setup.database.run(actions.list_actions(10)) == []


async def test_everything_of_a_time_is_undone_in_reverse(setup: MessageSetup) -> None:
    seed = new_id().int % 1_000_000
    print(f"seed {seed}")
    rng = Random(seed)
    before = setup.labels
    began = wall_clock()
    for action in rng.choices(REVERSIBLE, k=8):
        await setup.do(action)
    chosen = await setup.database.run(undos.undoable(MOST, since=began, until=wall_clock() + timedelta(hours=1)))
    assert await undo_these(setup.database, CATALOGUE, chosen, wall_clock) == 1
    for each in chosen:
        await setup.until(each.id, lambda view: view.undone == "completed")
    assert setup.labels == before
    assert await setup.database.run(undos.undoable(MOST, since=began)) == []


async def _ended_job(setup: MessageSetup, id: UUID) -> JobView:
    return await until_job_is(setup.database, id, lambda job: job.state in ("completed", "failed", "canceled"))


async def _until_parked(setup: MessageSetup, id: UUID) -> JobView:
    return await until_job_is(setup.database, id, lambda job: job.parked_by is not None)


async def _job_of(setup: MessageSetup, action_id: UUID) -> UUID:
    for job in await setup.database.run(jobs.list_jobs(state=None, type="action.gmail", limit=100)):
        if str(action_id) in job.payload_json:
            return job.id
    raise AssertionError("there is no job for the action")
