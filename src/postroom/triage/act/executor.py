"""Carry out one action: pre-image first, then the change, then the end of action and job together.

Several actions as one change the labels together, in one call where the provider has one; mail is sent after that.
Everything may be repeated. The pre-image, and with it the job that brings snoozed mail back, is recorded once.
Adding or removing a label twice is the same as once, and so is deleting. What was really changed is computed against
the pre-image. Mail is not sent from here; the job that sends it is enqueued.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from postroom.core.actions.action import label_change, wanted_label
from postroom.core.actions.label_changes import LabelChange, joint_change, places_in
from postroom.core.actions.snooze import wake_time
from postroom.core.actions.steps import Step, check_action, steps_of
from postroom.core.actions.undo import Snoozed, irreversible_hint, planned_hint, undo_hint
from postroom.core.errors import BadInput, Fatal, MessageGone
from postroom.core.jobs.job import Job, NewJob
from postroom.core.jobs.types import Catalogue
from postroom.core.mail.mailbox import Mailbox, Placed
from postroom.core.outbound.send_payload import send_payload
from postroom.store.actions import actions as store
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import outbound_job, unsnooze_job
from postroom.store.mail.mail import load_message
from postroom.system.wall_clock import Clock
from postroom.triage.act.label_changes import make_change
from postroom.triage.act.labels import LabelFinder

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
            check_action(action.action_type, action.parameters)
            *before, last = steps_of(action.action_type, action.parameters)
            match last.spec.operation:
                case "delete":
                    # Whatever else was to be done to the message would be deleted with it.
                    return await self._delete(mailbox, job, action)
                case "send":
                    done = await self._change(mailbox, job, action, before) if before else None
                    sending = await self._sending(action, last, job)
                    return store.hand_over_action(job, action.id, sending, self.clock(), done)
                case "relabel" | "snooze":
                    done = await self._change(mailbox, job, action, [*before, last])
                    return store.complete_action(job, action.id, done, self.clock())
                case _:
                    assert_never(last.spec.operation)
        except BadInput as error:
            raise Fatal(str(error)) from None

    async def _change(
        self, mailbox: Mailbox, job: Job, action: store.Action, steps: Sequence[Step]
    ) -> store.DoneChange:
        """Make all changes of labels, from one pre-image; the trash, which has calls of its own, comes last."""
        ids = [await self._label_id(mailbox, action, step) for step in steps]
        changes = [label_change(step.action_type, id) for step, id in zip(steps, ids, strict=True)]
        await _expect(mailbox, action, changes)
        hiding = next((number for number, step in enumerate(steps) if step.action_type == "snooze"), None)
        snooze = None if hiding is None else (steps[hiding], ids[hiding] or "")
        image = await self._pre_image(mailbox, job, action, changes, snooze)
        snoozed, before = None if snooze is None else self._snooze_of(image), _labels(image)
        wanted, here = joint_change(changes, before), Placed(action.provider_message_id, before)
        if snoozed is not None and snoozed.until <= self.clock():
            # It should be back by now: if it is not hidden yet, do not hide it any more.
            visible = joint_change([each for number, each in enumerate(changes) if number != hiding], before)
            id = (await make_change(mailbox, here, visible)).provider_message_id
            placed = Placed(id, await mailbox.labels_of(id))
        else:
            placed = await make_change(mailbox, here, wanted)
        if snoozed is not None:
            snoozed = replace(snoozed, history_id=await _last_change(mailbox, placed.provider_message_id))
        place = await mailbox.place_of(placed.provider_message_id)
        hint = undo_hint(action.action_type, before, _effective_change(wanted, placed.labels), snoozed, place)
        return store.DoneChange(placed.labels, hint, placed.moved_from(action.provider_message_id))

    async def _label_id(self, mailbox: Mailbox, action: store.Action, step: Step) -> str | None:
        """Return the label that the step names, or under which it hides the message."""
        if step.action_type == "snooze":
            if action.pre_image is None:
                wake_time(step.parameters, self.clock())
            return await mailbox.label_id(self.snooze_label)
        label = wanted_label(step.action_type, step.parameters)
        if label is None:
            return None
        finder = LabelFinder(self.database, self.clock)
        return await finder.id_of(mailbox, action, label, is_removed=step.action_type == "remove_label")

    async def _delete(self, mailbox: Mailbox, job: Job, action: store.Action) -> store.Ending:
        await _expect(mailbox, action, [LabelChange(frozenset({"TRASH"}))])
        image = await self._pre_image(mailbox, job, action, ())
        # Deleted by an earlier attempt whose end we did not see, or by the user just now: that is what was wanted.
        with contextlib.suppress(MessageGone):
            await mailbox.delete(action.provider_message_id)
        hint = irreversible_hint(action.action_type, pre_labels=sorted(_labels(image)))
        return store.complete_action(job, action.id, store.DoneChange(None, hint), self.clock())

    async def _pre_image(
        self,
        mailbox: Mailbox,
        job: Job,
        action: store.Action,
        changes: Sequence[LabelChange],
        snooze: tuple[Step, str] | None = None,
    ) -> Mapping[str, Any]:
        """Return the state of the message before the action, as the first attempt found it.

        For a snooze, given with its label, also record when the message is to come back, and by which job, which is
        enqueued before anything is hidden. Several actions may fail halfway: how to undo them is recorded with it.
        """
        if action.pre_image is not None:
            return action.pre_image
        labels, now = await mailbox.labels_of(action.provider_message_id), self.clock()
        place = await mailbox.place_of(action.provider_message_id)
        image: dict[str, Any] = {"labels": sorted(labels)} | ({} if place is None else {"place": place})
        wakes: list[NewJob] = []
        if snooze is not None:
            step, label_id = snooze
            until = wake_time(step.parameters, now)
            whose = action.account_id, action.message_id, action.id
            by_amount = step.parameters.get("until") is None
            wakes.append(unsnooze_job(self.catalogue, *whose, label_id, until, job.priority, by_amount=by_amount))
            image |= {"snooze_until": until.isoformat(), "snooze_label_id": label_id}
            image |= {"unsnooze_job_id": str(wakes[0].id)}
        planned = None
        if action.action_type == "several" and changes:
            snoozed = None if snooze is None else self._snooze_of(image)
            planned = planned_hint(undo_hint(action.action_type, labels, joint_change(changes, labels), snoozed))
        return await self.database.run(store.keep_pre_image(job, action.id, image, now, wakes, planned))

    def _snooze_of(self, image: Mapping[str, Any]) -> Snoozed:
        until, wake = datetime.fromisoformat(image["snooze_until"]), UUID(image["unsnooze_job_id"])
        return Snoozed(until, self.snooze_label, image["snooze_label_id"], wake)

    async def _sending(self, action: store.Action, step: Step, job: Job) -> NewJob:
        message = await self.database.run(load_message(action.message_id))
        payload = send_payload(
            step.action_type, step.parameters, action.message_id, message.facts, message.provider_thread_id
        )
        return outbound_job(self.catalogue, action.account_id, action.id, payload, job.priority)


async def _expect(mailbox: Mailbox, action: store.Action, changes: Sequence[LabelChange]) -> None:
    """Tell the mailbox which of several copies of the message is meant: the one that the first attempt saw, or moved;
    at first, one that is in a place that it is asked to leave.
    """
    if (image := action.pre_image) is not None:
        labels = _labels(image)
        after = joint_change(changes, labels).applied_to(labels)
        await mailbox.expect(action.provider_message_id, image.get("place"), labels, after)
    elif leaving := places_in(label for each in changes for label in each.remove):
        await mailbox.expect(action.provider_message_id, None, leaving)


async def _last_change(mailbox: Mailbox, message_id: str) -> int | None:
    """Return the message's position in the history; None if it has just been deleted."""
    with contextlib.suppress(MessageGone):
        return (await mailbox.look_at(message_id)).history_id
    return None


def _labels(image: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(image["labels"])


def _effective_change(change: LabelChange, after: frozenset[str]) -> LabelChange:
    """Return the part of the change that is in effect: what the user has already taken back is not ours to undo."""
    return LabelChange(change.add & after, change.remove - after)
