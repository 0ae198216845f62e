"""Changes a message at Gmail over IMAP: labels by X-GM-LABELS, and moves only into and out of the trash and spam.

To archive is to take the label of the inbox away. Removing a message from a folder for good works in the trash only:
elsewhere Gmail archives it, or does as its settings say.
"""

from collections.abc import Collection

from postroom.mailboxes.imap.answers import GMAIL_LABEL
from postroom.mailboxes.imap.changes import Changer, PlaceLost
from postroom.mailboxes.imap.errors import FolderForbidden
from postroom.mailboxes.imap.folder_names import decoded
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.identity import MessageId
from postroom.mailboxes.imap.labels import Plan
from postroom.mailboxes.imap.places import Place

INBOX = b"\\Inbox"


class GmailChanger(Changer):
    """The same through Gmail's labels."""

    async def carry_out(self, message: MessageId, place: Place, plan: Plan) -> Place:
        # What leaves the trash gets its labels afterwards, what goes there has them before: there it has none.
        if plan.to_archive:
            place = await self.move(message, place, await self.role_folder("ARCHIVE"))
        for sign, labels in (("+", plan.add_labels), ("-", plan.remove_labels)):
            place = await self._label(message, place, sign, labels)
        stays = Plan(plan.add_flags, plan.remove_flags, plan.folder, to_archive=False)
        return await super().carry_out(message, place, stays)

    async def move(self, message: MessageId, place: Place, target: Folder) -> Place:
        """Move it there; out of the trash and spam, to no other place."""
        moved = await super().move(message, place, target)
        if target.role == "ARCHIVE" and place.folder.role != "ARCHIVE":
            return await self._label(message, moved, "-", [INBOX])
        return moved

    async def remove(self, message: MessageId, place: Place) -> None:
        """Delete it for good."""
        await super().remove(message, await self.move(message, place, await self.role_folder("TRASH")))

    async def _label(self, message: MessageId, place: Place, sign: str, labels: Collection[bytes]) -> Place:
        """Add or remove labels, those that differ, and check that it was done."""
        wanted = [each for each in sorted(labels) if _has(place, each) != (sign == "+")]
        if not wanted:
            return place
        await self.at(place, "UID STORE", lambda check: self._session.store_labels(place.uid, sign, wanted, check))
        found = await self._finder.matching(place.folder, place.uidvalidity, [place.uid], message)
        if not found:
            raise PlaceLost
        if any(_has(found[0], each) != (sign == "+") for each in wanted):
            raise FolderForbidden("UID STORE", "the label does not stick")
        return found[0]


def _has(place: Place, label: bytes) -> bool:
    return (GMAIL_LABEL + decoded(label)).lower() in {each.lower() for each in place.flags}
