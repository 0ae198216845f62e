"""The things to try in the demo, ticked when they were tried, by whatever means: the audit log tells.

Only that a person has read a message is not audited; the demo's folder keeps a file for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postroom.core.audited_actions import AuditedAction
from postroom.store.engine.database import Database
from postroom.store.people.audit import list_audit
from postroom.words.demo import THINGS, Thing, ThingName

READ = "a-message-was-read"
AUDITED: Mapping[ThingName, Sequence[AuditedAction]] = {
    "answer": ("approval.approve", "approval.reject"),
    "undo": ("action.undo", "actions.undo"),
    "rule": ("rules.add",),
    "pause": ("mutations.resume",),
}


@dataclass(frozen=True, slots=True)
class TriedThing:
    thing: Thing
    is_tried: bool


@dataclass(frozen=True, slots=True)
class DemoTour:
    """The tour of the demo in this folder."""

    folder: Path
    database: Database

    def note_read(self) -> None:
        (self.folder / READ).touch()

    async def things(self) -> Sequence[TriedThing]:
        return [TriedThing(each, await self._is_tried(each.name)) for each in THINGS]

    async def _is_tried(self, name: ThingName) -> bool:
        if name == "read":
            return (self.folder / READ).exists()
        for action in AUDITED[name]:
            if await self.database.run(list_audit(1, action=action)):
                return True
        return False
