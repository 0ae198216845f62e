"""A mailbox on an IMAP server as a connector reads it: messages by id, many in one answer, and lists, newest first."""

import hashlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from postroom.core.errors import MailboxError
from postroom.core.mail.categories import Category, queries_of
from postroom.core.mail.headers import head_of, read_head, values, with_line_ends
from postroom.mailboxes.following.source import LARGEST_HEAD, ReadMessage
from postroom.mailboxes.imap.account import ImapAccount
from postroom.mailboxes.imap.answers import Fetched, number_of
from postroom.mailboxes.imap.errors import AnswerTooLarge, FolderForbidden, NoSuchFolder, NoSuchMessage, ServerFailed
from postroom.mailboxes.imap.folder_cache import CachedFolders
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.identity import id_of, read_id
from postroom.mailboxes.imap.labels import Keywords, labels_of
from postroom.mailboxes.imap.places import Finder, KnownPlaces
from postroom.mailboxes.imap.search import found_pages

Form = Literal["full", "metadata", "minimal", "raw"]
CHUNK = 25
MOST_LISTED = 20_000
BATCH = 200
LARGEST_BATCH = 8 * 2**20
# The part of a message that is read. The rest of a larger one, mostly attachments, is left out, except from `raw`.
LARGEST_READ = 1024 * 1024
LARGEST_MESSAGE = 100 * 2**20
_OF_THREAD = frozenset({b"references", b"in-reply-to", b"message-id"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BODY: Mapping[Form, tuple[str, str]] = {
    "full": (f"BODY.PEEK[]<0.{LARGEST_READ}>", "BODY[]"),
    "raw": (f"BODY.PEEK[]<0.{LARGEST_READ}>", "BODY[]"),
    "metadata": (f"BODY.PEEK[HEADER]<0.{LARGEST_HEAD}>", "BODY[HEADER]"),
}


@dataclass(frozen=True, slots=True)
class ListedId:
    id: str


@dataclass(frozen=True, slots=True)
class FoundPage:
    messages: Sequence[ListedId]
    next_page_token: str | None
    result_size_estimate: int


class ImapSource:
    """The mailbox of one account, for reading. `known` are the places that the connector has just seen: messages there
    are read without a search.
    """

    def __init__(
        self, account: ImapAccount, known: KnownPlaces, keywords: Keywords, folders: CachedFolders | None = None
    ) -> None:
        self._account = account
        self._known = known
        self._keywords = keywords
        self._folders = folders or CachedFolders()
        self._bulk: ImapSource | None = None

    def for_use(self, use: Literal["live", "steady", "bulk"], /) -> "ImapSource":
        """The same mailbox: IMAP has no quota to share. Bulk remembers where its messages are by itself: a list of many
        must not make live mail forget.
        """
        if use != "bulk" or self._bulk is self:
            return self
        if self._bulk is None:
            other = copy(self)
            other._known = KnownPlaces(MOST_LISTED)
            self._bulk = other._bulk = other
        return self._bulk

    async def room(self, most: int, within_s: float, /) -> int:
        """All at once: there is no quota."""
        del within_s
        return most

    async def get_message(self, id: str, form: Form = "full", /) -> ReadMessage:
        (found,) = await self.get_messages([id], form)
        if isinstance(found, MailboxError):
            raise found
        return found

    async def get_messages(
        self, ids: Sequence[str], form: Form = "full", headers: Collection[str] = (), /
    ) -> Sequence[ReadMessage | MailboxError]:
        del headers
        found: dict[int, ReadMessage | MailboxError] = {}
        for begin in range(0, len(ids), CHUNK):
            part = await self._read(ids[begin : begin + CHUNK], form)
            found |= {begin + number: each for number, each in part.items()}
        return [found[number] for number in range(len(ids))]

    async def message_batches(self, ids: Sequence[str], /) -> AsyncGenerator[Mapping[int, ReadMessage | MailboxError]]:
        for begin in range(0, len(ids), BATCH):
            at = begin
            for group in await self._groups(ids[begin : begin + BATCH]):
                part = await self._read(group, "full")
                yield {at + number: each for number, each in part.items()}
                at += len(group)

    async def _groups(self, ids: Sequence[str]) -> list[list[str]]:
        """The ids in groups whose messages are not too large together."""
        async with self._finding() as finder:
            sizes: dict[str, int] = {}
            for wire, places in self._by_folder(ids).items():
                if (folder := finder.folders.at(wire)) is not None:
                    with suppress(NoSuchFolder, FolderForbidden):
                        await finder.open(folder)
                        for each in await finder.session.fetch(list(places), "RFC822.SIZE"):
                            sizes[places[each.uid][0]] = min(each.size, LARGEST_READ)
        groups: list[list[str]] = [[]]
        size = 0
        for id in ids:
            own = sizes.get(id, LARGEST_READ // 4)
            if groups[-1] and size + own > LARGEST_BATCH:
                groups.append([])
                size = 0
            groups[-1].append(id)
            size += own
        return groups

    async def message_pages(
        self, query: str = "", label_ids: Collection[str] = (), most: int = 100, /
    ) -> AsyncGenerator[FoundPage]:
        shown = 0
        async with aclosing(found_pages(self._finding, self._keywords, query, label_ids, most)) as pages:
            async for page in pages:
                shown += len(page.messages)
                for each in page.messages:
                    self._known.keep(each.id, each.place)
                ids = [ListedId(each.id) for each in page.messages]
                yield FoundPage(ids, None if page.is_last else str(shown), page.about)

    async def category_queries(self, categories: Sequence[Category], user_address: str, /) -> Sequence[str]:
        """All received mail: words in a text are found by some servers and missed by others, and there is no quota to
        save. Which messages are in a category, their content tells when they are read. Gmail searches as Gmail.
        """
        async with self._finding() as finder:
            if finder.folders.is_gmail:
                return queries_of(categories, user_address)
        return ["-in:sent -in:drafts"]

    @asynccontextmanager
    async def _finding(self) -> AsyncGenerator[Finder]:
        async with self._account.session() as session:
            yield Finder(session, await self._folders.of(session), self._known, self._keywords)

    async def _read(self, ids: Sequence[str], form: Form) -> dict[int, ReadMessage | MailboxError]:
        """Messages whose place is known come in one answer for each folder; the others are looked for."""
        async with self._finding() as finder:
            read: dict[str, ReadMessage | MailboxError] = {}
            for wire, places in self._by_folder(ids).items():
                if (folder := finder.folders.at(wire)) is not None:
                    read |= await self._in_folder(finder, folder, places, form)
            for id in dict.fromkeys(ids):
                if id not in read:
                    read[id] = await self._looked_for(finder, id, form)
            return {number: read[id] for number, id in enumerate(ids)}

    def _by_folder(self, ids: Sequence[str]) -> dict[bytes, dict[int, tuple[str, int]]]:
        """By folder and UID: the id, and the folder's UIDVALIDITY."""
        found: dict[bytes, dict[int, tuple[str, int]]] = {}
        for id in ids:
            if (known := self._known.get(id)) is not None:
                wire, uidvalidity, uid = known
                found.setdefault(wire, {})[uid] = (id, uidvalidity)
        return found

    async def _in_folder(
        self, finder: Finder, folder: Folder, places: Mapping[int, tuple[str, int]], form: Form
    ) -> dict[str, ReadMessage]:
        try:
            selected = await finder.open(folder)
        except MailboxError:
            return {}
        uids = [uid for uid, (_, uidvalidity) in places.items() if uidvalidity == selected.uidvalidity]
        read: dict[str, ReadMessage] = {}
        if not uids:
            return read
        most = 2 * len(uids) * LARGEST_READ
        for each in await finder.session.fetch_identified(uids, _items(finder, form), finder.scheme, most=most):
            id, _ = places.get(each.uid, ("", 0))
            if id and id_of(each, finder.scheme) == id and "\\Deleted" not in each.flags and not _is_empty(each, form):
                read[id] = await self._message(finder, folder, each, id, form)
        return read

    async def _looked_for(self, finder: Finder, id: str, form: Form) -> ReadMessage | MailboxError:
        if read_id(id) is None:
            return NoSuchMessage()
        try:
            place = await finder.find(id)
        except NoSuchMessage as error:
            return error
        for each in await finder.session.fetch_identified([place.uid], _items(finder, form), finder.scheme):
            if _is_empty(each, form):
                return ServerFailed("UID FETCH", "nothing of a message came")
            return await self._message(finder, place.folder, each, id, form)
        return NoSuchMessage()

    async def _message(self, finder: Finder, folder: Folder, found: Fetched, id: str, form: Form) -> ReadMessage:
        content = b"" if form == "minimal" else found.content(_BODY[form][1])
        if form == "raw" and found.size > LARGEST_MESSAGE:
            raise AnswerTooLarge(f"a message has {found.size:,} bytes; at most {LARGEST_MESSAGE:,} are read")
        if form == "raw" and len(content) >= LARGEST_READ:
            content = b"".join([chunk async for chunk in finder.session.body(found.uid, found.size)])
        is_whole = form in ("full", "raw") and (form == "raw" or len(content) < LARGEST_READ)
        return ReadMessage(
            id,
            labels_of(folder, found.flags),
            found.internal_date or _EPOCH,
            found.size,
            content,
            content if is_whole else None,
            _thread_of(found, content),
        )


def _is_empty(found: Fetched, form: Form) -> bool:
    """Whether nothing came of a message: so servers answer if somebody removes it meanwhile, some with a size of 0."""
    return form != "minimal" and not found.content(_BODY[form][1])


def _items(finder: Finder, form: Form) -> str:
    """The items of a message besides those that tell its id."""
    dated = "" if finder.scheme == "hash" else " INTERNALDATE"
    body = "" if form == "minimal" else f" {_BODY[form][0]}"
    thread = " X-GM-THRID" if finder.scheme == "gmail" else ""
    return f"FLAGS RFC822.SIZE{dated}{thread}{body}"


def _thread_of(found: Fetched, content: bytes) -> str:
    """The conversation: as Gmail says, or the first message that it refers to, or itself. As a hash: the ids are a
    stranger's text.
    """
    if thread := number_of(found.items.get("X-GM-THRID")):
        return f"t-{thread}"
    headers = read_head(head_of(with_line_ends(content[:LARGEST_HEAD])), _OF_THREAD).headers if content else ()
    for name in ("references", "in-reply-to", "message-id"):
        for value in values(headers, name):
            if words := value.split():
                return f"t-{hashlib.sha256(words[0].encode(errors='replace')).hexdigest()[:24]}"
    return ""
