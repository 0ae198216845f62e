"""Carry out one action: pre-image first, then the change, then the end of action and job together.

Every step may be repeated. The pre-image, and with it the job that brings snoozed mail back, is recorded once.
Adding or removing a label twice is the same as once, and so is deleting. What was really changed is computed against
the pre-image. Mail is not sent from here; the job that sends it is enqueued.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from postroom.act.labels import LabelFinder
from postroom.core.actions.action import LabelChange, check_parameters, label_change, operation_of, wanted_label
from postroom.core.actions.snooze import wake_time
from postroom.core.actions.undo import Snoozed, irreversible_hint, undo_hint
from postroom.core.errors import BadInput, Fatal, MessageGone
from postroom.core.jobs.job import Job, NewJob
from postroom.core.jobs.types import Catalogue
from postroom.core.mail.mailbox import Mailbox, Placed
from postroom.store import actions as store
from postroom.store.engine.clock import Clock
from postroom.store.engine.database import Database
from postroom.store.job_builders import outbound_job, unsnooze_job

DEFAULT_SNOOZE_LABEL = "Postroom/Snoozed"


@dataclass(frozen=True, slots=True)
class Executor:
    """Carries out an action in its mailbox."""

    database: Database
    catalogue: Catalogue
    clock: Clock
    snooze_label: str = DEFAULT_SNOOZE_LABEL

    async def carry_out(self, mailbox: Mailbox, job: Job, action: store.Action) -> store.Ending:
        """Carry it out, and return the transaction that ends the job. Raise Fatal if no retry helps."""
        try:
            check_parameters(action.action_type, action.parameters)
            operation = operation_of(action.action_type)
            match operation:
                case "delete":
                    return await self._delete(mailbox, job, action)
                case "snooze":
                    return await self._snooze(mailbox, job, action)
                case "send":
                    return store.hand_over_action(job, action.id, self._sending(action, job), self.clock())
                case "relabel":
                    return await self._relabel(mailbox, job, action)
                case _:
                    assert_never(operation)
        except BadInput as error:
            raise Fatal(str(error)) from None

    async def _relabel(self, mailbox: Mailbox, job: Job, action: store.Action) -> store.Ending:
        label = wanted_label(action.action_type, action.parameters)
        finder = LabelFinder(self.database, self.clock)
        label_id = None if label is None else await finder.id_of(mailbox, action, label)
        before = _labels(await self._pre_image(mailbox, job, action))
        change = label_change(action.action_type, label_id).effective(before)
        placed = await _changed(mailbox, action, change, before)
        hint = undo_hint(action.action_type, before, _done(change, placed.labels))
        return self._ending(job, action, placed, hint)

    async def _delete(self, mailbox: Mailbox, job: Job, action: store.Action) -> store.Ending:
        image = await self._pre_image(mailbox, job, action)
        # Deleted by an earlier attempt whose end we did not see, or by the user just now: that is what was wanted.
        with contextlib.suppress(MessageGone):
            await mailbox.delete(action.provider_message_id)
        hint = irreversible_hint("delete", pre_labels=sorted(_labels(image)))
        return store.complete_action(job, action.id, None, hint, self.clock())

    async def _snooze(self, mailbox: Mailbox, job: Job, action: store.Action) -> store.Ending:
        if action.pre_image is None:
            wake_time(action.parameters, self.clock())
        label_id = await mailbox.label_id(self.snooze_label)
        image = await self._snooze_image(mailbox, job, action, label_id)
        until, wake = datetime.fromisoformat(image["snooze_until"]), UUID(image["unsnooze_job_id"])
        before = _labels(image)
        change = label_change("snooze", label_id).effective(before)
        if until <= self.clock():
            # It should be back by now: if it is not hidden yet, do not hide it any more.
            id = action.provider_message_id
            placed = Placed(id, await mailbox.labels_of(id))
        else:
            placed = await _changed(mailbox, action, change, before)
        hidden = await _last_change(mailbox, placed.provider_message_id)
        snoozed = Snoozed(until, self.snooze_label, label_id, wake, hidden)
        hint = undo_hint("snooze", before, _done(change, placed.labels), snoozed)
        return self._ending(job, action, placed, hint)

    def _ending(self, job: Job, action: store.Action, placed: Placed, hint: Mapping[str, Any]) -> store.Ending:
        moved_to = placed.moved_from(action.provider_message_id)
        return store.complete_action(job, action.id, placed.labels, hint, self.clock(), moved_to)

    async def _pre_image(self, mailbox: Mailbox, job: Job, action: store.Action) -> Mapping[str, Any]:
        """Return the state of the message before the action, as the first attempt found it."""
        if action.pre_image is not None:
            return action.pre_image
        labels = await mailbox.labels_of(action.provider_message_id)
        return await self.database.run(store.keep_pre_image(job, action.id, labels, self.clock()))

    async def _snooze_image(self, mailbox: Mailbox, job: Job, action: store.Action, label_id: str) -> Mapping[str, Any]:
        """Also record when it is to come back, and by which job, which is enqueued before anything is hidden."""
        if action.pre_image is not None:
            return action.pre_image
        labels, now = await mailbox.labels_of(action.provider_message_id), self.clock()
        until = wake_time(action.parameters, now)
        wake = unsnooze_job(
            self.catalogue, action.account_id, action.message_id, action.id, label_id, until, job.priority
        )
        settled = {
            "snooze_until": until.isoformat(),
            "snooze_label_id": label_id,
            "unsnooze_job_id": str(wake.id),
        }
        return await self.database.run(store.keep_pre_image(job, action.id, labels, now, [wake], **settled))

    def _sending(self, action: store.Action, job: Job) -> NewJob:
        payload = {
            "message_type": "forward" if action.action_type == "forward" else "reply",
            "original_message_id": str(action.message_id),
        }
        # Texts and files stay with the action: more people see a job than a mail.
        payload |= {name: action.parameters[name] for name in ("to", "cc", "subject") if action.parameters.get(name)}
        return outbound_job(self.catalogue, action.account_id, action.id, payload, job.priority)


async def _changed(mailbox: Mailbox, action: store.Action, change: LabelChange, before: frozenset[str]) -> Placed:
    id = action.provider_message_id
    match action.action_type:
        case _ if not change:
            return Placed(id, before)
        case "trash":
            return await mailbox.trash(id)
        case "restore":
            return await mailbox.untrash(id)
        case _:
            return await mailbox.modify(id, change.add, change.remove)


async def _last_change(mailbox: Mailbox, message_id: str) -> int | None:
    """Return the message's position in the history; None if it has just been deleted."""
    with contextlib.suppress(MessageGone):
        return (await mailbox.look_at(message_id)).history_id
    return None


def _labels(image: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(image["labels"])


def _done(change: LabelChange, after: frozenset[str]) -> LabelChange:
    """Return the part of the change that is in effect: what the user has already taken back is not ours to undo."""
    return LabelChange(change.add & after, change.remove - after)
