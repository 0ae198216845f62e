"""Actions where a move gives a message a new id: the new id is stored, and undo and wake-up use it."""

from datetime import timedelta
from typing import Any

import pytest

from postroom.core.actions.action import DecidedType
from postroom.core.errors import JobError, MailboxBusy, MailboxError, NeedsPerson, Parked, Retryable
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.accounts import parking_key
from postroom.jobs.run import JobRun
from postroom.store.actions import decisions
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail.mail import load_message
from postroom.triage.act.executor import Executor
from postroom.triage.act.undo import UndoService
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.undo_action import UndoAction
from postroom.triage.handlers.unsnooze_gmail import UnsnoozeGmail
from support.folder_mailbox import FolderMailbox, Folders
from support.gates import LASTING, OpenGate
from support.mailboxes import given
from support.store.action_setup import ARRIVED, CAP, ActionSetup, Waiting
from support.store.job_setup import JobSetup

ID = "m1"
SNOOZE = "Postroom/Snoozed"


class MovingMailbox:
    """One stored message, which is in the folders too."""

    def __init__(self, setup: JobSetup) -> None:
        self.setup = setup
        self.actions = ActionSetup(setup)
        self.folders = Folders()
        self.folders.put(b"Subject: hello\r\n\r\n", id=ID)
        self._mailbox_of = given(FolderMailbox(self.folders, OpenGate()).under)

    async def decided(self, kind: DecidedType, parameters: dict[str, Any] | None = None) -> Waiting:
        account_id, message_id, deciding = await self.actions.stored()
        decision = decisions.Decision(
            new_id(), account_id, message_id, "deterministic", kind, parameters or {}, 1.0, "a rule"
        )
        follow_up, id = self.setup.new(), new_id()
        action = decisions.NewAction(id, "rule", "queued", "hash", follow_up.id)
        recorded = decisions.record_decision(deciding, decision, action, follow_up, self.setup.clock())
        await self.setup.database.run(recorded)
        return Waiting(id, account_id, message_id, await self.setup.claim_one())

    async def carried_out(self, waiting: Waiting) -> None:
        executor = Executor(self.setup.database, CATALOGUE, self.setup.clock, SNOOZE)
        payload = {"account_id": str(waiting.account_id), "action_id": str(waiting.id)}
        run = JobRun(waiting.job._replace(payload=payload), self.setup.database, self.setup.clock, LASTING)
        await ActionGmail(executor, self._mailbox_of, CAP)(run)

    async def undone(self, done: Waiting) -> None:
        payload = {"account_id": str(done.account_id), "original_action_id": str(done.id)}
        job = await self.setup.claimed(payload=payload)
        service = UndoService(self.setup.database, CATALOGUE, self.setup.clock)
        await UndoAction(service, self._mailbox_of)(JobRun(job, self.setup.database, self.setup.clock, LASTING))

    async def woken(self) -> None:
        self.setup.clock.forward(2 * 3600)
        await self.setup.database.run(jobs.wake_due(self.setup.clock(), 10))
        handler = UnsnoozeGmail(self.setup.database, self._mailbox_of, SNOOZE, self.setup.clock)
        await handler(JobRun(await self.setup.claim_one(), self.setup.database, self.setup.clock, LASTING))

    async def stored_id(self, waiting: Waiting) -> str:
        """The id under which the message is stored; it has to be where the mailbox has it, with the same labels."""
        message = await self.setup.database.run(load_message(waiting.message_id))
        (there,) = self.folders.messages.items()
        assert (message.provider_message_id, message.facts.labels) == (there[0], there[1].labels)
        return message.provider_message_id


@pytest.fixture
def moving(setup: JobSetup) -> MovingMailbox:
    return MovingMailbox(setup)


@pytest.mark.parametrize("kind", ["archive", "trash"])
async def test_a_moved_message_is_known_by_its_new_id_and_undo_moves_it_back(
    moving: MovingMailbox, kind: DecidedType
) -> None:
    waiting = await moving.decided(kind)
    await moving.carried_out(waiting)
    moved = await moving.stored_id(waiting)
    assert moved != ID
    await moving.undone(waiting)
    assert await moving.stored_id(waiting) not in (ID, moved)
    assert moving.folders.get(await moving.stored_id(waiting)).labels == ARRIVED


async def test_a_message_that_keeps_its_folder_keeps_its_id(moving: MovingMailbox) -> None:
    waiting = await moving.decided("mark_read")
    await moving.carried_out(waiting)
    assert await moving.stored_id(waiting) == ID


async def test_a_snoozed_message_is_woken_where_it_is_now(moving: MovingMailbox) -> None:
    waiting = await moving.decided("snooze", {"amount": 1, "units": "hours"})
    await moving.carried_out(waiting)
    hidden = await moving.stored_id(waiting)
    assert "INBOX" not in moving.folders.get(hidden).labels
    await moving.woken()
    assert moving.folders.get(await moving.stored_id(waiting)).labels == ARRIVED


async def test_a_new_id_that_another_row_has_is_left_to_it(moving: MovingMailbox) -> None:
    waiting = await moving.decided("archive")
    other = await moving.actions.stored()
    moving.folders.put(b"", id="m2")
    moving.folders.place = lambda kept, id="": moving.folders.messages.setdefault("m2", kept) and "m2"
    await moving.carried_out(waiting)
    for stored, id in ((waiting.message_id, ID), (other.message_id, "m2")):
        assert (await moving.setup.database.run(load_message(stored))).provider_message_id == id


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (NeedsPerson("sign in again"), Parked),
        (MailboxBusy("too many requests", timedelta(seconds=90)), Retryable),
    ],
    ids=["needs a person", "busy"],
)
async def test_the_job_ends_as_the_kind_of_the_error_says(
    moving: MovingMailbox, error: MailboxError, end: type[JobError]
) -> None:
    waiting = await moving.decided("archive")
    moving.folders.fails_with = error
    with pytest.raises(end, match=f"archive: {error}") as raised:
        await moving.carried_out(waiting)
    match raised.value:
        case Parked():
            assert raised.value.key == parking_key(waiting.account_id)
        case Retryable():
            assert raised.value.after == timedelta(seconds=90)
        case _:
            raise AssertionError("neither parked nor tried again")
