"""Find the label that an action names, and create it only if a person wants it.

A label that the user deleted or renamed is not created again for a rule that is older than that. The mailbox is asked
each time, so a rule is disabled by its first action that misses the label, not only by the next sync.
"""

from dataclasses import dataclass

from postroom.core.errors import Fatal
from postroom.core.mail.mailbox import Mailbox, find_label
from postroom.store.actions.actions import Action
from postroom.store.engine.database import Database
from postroom.store.mail import labels as store
from postroom.system.wall_clock import Clock


@dataclass(frozen=True, slots=True)
class LabelFinder:
    """Find labels in a mailbox, and keep the stored labels up to date."""

    database: Database
    clock: Clock

    async def id_of(self, mailbox: Mailbox, action: Action, name: str, *, is_removed: bool) -> str:
        """Return the label's id. Raise Fatal if there is none and it must not be created."""
        asked_at = self.clock()
        labels = await mailbox.labels()
        if (found := find_label(labels, name)) is not None:
            return found.id
        await self.database.run(store.sync_labels(action.account_id, store.seen(labels), self.clock(), asked_at))
        reason = await self._why_not(action, name, is_removed)
        if reason is not None:
            raise Fatal(f"the label {name!r} {reason}")
        return await self._create(mailbox, action, name)

    async def _why_not(self, action: Action, name: str, is_removed: bool) -> str | None:
        lost = await self.database.run(store.why_not_created(action.account_id, name, action.asked_at))
        if lost is not None:
            return f"{lost}; it is created again only if you ask for it"
        if is_removed:
            return "does not exist in the mailbox"
        if action.actor == "model" or action.asked_at is None:
            return "does not exist in the mailbox, and only people and their rules create labels"
        return None

    async def _create(self, mailbox: Mailbox, action: Action, name: str) -> str:
        id = await mailbox.create_label(name)
        await self.database.run(store.keep_label(action.account_id, store.SeenLabel(id, name, "user"), self.clock()))
        return id
