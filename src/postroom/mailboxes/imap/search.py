"""Searches the folders of a mailbox, newest first, and looks at what it finds: a search may lie.

First the server tells where messages are that may be meant, and when they came. Then they are identified and compared
with the query page by page, so that whoever wants only the newest does not pay for all.
"""

import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal, NamedTuple, Protocol

from postroom.core.errors import BadInput
from postroom.core.mail.mailbox_query import (
    EVERYTHING,
    LONGEST_QUERY,
    NOTHING,
    HasAttachment,
    Query,
    looks_into,
    read_mailbox_query,
)
from postroom.core.mail.mime import parse_message
from postroom.mailboxes.imap.answers import Fetched
from postroom.mailboxes.imap.commands import Part, string
from postroom.mailboxes.imap.criteria import (
    HEADERS_READ,
    Criteria,
    CriteriaFacts,
    criteria_of,
    fits,
    in_folder,
    needs,
    needs_headers,
    needs_text,
    shows_attachment,
)
from postroom.mailboxes.imap.errors import CommandRefused, FolderForbidden, NoSuchFolder, QueryRefused, ServerFailed
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.identity import id_of
from postroom.mailboxes.imap.labels import KEYWORD, Keywords
from postroom.mailboxes.imap.newest import NewestFirst, Spot
from postroom.mailboxes.imap.places import Finder, Place

