"""Carries out one label action: pre-image first, then the change, then the end of action and job together.

Every step may be repeated: the pre-image is kept once, adding or removing a label twice is the same as once, and what
was really changed is computed against the pre-image.
"""

from postroom.core.actions import LabelChange, label_change, undo_hint, wanted_label
from postroom.core.jobs import Job
from postroom.core.mailbox import Mailbox
from postroom.store import actions as store
from postroom.store.clock import Clock
from postroom.store.database import Database


async def carry_out(database: Database, mailbox: Mailbox, job: Job, action: store.Action, clock: Clock) -> store.Ending:
    """Does it, and returns the transaction that ends action and job."""
    label = wanted_label(action.action_type, action.parameters)
    label_id = None if label is None else await mailbox.label_id(label)
    before = action.pre_labels
    if before is None:
        before = await mailbox.labels_of(action.provider_message_id)
        await database.run(store.keep_pre_image(job, action.id, before, clock()))
    change = label_change(action.action_type, label_id).effective(before)
    after = await _apply(mailbox, action.provider_message_id, change, before)
    return store.complete_action(job, action.id, after, undo_hint(action.action_type, before, change), clock())


async def _apply(mailbox: Mailbox, message_id: str, change: LabelChange, before: frozenset[str]) -> frozenset[str]:
    if not change.add and not change.remove:
        return before
    return await mailbox.modify(message_id, add=change.add, remove=change.remove)
