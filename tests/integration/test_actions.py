"""Every action and its undo in a real mailbox: what changes, what is put back, and what the user did meanwhile."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from integration.product import Product, letter, running_product
from postroom.act.action_requests import ActionRequests
from postroom.act.undo_many import MOST, undo_these
from postroom.core.actions.safety import Policy
from postroom.core.errors import BadInput, Refused
from postroom.core.jobs.job import JobView
from postroom.core.jobs.types import CATALOGUE
from postroom.store import accounts, actions, decisions, jobs, labels, mail, pauses, protection, undos
from postroom.store.audit import Signature
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database, Script, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.job_builders import undo_job
from postroom.store.new_jobs import new_job
from postroom_sandbox.faults import Fault
from support.patience import PATIENCE_S

PARAMETERS: dict[str, dict[str, Any]] = {
    "apply_label": {"label": "Receipts"},
    "remove_label": {"label": "Old"},
    "snooze": {"amount": 2, "units": "hours"},
}
REVERSIBLE = (
    *("archive", "apply_label", "remove_label", "mark_read", "mark_unread", "star", "unstar", "trash", "restore"),
    "snooze",
)


@dataclass
class Desk:
    """A message in a mailbox, and what a test does with it."""

    product: Product
    gmail_id: str
    id: UUID

    @property
    def database(self) -> Database:
        return self.product.database

    @property
    def labels(self) -> frozenset[str]:
        return self.product.mailbox.get(self.gmail_id).labels

    def signed(self) -> Signature:
        return Signature(new_id(), "test", "admin")

    async def ask(self, action: str, **parameters: Any) -> UUID:
        wishes = ActionRequests(self.database, CATALOGUE, Policy(), wall_clock)
        asked = await wishes.ask(
            self.id, action, parameters or PARAMETERS.get(action, {}), source="user", asked_by="test", why="a test"
        )
        return asked.action_id

    async def do(self, action: str, **parameters: Any) -> actions.ActionView:
        return await self.ended(await self.ask(action, **parameters))

    async def ended(self, id: UUID) -> actions.ActionView:
        return await self.until(id, lambda view: view.state in ("completed", "failed", "canceled"))

    async def until(self, id: UUID, holds: Callable[[actions.ActionView], bool]) -> actions.ActionView:
        changed = asyncio.Event()
        channels = (decisions.CHANNEL, jobs.CHANNEL)
        subscriptions = [self.database.subscribe(each, lambda _message: changed.set()) for each in channels]
        try:
            async with asyncio.timeout(self.product.patience_s):
                while True:
                    changed.clear()
                    for view in await self.database.run(actions.list_actions(1000)):
                        if view.id == id and holds(view):
                            return view
                    await signalled(changed, 0.2)
        finally:
            for subscription in subscriptions:
                subscription.close()

    async def undo(self, id: UUID, again: int = 0) -> actions.ActionView:
        """Asks for the undo and waits for its end; returns the original as it then stands."""
        view = await self.until(id, lambda _view: True)
        job = undo_job(CATALOGUE, view.account_id, (id,), again=again)
        await self.database.run(jobs.enqueue_many([job], wall_clock()))
        return await self.until(id, lambda view: view.undone in ("completed", "failed"))


@pytest.fixture
async def desk(database: Database, tmp_path: Path) -> AsyncGenerator[Desk]:
    async with running_product(database, tmp_path) as product:
        message = product.mailbox.deliver(letter("Hello"))
        old = product.mailbox.labels.create("Old", {}).id
        product.mailbox.modify(message.id, add=[old])
        other = product.mailbox.deliver(letter("Another"))
        await product.live.sync()
        await product.settled(2)
        before = other.labels
        yield Desk(product, message.id, await message_id_of(database, "Hello"))
        assert product.mailbox.get(other.id).labels == before, "another message was touched"


async def message_id_of(database: Database, subject: str) -> UUID:
    for job in await database.run(jobs.list_jobs(state=None, type="classify", limit=10)):
        message = await database.run(mail.load_message(UUID(json.loads(job.payload_json)["message_id"])))
        if message.subject.subject == subject:
            return message.id
    raise AssertionError(f"there is no message {subject!r}")


@pytest.mark.parametrize("action", REVERSIBLE)
async def test_an_action_is_done_and_undone(desk: Desk, action: str) -> None:
    if action == "restore":
        desk.product.mailbox.modify(desk.gmail_id, add=["TRASH"])
    if action == "unstar":
        desk.product.mailbox.modify(desk.gmail_id, add=["STARRED"])
    before = desk.labels
    done = await desk.do(action)
    assert done.state == "completed", done.error
    if action != "mark_unread":
        assert desk.labels != before
        assert (await desk.undo(done.id)).undone == "completed"
    assert desk.labels == before


async def test_what_changed_nothing_is_recorded_as_such_and_cannot_be_undone(desk: Desk) -> None:
    done = await desk.do("mark_unread")
    assert done.undo_hint is not None
    assert done.undo_hint["no_op"] is True
    job = undo_job(CATALOGUE, done.account_id, (done.id,))
    await desk.database.run(jobs.enqueue_many([job], wall_clock()))
    view = await _ended_job(desk, job.id)
    assert "nothing to undo" in (view.last_error or "")


async def test_deleting_is_for_good(desk: Desk) -> None:
    before = desk.labels
    done = await desk.do("delete")
    assert done.state == "completed"
    assert desk.gmail_id not in desk.product.mailbox
    assert done.undo_hint == {
        "action": "delete",
        "inverse_action": "none",
        "irreversible": True,
        "pre_labels": sorted(before),
    }


async def test_an_undo_leaves_alone_what_the_user_changed_meanwhile(desk: Desk) -> None:
    done = await desk.do("archive")
    desk.product.mailbox.modify(desk.gmail_id, add=["STARRED"], remove=["UNREAD"])
    await desk.undo(done.id)
    assert {"INBOX", "STARRED"} <= desk.labels
    assert "UNREAD" not in desk.labels


async def test_undoing_an_archive_does_not_fetch_the_message_out_of_the_trash(desk: Desk) -> None:
    done = await desk.do("archive")
    desk.product.mailbox.modify(desk.gmail_id, add=["TRASH"])
    assert (await desk.undo(done.id)).undone == "completed"
    assert "TRASH" in desk.labels
    assert "INBOX" not in desk.labels


async def test_an_action_is_undone_once(desk: Desk) -> None:
    done = await desk.do("star")
    await desk.undo(done.id)
    job = undo_job(CATALOGUE, done.account_id, (done.id,), again=2)
    await desk.database.run(jobs.enqueue_many([job], wall_clock()))
    assert "undone already" in ((await _ended_job(desk, job.id)).last_error or "")
    assert "STARRED" not in desk.labels


async def test_a_message_that_was_deleted_meanwhile_fails_its_action_for_good(desk: Desk) -> None:
    desk.product.mailbox.delete(desk.gmail_id)
    done = await desk.do("archive")
    assert done.state == "failed"
    assert "deleted" in (done.error or "")


async def test_snoozed_mail_comes_back_and_the_undo_of_a_snooze_takes_its_waking_back(desk: Desk) -> None:
    before = desk.labels
    done = await desk.do("snooze", amount=30, units="minutes")
    assert done.undo_hint is not None
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    assert "INBOX" not in desk.labels
    label = desk.product.mailbox.labels.get(done.undo_hint["snooze_label_id"])
    assert label.name == "Postroom/Snoozed"
    await desk.undo(done.id)
    shown = await desk.database.run(jobs.show_job(wake))
    assert shown is not None
    assert shown.state == "canceled"
    assert desk.labels == before


async def test_an_undo_of_a_snooze_that_fails_leaves_its_waking(desk: Desk) -> None:
    done = await desk.do("snooze")
    assert done.undo_hint is not None
    desk.product.mailbox.delete(desk.gmail_id)
    assert (await desk.undo(done.id)).undone == "failed"
    shown = await desk.database.run(jobs.show_job(UUID(done.undo_hint["unsnooze_job_id"])))
    assert shown is not None
    assert shown.state == "queued"


async def test_what_was_to_be_back_by_now_is_not_hidden_any_more(desk: Desk) -> None:
    """The first attempt settled when it comes back and got no further; the next one comes too late."""
    before = desk.labels
    await desk.database.run(pauses.pause(pauses.ALL, "to look around", desk.signed(), wall_clock()))
    id = await desk.ask("snooze", amount=30, units="minutes")
    job = await _until_parked(desk, await _job_of(desk, id))
    wake = new_job(CATALOGUE, "unsnooze.gmail", {}, not_before=wall_clock() + timedelta(hours=1))
    image = {"snooze_until": wall_clock().isoformat(), "unsnooze_job_id": str(wake.id)}

    @transaction
    def first_attempt() -> Script[None]:
        yield sql("begin_action", id, job.id, wall_clock())
        yield sql("set_pre_image", id, json.dumps({"labels": sorted(before), **image}), wall_clock())
        yield from jobs.enqueue_many.script([wake], wall_clock())

    await desk.database.run(first_attempt())
    await desk.database.run(pauses.resume(pauses.ALL, desk.signed(), wall_clock()))
    done = await desk.ended(id)
    assert (done.state, desk.labels) == ("completed", before)


async def test_mail_that_was_protected_while_its_action_waited_is_not_touched(desk: Desk) -> None:
    before = desk.labels
    await desk.database.run(pauses.pause(pauses.ALL, "to look around", desk.signed(), wall_clock()))
    id = await desk.ask("archive")
    job = await _job_of(desk, id)
    await _until_parked(desk, job)
    await desk.database.run(protection.protect("sender", "shop@store.example", "", desk.signed(), wall_clock()))
    await desk.database.run(pauses.resume(pauses.ALL, desk.signed(), wall_clock()))
    ended = await desk.ended(id)
    assert (ended.state, ended.error) == ("canceled", "the sender is protected")
    assert (await _ended_job(desk, job)).state == "completed"
    assert desk.labels == before


@pytest.mark.parametrize("was_hidden", [True, False])
async def test_a_snooze_that_is_broken_off_gives_back_what_it_hid_and_nothing_else(
    desk: Desk, was_hidden: bool
) -> None:
    """The first attempt got no answer. Before the next, the user puts a protected label on the message; where it was
    not hidden, he has archived it himself."""
    mailbox = desk.product.mailbox
    legal = mailbox.labels.create("Legal", {}).id
    account = (await desk.database.run(mail.load_message(desk.id))).account_id
    seen = [labels.SeenLabel(each.id, each.name, each.type) for each in mailbox.labels.all()]
    await desk.database.run(labels.sync_labels(account, seen, wall_clock()))
    await desk.database.run(protection.protect("label", "Legal", "", desk.signed(), wall_clock()))
    fault = Fault(kind="drop_reply", path="/modify", times=1) if was_hidden else Fault(503, method="messages.modify")
    desk.product.emulator.faults.order(fault)
    asked = await desk.ask("snooze")
    job = await _job_of(desk, asked)
    await until_job_is(desk.database, job, lambda each: each.last_error is not None)
    assert ("INBOX" in desk.labels) is not was_hidden
    mailbox.modify(desk.gmail_id, add=[legal], remove=[] if was_hidden else ["INBOX"])
    desk.product.emulator.faults.clear()
    await desk.database.run(jobs.retry_job(job, wall_clock()))
    assert (await desk.ended(asked)).state == "canceled"
    (wake,) = await desk.database.run(jobs.list_jobs(None, "unsnooze.gmail", 10))
    assert (await _ended_job(desk, wake.id)).state == "completed"
    assert ("INBOX" in desk.labels) is was_hidden


async def test_snoozed_mail_of_an_account_that_was_removed_comes_back_when_it_is_connected_again(desk: Desk) -> None:
    before = desk.labels
    done = await desk.do("snooze")
    assert done.undo_hint is not None
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    account = (await desk.database.run(mail.load_message(desk.id))).account_id
    await desk.database.run(accounts.remove_account(account, desk.signed(), wall_clock()))
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    await _until_parked(desk, wake)
    await desk.database.run(accounts.resume_account(account, desk.signed(), wall_clock()))
    assert (await _ended_job(desk, wake)).state == "completed"
    assert desk.labels == before


MEANWHILE = (
    *("nothing", "trashed", "reported as spam", "deleted", "label deleted", "label removed", "woken and archived"),
    *("archived with its label on", "moved to the inbox", "starred"),
)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_waking_puts_a_message_back_unless_the_user_has_moved_it(desk: Desk, meanwhile: str) -> None:
    before = desk.labels
    done = await desk.do("snooze")
    assert done.undo_hint is not None
    wake, label = UUID(done.undo_hint["unsnooze_job_id"]), done.undo_hint["snooze_label_id"]
    match meanwhile:
        case "trashed":
            desk.product.mailbox.modify(desk.gmail_id, add=["TRASH"])
        case "deleted":
            desk.product.mailbox.delete(desk.gmail_id)
        case "label deleted":
            desk.product.mailbox.delete_label(label)
        case "woken and archived":
            desk.product.mailbox.modify(desk.gmail_id, add=["INBOX"], remove=[label])
            desk.product.mailbox.modify(desk.gmail_id, remove=["INBOX"])
        case "label removed":
            desk.product.mailbox.modify(desk.gmail_id, remove=[label])
        case "archived with its label on":
            desk.product.mailbox.modify(desk.gmail_id, add=["INBOX"])
            desk.product.mailbox.modify(desk.gmail_id, remove=["INBOX"])
        case "moved to the inbox":
            desk.product.mailbox.modify(desk.gmail_id, add=["INBOX"], remove=[label])
        case "reported as spam":
            desk.product.mailbox.modify(desk.gmail_id, add=["SPAM"])
        case "starred":
            desk.product.mailbox.modify(desk.gmail_id, add=["STARRED"])
        case _:
            pass
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(desk, wake)).state == "completed"
    if meanwhile == "trashed":
        assert desk.labels == (before - {"INBOX"}) | {"TRASH"}
    elif meanwhile == "reported as spam":
        assert desk.labels == (before - {"INBOX"}) | {"SPAM"}
    elif meanwhile in ("woken and archived", "archived with its label on"):
        assert desk.labels == before - {"INBOX"}
    elif meanwhile == "starred":
        assert desk.labels == before | {"STARRED"}
    elif meanwhile != "deleted":
        assert desk.labels == before


async def test_snoozed_mail_comes_back_when_the_mailbox_has_forgotten_what_was_done_to_it(desk: Desk) -> None:
    before = desk.labels
    done = await desk.do("snooze")
    assert done.undo_hint is not None
    desk.product.mailbox.modify(desk.gmail_id, add=["INBOX"], remove=[done.undo_hint["snooze_label_id"]])
    desk.product.mailbox.modify(desk.gmail_id, remove=["INBOX"])
    desk.product.mailbox.expire_history()
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(desk, wake)).state == "completed"
    assert desk.labels == before


async def test_what_happened_before_mail_was_hidden_does_not_keep_it_hidden(desk: Desk) -> None:
    """The user archives a message and takes that back; only then it is snoozed, and its label taken off."""
    before = desk.labels
    desk.product.mailbox.modify(desk.gmail_id, remove=["INBOX"])
    desk.product.mailbox.modify(desk.gmail_id, add=["INBOX"])
    done = await desk.do("snooze")
    assert done.undo_hint is not None
    desk.product.mailbox.modify(desk.gmail_id, remove=[done.undo_hint["snooze_label_id"]])
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(desk, wake)).state == "completed"
    assert desk.labels == before


async def test_a_waking_that_gmail_refuses_is_tried_again(desk: Desk) -> None:
    """Its label may have been deleted between a look at the message and the change."""
    done = await desk.do("snooze")
    assert done.undo_hint is not None
    desk.product.emulator.faults.order(Fault(400, "invalidArgument", method="messages.modify", times=1))
    wake = UUID(done.undo_hint["unsnooze_job_id"])
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    waiting = await until_job_is(desk.database, wake, lambda job: job.last_error is not None)
    assert waiting.state == "queued", "nobody else would bring it back"
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(desk, wake)).state == "completed"
    assert "INBOX" in desk.labels


async def test_mail_that_is_snoozed_again_sleeps_until_then_also_when_that_is_undone_too_late(desk: Desk) -> None:
    before = desk.labels
    first = await desk.do("snooze", amount=30, units="minutes")
    asleep = desk.labels
    second = await desk.do("snooze", amount=2, units="hours")
    assert first.undo_hint is not None
    assert second.undo_hint is not None
    wakes = [UUID(each.undo_hint["unsnooze_job_id"]) for each in (first, second) if each.undo_hint]
    await desk.database.run(jobs.retry_job(wakes[0], wall_clock()))
    assert (await _ended_job(desk, wakes[0])).state == "completed"
    assert desk.labels == asleep
    await desk.undo(second.id)
    assert desk.labels == asleep
    waiting = await desk.database.run(jobs.show_job(wakes[1]))
    assert waiting is not None
    assert waiting.state == "queued", "nobody else would wake it"
    await desk.database.run(jobs.retry_job(wakes[1], wall_clock()))
    assert (await _ended_job(desk, wakes[1])).state == "completed"
    assert desk.labels == before


@pytest.mark.parametrize("woken", ["before", "in the trash", "later"])
async def test_snoozed_mail_that_was_trashed_and_is_given_back_is_seen_again(desk: Desk, woken: str) -> None:
    before = desk.labels
    snoozed = await desk.do("snooze")
    assert snoozed.undo_hint is not None
    wake = UUID(snoozed.undo_hint["unsnooze_job_id"])

    async def its_time_comes() -> None:
        await desk.database.run(jobs.retry_job(wake, wall_clock()))
        assert (await _ended_job(desk, wake)).state == "completed"

    if woken == "before":
        await its_time_comes()
    trashed = await desk.do("trash")
    if woken == "in the trash":
        await its_time_comes()
        assert "INBOX" not in desk.labels, "the user threw it away"
    assert (await desk.undo(trashed.id)).undone == "completed"
    if woken == "later":
        assert "INBOX" not in desk.labels, "it sleeps again"
        await its_time_comes()
    assert desk.labels == before


async def test_the_undo_of_a_second_snooze_leaves_the_first_in_force(desk: Desk) -> None:
    before = desk.labels
    first = await desk.do("snooze", amount=30, units="minutes")
    second = await desk.do("snooze", amount=2, units="hours")
    await desk.undo(second.id)
    assert first.undo_hint is not None
    wake = UUID(first.undo_hint["unsnooze_job_id"])
    await desk.database.run(jobs.retry_job(wake, wall_clock()))
    assert (await _ended_job(desk, wake)).state == "completed"
    assert desk.labels == before


async def test_while_paused_nothing_is_changed_and_then_all_goes_on(desk: Desk) -> None:
    before = desk.labels
    await desk.database.run(pauses.pause(pauses.ALL, "to look around", desk.signed(), wall_clock()))
    id = await desk.ask("archive")
    job = await _job_of(desk, id)
    await _until_parked(desk, job)
    assert desk.labels == before
    assert await desk.database.run(pauses.resume(pauses.ALL, desk.signed(), wall_clock())) == 1
    assert (await desk.ended(id)).state == "completed"
    assert "INBOX" not in desk.labels


async def test_protected_mail_is_not_touched_even_on_request(desk: Desk) -> None:
    await desk.database.run(protection.protect("label", "STARRED", "", desk.signed(), wall_clock()))
    await desk.database.run(protection.protect("sender", "SHOP@store.example", "", desk.signed(), wall_clock()))
    with pytest.raises(Refused, match="protected"):
        await desk.ask("archive")


@pytest.mark.parametrize(
    ("action", "parameters", "field"),
    [
        ("apply_label", {"label": " "}, "parameters.label"),
        ("snooze", {"until": "2020-01-01T00:00:00Z"}, "parameters.until"),
        ("snooze", {"until": "2099-01-01T00:00:00Z", "amount": 3, "units": "days"}, "parameters.until"),
        ("explode", {"x": 1}, "action"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anything_is_recorded(
    desk: Desk, action: str, parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        await desk.ask(action, **parameters)
    assert refused.value.field == field
    assert await desk.database.run(actions.list_actions(10)) == []


async def test_everything_of_a_time_is_undone_in_reverse(desk: Desk) -> None:
    seed = new_id().int % 1_000_000
    print(f"seed {seed}")
    rng = Random(seed)
    before = desk.labels
    began = wall_clock()
    for action in rng.choices(REVERSIBLE, k=8):
        await desk.do(action)
    chosen = await desk.database.run(undos.undoable(MOST, since=began, until=wall_clock() + timedelta(hours=1)))
    assert await undo_these(desk.database, CATALOGUE, chosen, wall_clock) == 1
    for each in chosen:
        await desk.until(each.id, lambda view: view.undone == "completed")
    assert desk.labels == before
    assert await desk.database.run(undos.undoable(MOST, since=began)) == []


async def _ended_job(desk: Desk, id: UUID) -> JobView:
    return await until_job_is(desk.database, id, lambda job: job.state in ("completed", "failed", "canceled"))


async def _until_parked(desk: Desk, id: UUID) -> JobView:
    return await until_job_is(desk.database, id, lambda job: job.parked_by is not None)


async def until_job_is(database: Database, id: UUID, holds: Callable[[JobView], bool]) -> JobView:
    changed = asyncio.Event()
    subscription = database.subscribe(jobs.CHANNEL, lambda _message: changed.set())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                changed.clear()
                found = await database.run(jobs.show_job(id))
                if found is not None and holds(found):
                    return found
                await signalled(changed, 0.1)
    finally:
        subscription.close()


async def _job_of(desk: Desk, action_id: UUID) -> UUID:
    for job in await desk.database.run(jobs.list_jobs(state=None, type="action.gmail", limit=100)):
        if str(action_id) in job.payload_json:
            return job.id
    raise AssertionError("there is no job for the action")
