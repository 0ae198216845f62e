"""Undo one action: exactly what it changed, and only that.

See `core/actions/undo.py` for how the user's own later changes are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from postroom.core.actions.label_changes import FOLDER, LabelChange, places_in
from postroom.core.actions.steps import steps_of
from postroom.core.actions.undo import inverse_change, irreversible_hint, is_certain, labels_left, with_renamed
from postroom.core.errors import Fatal, MessageGone
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import Catalogue
from postroom.core.mail.mailbox import Mailbox, Placed
from postroom.store.actions import actions, undos
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock
from postroom.triage.act.label_changes import make_change

UNCERTAIN = (
    "the mailbox could not be read when the action failed, so what it did and what you did since cannot be told apart; "
    "nothing was changed: put the message right in the mailbox"
)


@dataclass(frozen=True, slots=True)
class UndoService:
    """Undoes an action in its mailbox."""

    database: Database
    catalogue: Catalogue
    clock: Clock

    async def put_back(
        self, mailbox: Mailbox, job: Job, undo: undos.Undo, then: undos.UndoChain | None = None
    ) -> actions.Ending:
        """Reverse the action, and return the transaction that ends the undo and its job, and starts those of `then`."""
        original, hint = undo.original, undo.original.undo_hint or {}
        place = await self.database.run(actions.last_place(original.message_id))
        back = frozenset[str](hint["pre_labels"]) if undo.is_repeated else None
        await mailbox.expect(original.provider_message_id, place, labels_left(hint), back)
        labels, hint = await _find_message(mailbox, original.provider_message_id, hint, place)
        now = {"labels": sorted(labels)}
        image = await self.database.run(actions.keep_pre_image(job, undo.id, now, self.clock()))
        if not is_certain(hint, labels):
            raise Fatal(UNCERTAIN)
        change = inverse_change(hint, labels)
        if "TRASH" in change.remove and await self.database.run(actions.woke_during(original.id, self.clock())):
            # The wake-up found it in the trash and left it there. Outside the trash, nothing would ever show it again.
            change = LabelChange(change.add | {"INBOX"}, change.remove)
        change = await _without_lost_labels(mailbox, original, change)
        placed = await make_change(mailbox, Placed(original.provider_message_id, labels), change)
        after = placed.labels
        # Compare with what the first attempt found: a later one may find everything already restored.
        before = frozenset[str](image["labels"])
        done = irreversible_hint(
            hint["inverse_action"],
            pre_labels=sorted(before),
            added=sorted(after - before),
            removed=sorted(before - after),
            **({} if place is None else {"place": await mailbox.place_of(placed.provider_message_id)}),
        )
        # Only now: until the message is back, its wake-up must still come in case this is never finished.
        wake, moved_to = _needless_waking(hint), placed.moved_from(original.provider_message_id)
        return undos.complete_undo(job, undo.id, after, done, then, self.clock(), wake, moved_to)

    def following(self, job: Job, account_id: UUID, then: tuple[UUID, ...]) -> undos.UndoChain | None:
        """Return the undos of earlier actions on the message: in reverse order, or it would not be restored."""
        return undos.UndoChain(self.catalogue, account_id, then, job.priority) if then else None


async def _find_message(
    mailbox: Mailbox, message_id: str, hint: Mapping[str, Any], place: str | None
) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return the labels of the message, and the hint, with the names that folders have now."""
    labels = await mailbox.labels_of(message_id)
    if place is not None and (label := await mailbox.renamed(message_id, place)) is not None:
        hint = with_renamed(hint, label)
    return labels, hint


def _needless_waking(hint: Mapping[str, Any]) -> UUID | None:
    """Return the job that would wake the message, unless it was already snoozed before: then it needs that job, since
    the time of its first wake-up may have passed."""
    wake = hint["inverse_parameters"].get("cancel_unsnooze_job_id")
    return None if wake is None or hint["snooze_label_id"] in hint["pre_labels"] else UUID(wake)


async def _without_lost_labels(mailbox: Mailbox, original: actions.Action, change: LabelChange) -> LabelChange:
    """Leave out labels that were deleted since: they must not keep the rest from being put back. If there is no rest,
    the mailbox refuses, and says why.
    """
    if not any(step.action_type == "remove_label" for step in steps_of(original.action_type, original.parameters)):
        return change
    rest = LabelChange(change.add & {label.id for label in await mailbox.labels()}, change.remove)
    return rest or change


async def wake(
    mailbox: Mailbox,
    message_id: str,
    label_ids: frozenset[str],
    hidden_at: int | None,
    *,
    was_hidden: bool = True,
    place: str | None = None,
) -> Placed | None:
    """Return snoozed mail to the inbox, whatever happened to its label; None if it is gone.

    The user may have moved it themselves. Mail in the trash or in spam stays there. Mail that was put into the inbox
    after it had been hidden (`hidden_at`, a position in the mailbox's history) and is no longer there was archived.
    In doubt it comes back: mail that is seen twice does less harm than mail that is never seen again. If the snooze was
    interrupted (not `was_hidden`), only the label tells: without it, nothing was done. `place` is where it was last
    put, if the mailbox can have copies of it elsewhere.
    """
    try:
        await mailbox.expect(message_id, place, label_ids, frozenset({"INBOX"}))
        seen = await mailbox.look_at(message_id)
        labels = seen.labels
        if _are_folders(label_ids) and _are_folders(others := places_in(labels) - label_ids):
            label_ids |= others if await _is_snooze_folder(mailbox, message_id, place, label_ids) else frozenset()
        stays = places_in(labels) - label_ids or not (was_hidden or label_ids & labels)
        add = frozenset[str]() if stays else frozenset({"INBOX"})
        if add and hidden_at is not None and seen.history_id > hidden_at:
            add = frozenset[str]() if await mailbox.entered_inbox_since(message_id, hidden_at) else add
        change = LabelChange(add, label_ids & labels)
        return await mailbox.modify(message_id, change.add, change.remove) if change else Placed(message_id, labels)
    except MessageGone:
        return None


def _are_folders(labels: frozenset[str]) -> bool:
    return bool(labels) and all(each.startswith(FOLDER) for each in labels)


async def _is_snooze_folder(mailbox: Mailbox, message_id: str, place: str | None, label_ids: frozenset[str]) -> bool:
    """Return whether the message is in the folder for snoozed mail, which somebody has renamed. If there is no folder
    of the old name, it may be, so that the mail comes back.
    """
    if place is not None and await mailbox.renamed(message_id, place) is not None:
        return True
    return not label_ids & {each.id for each in await mailbox.labels()}