AT_ONCE = 200
# Where the server searches ASCII only, this many messages are read to find the others; each up to this size.
MOST_READ = 500
READ_AT_ONCE = 20
LARGEST_READ = 256 * 1024
_HIDDEN: tuple[Literal["TRASH", "SPAM"], ...] = ("TRASH", "SPAM")
_HIDDEN_AT_GMAIL = re.compile(r"\b(?:in|is):(?:trash|bin|spam|anywhere)\b", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FoundMessage(NamedTuple):
    id: str
    place: Place


class Found(NamedTuple):
    """A part of what a search has found. There may be more if not `is_last`; `about` is how many all are at most."""

    messages: Sequence[FoundMessage]
    is_last: bool
    about: int


class Opening(Protocol):
    """Opens the mailbox for one step: others may use its connection between two."""

    def __call__(self) -> AbstractAsyncContextManager[Finder]: ...


async def found_pages(
    opening: Opening, keywords: Keywords, query: str, label_ids: Collection[str], most: int = AT_ONCE
) -> AsyncGenerator[Found]:
    """The messages that the query means and that have all of the labels, newest first, each once; at most this many on
    a page. Without a place in either, the trash and spam are left out. Raises QueryRefused for a query that cannot be
    searched for.
    """
    async with opening() as finder:
        wanted, raw = (EVERYTHING, query.strip()) if finder.folders.is_gmail else (_parse(query), "")
        matches = await _matches(finder, keywords, wanted, label_ids, raw)
        step = AT_ONCE if finder.session.searches_utf8 or not needs_text(wanted) else READ_AT_ONCE
    seen: set[str] = set()
    page: list[FoundMessage] = []
    for begin in matches.begins(datetime.now(UTC)):
        async with opening() as finder:
            keys = await matches.since(finder, begin)
        for at in range(0, len(keys), step):
            spots = [matches.spot(each) for each in keys[at : at + step]]
            async with opening() as finder:
                for each in await _identify(finder, spots, wanted):
                    if each.id not in seen and places_among(label_ids) <= each.place.labels:
                        seen.add(each.id)
                        page.append(each)
            while len(page) > most:
                yield Found(page[:most], False, matches.count)
                page = page[most:]
    yield Found(page, True, matches.count)


def _parse(query: str) -> Query:
    try:
        return read_mailbox_query(query, datetime.now(UTC))
    except BadInput as error:
        raise QueryRefused(str(error)) from None


async def _matches(
    finder: Finder, keywords: Keywords, query: Query, label_ids: Collection[str], raw: str
) -> NewestFirst:
    """The messages that the server finds. `raw` is a query that Gmail reads itself."""
    found = NewestFirst()
    own = _label_criteria(keywords, label_ids)
    if raw:
        if len(raw) > 2 * LONGEST_QUERY or any(ord(each) < 0x20 for each in raw):
            raise QueryRefused("query: is too long or has control characters; write it on one line")
        own += [b" X-GM-RAW ", string(raw)]
    for folder in _folders(finder, query, label_ids, raw):
        here = in_folder(query, folder)
        if here == NOTHING:
            continue
        try:
            selected = await finder.open(folder)
            uids = await _search(finder, here, own)
        except (NoSuchFolder, FolderForbidden):
            continue
        found.add(folder, selected.uidvalidity, uids)
    return found


async def _search(finder: Finder, query: Query, own: Sequence[Part]) -> list[int]:
    session = finder.session
    if session.searches_utf8:
        try:
            return await session.search_for(_parts_of(criteria_of(query), own))
        except CommandRefused as error:
            if error.code != "BADCHARSET":
                raise
            session.searches_utf8 = False
    uids = await session.search_for(_parts_of(criteria_of(query, ascii_only=True), own))
    if needs_text(query) and len(uids) > MOST_READ:
        raise QueryRefused(
            f"query: the server searches for plain ASCII only, and {len(uids):,} messages would have to be read; "
            f"add after: and before:, so that no more than {MOST_READ} are left"
        )
    return uids


def _parts_of(criteria: Criteria | None, own: Sequence[Part]) -> list[Part]:
    return [b"UNDELETED", *own, *(() if criteria is None else (b" ", *criteria.parts))]


async def _identify(finder: Finder, spots: Sequence[Spot], query: Query) -> list[FoundMessage]:
    """Those of the messages that are meant, in their order."""
    found: dict[tuple[bytes, int], FoundMessage] = {}
    for folder, group in groupby(sorted(spots, key=lambda each: each.folder.wire), key=lambda each: each.folder):
        there = list(group)
        try:
            selected = await finder.open(folder)
        except (NoSuchFolder, FolderForbidden):
            continue
        if any(each.uidvalidity != selected.uidvalidity for each in there):
            raise ServerFailed("UID SEARCH", "a folder was made anew meanwhile")
        uids = [each.uid for each in there]
        here = in_folder(query, folder)
        items = "FLAGS RFC822.SIZE" if finder.scheme == "hash" else "FLAGS RFC822.SIZE INTERNALDATE"
        fetched = await finder.session.fetch_identified(uids, items, finder.scheme)
        read = await _read(finder, here, uids)
        for each in fetched:
            id = id_of(each, finder.scheme)
            place = Place(folder, selected.uidvalidity, each.uid, each.flags)
            if id is not None and not place.is_deleted and _is_meant(here, folder, each, read.get(each.uid)):
                found[(folder.wire, each.uid)] = FoundMessage(id, place)
    keys = [(each.folder.wire, each.uid) for each in spots]
    return [found[key] for key in keys if key in found]


async def _read(finder: Finder, query: Query, uids: Sequence[int]) -> Mapping[int, Fetched]:
    """The items to fetch for the check, besides flags and date."""
    items: list[str] = []
    if not finder.session.searches_utf8 and needs_text(query):
        items.append(f"BODY.PEEK[]<0.{LARGEST_READ}>")
    elif needs_headers(query):
        items.append(f"BODY.PEEK[HEADER.FIELDS ({HEADERS_READ})]")
    if needs(query, HasAttachment):
        items.append("BODYSTRUCTURE")
    if not items:
        return {}
    fetched = await finder.session.fetch(uids, " ".join(items), most=2 * len(uids) * LARGEST_READ)
    return {each.uid: each for each in fetched}


def _is_meant(query: Query, folder: Folder, message: Fetched, read: Fetched | None) -> bool:
    if query == EVERYTHING:
        return True
    date, size = message.internal_date or _EPOCH, message.size
    if read is None:
        return fits(query, CriteriaFacts(folder, message.flags, date, size)) is not False
    head = next((read.content(name) for name in read.items if name.startswith("BODY[HEADER")), None)
    whole = read.content("BODY[]") if "BODY[]" in read.items else None
    parsed = None if head is None and whole is None else parse_message(whole or head or b"")
    structure = read.items.get("BODYSTRUCTURE")
    seen = CriteriaFacts(
        folder,
        message.flags,
        date,
        size,
        None if parsed is None else parsed.headers,
        None if parsed is None or whole is None else parsed.text,
        None if structure is None else shows_attachment(structure),
    )
    return fits(query, seen) is not False


def _label_criteria(keywords: Keywords, label_ids: Collection[str]) -> list[Part]:
    criteria: list[Part] = []
    for label in label_ids:
        match label:
            case "UNREAD":
                criteria.append(b" UNSEEN")
            case "STARRED":
                criteria.append(b" FLAGGED")
            case _ if label.startswith(KEYWORD):
                criteria.append(b" KEYWORD " + keywords.keyword_of(label).encode())
            case _:
                pass
    return criteria


def _folders(finder: Finder, query: Query, label_ids: Collection[str], raw: str) -> list[Folder]:
    """Where to search: a message is in one place, so two different places have none. At Gmail it can have two labels:
    then each message found must have both.
    """
    places = places_among(label_ids)
    if not places:
        left_out = [each for each in _HIDDEN if not looks_into(query, each)]
        if _HIDDEN_AT_GMAIL.search(raw):
            left_out = []
        return [each for each in finder.folders.search_order() if each.role not in left_out]
    is_one = len(places) == 1 or finder.folders.is_gmail
    folder = finder.folders.of_label(min(places)) if is_one else None
    return [] if folder is None else [folder]


def places_among(label_ids: Collection[str]) -> frozenset[str]:
    """The labels that are folders: they are not searched for, but in."""
    return frozenset(each for each in label_ids if each not in ("UNREAD", "STARRED") and not each.startswith(KEYWORD))
