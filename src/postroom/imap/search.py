"""Searches the folders of a mailbox: plain words, and labels."""

from collections.abc import Collection
from datetime import UTC, datetime

from postroom.imap.commands import Part, string
from postroom.imap.errors import FolderForbidden, NoSuchFolder
from postroom.imap.folders import Folder
from postroom.imap.identity import id_of, items_for
from postroom.imap.labels import KEYWORD, Keywords
from postroom.imap.places import Finder

MOST_FOUND = 10_000
_FETCHED_AT_ONCE = 200
_HIDDEN = frozenset({"TRASH", "SPAM"})


async def find_messages(finder: Finder, keywords: Keywords, query: str, label_ids: Collection[str]) -> list[str]:
    """The ids of the messages that have all of the words and all of the labels, newest first; each once. Without a
    place among the labels, the trash and spam are left out.
    """
    criteria = [b"UNDELETED", *_criteria(keywords, query, label_ids)]
    found: dict[str, datetime] = {}
    for folder in _folders(finder, label_ids):
        try:
            await finder.open(folder)
            uids = await finder.session.search(*criteria)
        except (NoSuchFolder, FolderForbidden):
            continue
        newest = uids[-MOST_FOUND:][::-1]
        for begin in range(0, len(newest), _FETCHED_AT_ONCE):
            part = newest[begin : begin + _FETCHED_AT_ONCE]
            items = items_for(finder.scheme)
            dated = items if "INTERNALDATE" in items else f"INTERNALDATE {items}"
            for each in reversed(await finder.session.fetch(part, dated)):
                if (id := id_of(each, finder.scheme)) is not None:
                    found.setdefault(id, each.internal_date or datetime.fromtimestamp(0, UTC))
    # The sort keeps the order of those that came in the same second.
    return sorted(found, key=lambda id: found[id], reverse=True)[:MOST_FOUND]


def _criteria(keywords: Keywords, query: str, label_ids: Collection[str]) -> list[Part]:
    criteria: list[Part] = []
    for word in query.split():
        criteria += [b"TEXT", string(word)]
    for label in label_ids:
        match label:
            case "UNREAD":
                criteria.append(b"UNSEEN")
            case "STARRED":
                criteria.append(b"FLAGGED")
            case _ if label.startswith(KEYWORD):
                criteria += [b"KEYWORD", keywords.keyword_of(label).encode()]
            case _:
                pass
    return criteria


def _folders(finder: Finder, label_ids: Collection[str]) -> list[Folder]:
    """Where to search: a message is in one place, so two different places have none."""
    places = {each for each in label_ids if each not in ("UNREAD", "STARRED") and not each.startswith(KEYWORD)}
    if not places:
        return [each for each in finder.folders.search_order() if each.role not in _HIDDEN]
    folder = finder.folders.of_label(next(iter(places))) if len(places) == 1 else None
    return [] if folder is None else [folder]
