"""Sends mail from an IMAP mailbox: a draft in the drafts folder, its content over SMTP submission, and a copy in sent
mail where the server files none.

IMAP has no command that sends a draft. So flags of the draft say how far it is, and stay when a process dies. They are
flags that every server knows, and that make no other program remove the draft:

    none of these           it was not sent
    \\Answered              its content may have left: set before its first byte does
    and \\Flagged           the server has taken it; what remains is to file the copy
    gone                    the copy is filed

A server that refuses the mail gets its draft back: the flag is removed. If a process dies between the first byte and
`\\Flagged`, only a copy that the server itself has filed shows that the mail was sent. Without one nobody can tell, and
a person is asked.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.parser import BytesHeaderParser
from typing import NamedTuple
from uuid import UUID

import structlog

from postroom.core.errors import MailboxRefused, MailboxUnreachable, NotSent, PostroomError
from postroom.core.mail.carrier import MARK, DraftKept, MarkedDraft, SentMail
from postroom.mailboxes.imap import our_mail
from postroom.mailboxes.imap.changes import Changer, PlaceLost
from postroom.mailboxes.imap.errors import BadAnswer, FolderForbidden, ServerFailed
from postroom.mailboxes.imap.labels import DELETED
from postroom.mailboxes.imap.mailbox import ImapMailbox
from postroom.mailboxes.imap.our_mail import OurMail
from postroom.mailboxes.imap.places import Finder
from postroom.mailboxes.imap.source import LARGEST_MESSAGE
from postroom.mailboxes.imap.submission import NoReply, Submitter
from postroom.outbound.smtp.lines import with_whole_line_ends

log = structlog.get_logger()

LEAVING, TAKEN = "\\Answered", "\\Flagged"
NEWEST = 50
# How long a server that files copies itself is given to do so, in seconds between the looks.
LOOKS = (0.0, 1.0, 4.0, 10.0)
# The waits before it is marked as taken once more.
MARKING = (0.0, 1.0, 5.0)
# How long a stopping process waits for a mail whose content is under way.
GRACE_S = 30.0
FILING_S = 60.0

Sleep = Callable[[float], Awaitable[None]]


class DraftId(NamedTuple):
    """A draft: our mark, and its place in the drafts folder."""

    mark: UUID
    uidvalidity: int
    uid: int

    def __str__(self) -> str:
        return f"{self.mark}.{self.uidvalidity}.{self.uid}"

    @classmethod
    def of(cls, draft: OurMail) -> "DraftId":
        return cls(draft.mark, draft.place.uidvalidity, draft.place.uid)

    @classmethod
    def parse(cls, text: str) -> "DraftId | None":
        mark, _, place = text.partition(".")
        validity, _, uid = place.partition(".")
        try:
            return cls(UUID(mark), int(validity), int(uid))
        except ValueError:
            return None


@dataclass(eq=False, slots=True)
class ImapCarrier:
    """Sends mail from one mailbox, which must be under a permit to change anything. `address` is its own."""

    mailbox: ImapMailbox
    submission: Submitter
    address: str
    sleep: Sleep = asyncio.sleep
    grace_s: float = GRACE_S

    # drafts

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        """The conversation is in the mail's own headers; the Message-ID is given to it here, before it can leave."""
        del thread_id
        content, mark = with_message_id(mail, self.address)
        async with self.mailbox.changing("create_draft") as (finder, changer):
            folder = await changer.role_folder("DRAFT")
            flags = ["\\Draft", "\\Seen"]
            await changer.run("APPEND", lambda check: finder.session.append(folder.wire, content, flags, check))
            drafts = await our_mail.drafts_in(finder, mark)
            made = [each for each in drafts if not each.has(LEAVING)]
            if not made:
                raise ServerFailed("APPEND", "the draft is not there")
            for old in drafts:
                # A person has said that this one was not sent: otherwise there would be no other.
                if old.has(LEAVING):
                    await _remove(finder, changer, old)
            return _as_kept(made[0])

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        async with self.mailbox.finding() as finder:
            return [_as_kept(each) for each in await our_mail.drafts_in(finder, mark) if not each.has(LEAVING)]

    async def has_draft(self, draft_id: str) -> bool:
        async with self.mailbox.finding() as finder:
            return await _unsent(finder, draft_id) is not None

    async def delete_draft(self, draft_id: str) -> None:
        async with self.mailbox.changing("delete_draft") as (finder, changer):
            if (draft := await _unsent(finder, draft_id)) is not None:
                await _remove(finder, changer, draft)

    async def marked_drafts(self) -> list[MarkedDraft]:
        async with self.mailbox.finding() as finder:
            drafts = await our_mail.drafts_in(finder)
            return [MarkedDraft(*_as_kept(each), each.mark) for each in drafts if not each.has(LEAVING)]

    # sending

    async def send_draft(self, draft_id: str) -> str | None:
        async with self.mailbox.changing("send") as (finder, changer):
            await self._file_leftovers(finder, changer)
            draft = await _unsent(finder, draft_id)
            if draft is None:
                return None
            content = await _content(finder, draft)
        leaves = asyncio.Event()
        sending = asyncio.create_task(self._send(draft, content, leaves), name="postroom-submission")
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            # What has begun to leave is given the time to end: otherwise nobody could tell what became of it.
            if leaves.is_set():
                await asyncio.wait({sending}, timeout=self.grace_s)
            sending.cancel()
            await asyncio.wait({sending})
            raise

    async def _send(self, draft: OurMail, content: bytes, leaves: asyncio.Event) -> str | None:
        with contextlib.ExitStack() as on_the_wire:

            async def leaving() -> None:
                async with self.mailbox.changing("send") as (finder, changer):
                    leaves.set()
                    await _flag(finder, changer, draft, "+", LEAVING)
                    await changer.begin("send", on_the_wire)

            try:
                goodbye = await self.submission.submit(content, leaving)
            except PlaceLost:
                return None
            except NoReply:
                raise
            except BaseException:
                if leaves.is_set():
                    await self._give_back(draft)
                raise
        try:
            return await self._file_copy(draft, content)
        finally:
            await goodbye()

    async def _give_back(self, draft: OurMail) -> None:
        """Make it a draft again: it was certainly not sent. If that fails, a person is asked in the end."""
        try:
            async with asyncio.timeout(FILING_S), self.mailbox.changing("send") as (finder, changer):
                await _flag(finder, changer, draft, "-", LEAVING)
        except (PostroomError, PlaceLost, TimeoutError, OSError) as error:
            log.warning("imap.draft_not_given_back", delivery=draft.mark, error=type(error).__name__)

    # the copy

    async def _file_copy(self, draft: OurMail, content: bytes) -> str:
        """File the copy of a mail that was taken. A failure changes nothing about that: it is filed later."""
        try:
            async with asyncio.timeout(FILING_S + sum(LOOKS)):
                await self._mark_taken(draft)
                await self._wait_for_copy(draft)
                async with self.mailbox.changing("file") as (finder, changer):
                    return await self._file(finder, changer, draft, content)
        except (PostroomError, PlaceLost, TimeoutError, OSError) as error:
            log.warning("imap.copy_not_filed", delivery=draft.mark, error=type(error).__name__)
            return draft.message_id

    async def _mark_taken(self, draft: OurMail) -> None:
        """Mark it, also if the connection was lost while the mail was handed over."""
        for wait_s in MARKING:
            try:
                async with self.mailbox.changing("file") as (finder, changer):
                    return await _flag(finder, changer, draft, "+", TAKEN)
            except (MailboxUnreachable, NotSent):
                await self.sleep(wait_s)
        async with self.mailbox.changing("file") as (finder, changer):
            await _flag(finder, changer, draft, "+", TAKEN)

    async def _wait_for_copy(self, draft: OurMail) -> None:
        for wait_s in LOOKS if self.submission.files_copies else ():
            await self.sleep(wait_s)
            async with self.mailbox.finding() as finder:
                if await our_mail.copy_of(finder, draft) is not None:
                    return

    async def _file(self, finder: Finder, changer: Changer, draft: OurMail, content: bytes) -> str:
        """Put the copy into sent mail, unless one is there, and remove the draft."""
        if await our_mail.copy_of(finder, draft) is None:
            folder = await changer.role_folder("SENT")
            await changer.run("APPEND", lambda check: finder.session.append(folder.wire, content, ["\\Seen"], check))
        copy = await our_mail.copy_of(finder, draft)
        id = draft.message_id if copy is None else await our_mail.id_in_mailbox(finder, copy)
        await _remove(finder, changer, draft)
        return id

    async def _file_leftovers(self, finder: Finder, changer: Changer) -> None:
        """File the copies of mail that was taken before something went wrong."""
        for draft in await _taken_drafts(finder):
            try:
                await self._file(finder, changer, draft, await _content(finder, draft))
            except (PlaceLost, MailboxRefused, NotSent, ServerFailed) as error:
                log.warning("imap.copy_not_filed", delivery=draft.mark, error=type(error).__name__)

    # sent mail

    async def find_sent(self, mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        """Among the drafts, if it was taken and is not filed yet; in sent mail; or wherever its owner has put it."""
        del threads
        async with self.mailbox.finding() as finder:
            taken = [each for each in await _taken_drafts(finder) if each.mark == mark]
            content = await _content(finder, taken[0]) if taken else b""
            found = None if taken else await our_mail.find_sent(finder, mark, since)
            id = None if found is None else await our_mail.id_in_mailbox(finder, found)
        if taken:
            return await self._file_copy(taken[0], content)
        if id is not None:
            await self._remove_left(mark)
        return id

    async def _remove_left(self, mark: UUID) -> None:
        """Remove the draft of a mail that was found in sent mail."""
        try:
            async with self.mailbox.changing("find_sent") as (finder, changer):
                for each in await our_mail.drafts_in(finder, mark):
                    if each.has(LEAVING):
                        await _remove(finder, changer, each)
        except (PostroomError, PlaceLost) as error:
            log.info("imap.draft_left", delivery=mark, error=type(error).__name__)

    async def newest_sent(self) -> list[SentMail]:
        async with self.mailbox.finding() as finder:
            sent = await our_mail.newest_in(finder, "SENT", NEWEST, b"ALL")
            return await _as_sent(finder, [*await _taken_drafts(finder), *sent])

    async def sent_since(self, since: datetime) -> list[SentMail]:
        async with self.mailbox.finding() as finder:
            sent = await our_mail.sent_since(finder, since, self.address)
            return await _as_sent(finder, [*await _taken_drafts(finder), *sent])


async def _as_sent(finder: Finder, found: Sequence[OurMail]) -> list[SentMail]:
    once: dict[UUID, OurMail] = {}
    for each in found:
        once.setdefault(each.mark, each)
    return [each.as_sent(await our_mail.id_in_mailbox(finder, each)) for each in once.values()]


def with_message_id(mail: bytes, address: str) -> tuple[bytes, UUID]:
    """The mail with a Message-ID made of its mark, unless it has one, and with whole line ends; and the mark."""
    head = BytesHeaderParser().parsebytes(mail)
    try:
        mark = UUID(str(head.get(MARK, "")).strip())
    except ValueError:
        raise BadAnswer(f"a mail to send has no {MARK}") from None
    mail = with_whole_line_ends(mail)
    if head.get("Message-ID") is not None:
        return mail, mark
    domain = address.rpartition("@")[2]
    return f"Message-ID: <{mark}@{domain}>\r\n".encode() + mail, mark


def _as_kept(draft: OurMail) -> DraftKept:
    return DraftKept(str(DraftId.of(draft)), draft.message_id)


async def _unsent(finder: Finder, draft_id: str) -> OurMail | None:
    """The draft, unless it is gone or its content may have left."""
    wanted = DraftId.parse(draft_id)
    if wanted is None:
        return None
    found = await our_mail.drafts_in(finder, wanted.mark, f"UNDELETED UID {wanted.uid}".encode())
    return next((each for each in found if DraftId.of(each) == wanted and not each.has(LEAVING)), None)


async def _taken_drafts(finder: Finder) -> list[OurMail]:
    """Drafts that the server has taken, and whose copies may not be filed yet."""
    return [
        each
        for each in await our_mail.drafts_in(finder, None, b"UNDELETED ANSWERED FLAGGED")
        if each.has(LEAVING, TAKEN)
    ]


async def _content(finder: Finder, draft: OurMail) -> bytes:
    await finder.open(draft.place.folder, is_fresh=True)
    content = bytearray()
    async for chunk in finder.session.body(draft.place.uid, LARGEST_MESSAGE):
        content += chunk
    if not content:
        raise ServerFailed("UID FETCH", "the draft is gone")
    return bytes(content)


async def _flag(finder: Finder, changer: Changer, draft: OurMail, sign: str, flag: str) -> None:
    """Add or remove a flag of the draft, and check that it was done. Raises PlaceLost if the draft is gone."""
    place = draft.place
    await changer.at(place, "UID STORE", lambda check: finder.session.store([place.uid], sign, [flag], check))
    found = await finder.session.fetch([place.uid], "FLAGS")
    if not found:
        raise PlaceLost
    if (flag.lower() in {each.lower() for each in found[0].flags}) != (sign == "+"):
        raise FolderForbidden("UID STORE", "the flag does not stick")


async def _remove(finder: Finder, changer: Changer, draft: OurMail) -> None:
    """Remove the draft. On Gmail it goes to the trash: an expunge there removes only a label. Without UIDPLUS it stays,
    marked as deleted.
    """
    place, trash = draft.place, finder.folders.of_role("TRASH")
    if finder.session.offers("X-GM-EXT-1", "MOVE") and trash is not None:
        await changer.at(place, "UID MOVE", lambda check: finder.session.move([place.uid], trash.wire, check))
        return
    await changer.at(place, "UID STORE", lambda check: finder.session.store([place.uid], "+", [DELETED], check))
    if finder.session.offers("UIDPLUS"):
        await changer.at(place, "UID EXPUNGE", lambda check: finder.session.expunge([place.uid], check))
