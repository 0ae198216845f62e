"""Changes a message in an IMAP mailbox: its flags, and where it is.

| the server has | a move is |
|---|---|
| MOVE | UID MOVE, in one step |
| UIDPLUS only | UID COPY, mark as deleted, UID EXPUNGE of just this one |
| neither | UID COPY, mark as deleted; the marked one counts as gone, and is used again when the message comes back |

Where the copy is, COPYUID tells; without it, or if it is wrong, the folder is searched. Each step may be repeated: a
message that an earlier attempt has moved is found where it is now, and one that was copied is not copied again.
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack
from typing import TypeVar

from postroom.mailboxes.imap.answers import GMAIL_LABEL, Copied
from postroom.mailboxes.imap.connection import Check
from postroom.mailboxes.imap.errors import FolderForbidden, NoSuchFolder, ServerFailed
from postroom.mailboxes.imap.folders import CREATED, Folder, FolderMap, Role
from postroom.mailboxes.imap.gated import GatedCommands
from postroom.mailboxes.imap.identity import MessageId
from postroom.mailboxes.imap.labels import DELETED, Plan
from postroom.mailboxes.imap.places import Finder, Place

T = TypeVar("T")
# What the server sets by itself.
_OWN = frozenset({"\\recent"})


class PlaceLost(Exception):
    """The message is not where it was just seen: somebody moved it, or the folder was made anew. Look again."""


class Changer:
    """Carries out changes through the gate, on one connection."""

    def __init__(self, finder: Finder, gated: GatedCommands, refresh: Callable[[], Awaitable[FolderMap]]) -> None:
        self._finder = finder
        self._session = finder.session
        self._gated = gated
        self._refresh = refresh
        self.has_asked = False

    async def carry_out(self, message: MessageId, place: Place, plan: Plan) -> Place:
        """Change the flags, then the folder; where the message is then. Raises PlaceLost."""
        for sign, flags in (("+", plan.add_flags), ("-", plan.remove_flags)):
            place = await self._store(message, place, sign, flags)
        target = await self.role_folder("ARCHIVE") if plan.to_archive else plan.folder
        return place if target is None else await self.move(message, place, target)

    async def role_folder(self, role: Role) -> Folder:
        """The folder for this, made if the mailbox has none."""
        if (found := self._finder.folders.of_role(role)) is not None:
            return found
        return await self.create(CREATED[role], role)

    async def create(self, name: str, role: Role | None = None) -> Folder:
        """Make a folder of the user; it need not be new."""
        wire = self._finder.folders.to_create(name)

        async def make(check: Check) -> None:
            await self._session.create(wire, check)
            await self._session.subscribe(wire, check)

        try:
            await self.run("CREATE", make)
        finally:
            self._finder.folders = await self._refresh()
        found = self._finder.folders.at(wire) or (None if role is None else self._finder.folders.of_role(role))
        if found is None:
            raise NoSuchFolder(name)
        return found

    async def move(self, message: MessageId, place: Place, target: Folder) -> Place:
        """Move it there. Raises PlaceLost."""
        if place.folder == target:
            return place
        if self._session.offers("MOVE"):
            copied = await self.at(place, "UID MOVE", lambda check: self._session.move([place.uid], target.wire, check))
            return await self._find_arrival(message, place, target, copied)
        found = await self._copy(message, place, target)
        await self._remove(message, place)
        self._finder.end_copy(message.text)
        return found

    async def remove(self, message: MessageId, place: Place) -> None:
        """Delete it for good; needs UIDPLUS."""
        await self._remove(message, place)

    async def _copy(self, message: MessageId, place: Place, target: Folder) -> Place:
        """The copy in the target: one that we have left there, marked as deleted or by an attempt that was interrupted;
        or a new one. Others may have put a copy there, which stays theirs.
        """
        twins = await self._finder.in_folder(target, message)
        if not self._finder.may_have_copied(message.text):
            twins = [each for each in twins if each.is_deleted]
        for twin in sorted(twins, key=lambda each: each.is_deleted):
            # It has the flags of when it was left there; the message may have others by now.
            has, wants = _lower(twin.flags), _lower(place.flags) | _OWN
            twin = await self._store(
                message, twin, "+", [each for each in place.flags if each.lower() not in has | _OWN]
            )
            extra = [each for each in twin.flags if each.lower() not in wants]
            return await self._store(message, twin, "-", extra)
        self._finder.begin_copy(message.text)
        copied = await self.at(place, "UID COPY", lambda check: self._session.copy([place.uid], target.wire, check))
        return await self._find_arrival(message, place, target, copied)

    async def _remove(self, message: MessageId, place: Place) -> None:
        await self._store(message, place, "+", [DELETED])
        if self._session.offers("UIDPLUS"):
            await self.at(place, "UID EXPUNGE", lambda check: self._session.expunge([place.uid], check))

    async def _find_arrival(self, message: MessageId, place: Place, target: Folder, copied: Copied | None) -> Place:
        """The message in the target, with all the flags it had."""
        selected = await self._finder.open(target)
        found: list[Place] = []
        if copied is not None and place.uid in copied.uids and copied.uidvalidity == selected.uidvalidity:
            uids = [copied.uids[place.uid]]
            found = await self._finder.matching(target, selected.uidvalidity, uids, message)
        found = found or [each for each in await self._finder.in_folder(target, message) if not each.is_deleted]
        if not found:
            raise PlaceLost
        arrived = max(found, key=lambda each: each.uid)
        kept = _lower(arrived.flags) | _OWN
        lost = {each for each in place.flags if each.lower() not in kept and not each.startswith(GMAIL_LABEL)}
        return await self._store(message, arrived, "+", lost - {DELETED})

    async def _store(self, message: MessageId, place: Place, sign: str, flags: Collection[str]) -> Place:
        """Add or remove flags, those that differ, and check that it was done."""
        has = _lower(place.flags)
        wanted = [each for each in flags if (each.lower() in has) != (sign == "+")]
        if not wanted:
            return place
        await self.at(place, "UID STORE", lambda check: self._session.store([place.uid], sign, wanted, check))
        found = await self._finder.matching(place.folder, place.uidvalidity, [place.uid], message)
        if not found:
            raise PlaceLost
        now = _lower(found[0].flags)
        if any((each.lower() in now) != (sign == "+") for each in wanted):
            raise FolderForbidden("UID STORE", "the flag does not stick")
        return found[0]

    async def at(self, place: Place, name: str, send: Callable[[Check], Awaitable[T]]) -> T:
        """Send a command in the folder of this place, if that is still the same folder."""

        async def in_folder(check: Check) -> T:
            selected = await self._finder.open(place.folder, is_fresh=True)
            if selected.uidvalidity != place.uidvalidity:
                raise PlaceLost
            if selected.is_read_only:
                raise FolderForbidden(name, "READ-ONLY")
            return await send(check)

        try:
            return await self.run(name, in_folder)
        except ServerFailed as error:
            # Somebody has just removed it from this folder.
            if error.code == "EXPUNGEISSUED":
                raise PlaceLost from None
            raise

    async def begin(self, name: str, sending: ExitStack) -> None:
        """Ask the gate about something that leaves by another way than this connection."""
        await self._gated.begin(name, sending)

    async def ask(self, name: str) -> None:
        """Ask the gate about a change that needs no command."""
        self.has_asked = True
        await self._gated.ask(name)

    async def run(self, name: str, send: Callable[[Check], Awaitable[T]]) -> T:
        """Send a command through the gate."""
        self.has_asked = True
        return await self._gated.run(name, send)


def _lower(flags: Collection[str]) -> frozenset[str]:
    return frozenset(each.lower() for each in flags)
