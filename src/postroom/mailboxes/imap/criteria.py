"""Searches in IMAP's own terms, and the check of what they find. Pure.

For each folder a query becomes criteria that every message it means fulfils, and perhaps some others: IMAP compares
whole days in a time zone of the server's own, knows nothing of attachments, and some servers search ASCII only or find
what does not fit. So every message found is compared with the query by its own date, flags, size and headers. Only for
words somewhere in the text the server is believed, where it can search for them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from postroom.core.actions.label_changes import FOLDER
from postroom.core.mail.folding import folded
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.mailbox_query import (
    EVERYTHING,
    NOTHING,
    All,
    AnyOf,
    HasAttachment,
    Header,
    InPlace,
    InState,
    Labelled,
    Larger,
    Leaf,
    Not,
    Phrase,
    Query,
    Since,
    WithMessageId,
)
from postroom.mailboxes.imap.answers import written_day
from postroom.mailboxes.imap.commands import Part, is_keyword, string
from postroom.mailboxes.imap.folders import LABELLED, Folder
from postroom.mailboxes.imap.labels import KEYWORD, is_label, labels_of, name_of_keyword, written_keyword
from postroom.mailboxes.imap.responses import Value

HEADERS_READ = "FROM TO CC BCC SUBJECT MESSAGE-ID LIST-ID DELIVERED-TO"
_KEYS: dict[Header, tuple[bytes, ...]] = {
    "from": (b"FROM",),
    "to": (b"TO", b"CC", b"BCC"),
    "cc": (b"CC",),
    "bcc": (b"BCC",),
    "subject": (b"SUBJECT",),
    "list": (b"HEADER LIST-ID",),
    "deliveredto": (b"HEADER DELIVERED-TO",),
}
_NAMES: dict[Header, tuple[str, ...]] = {
    "from": ("from",),
    "to": ("to", "cc", "bcc"),
    "cc": ("cc",),
    "bcc": ("bcc",),
    "subject": ("subject",),
    "list": ("list-id",),
    "deliveredto": ("delivered-to",),
}
_DAY = timedelta(days=1)
_EARLIEST, _LATEST = datetime(1970, 1, 3, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_SEPARATORS = re.compile(r"[\s/]")


class Criteria(NamedTuple):
    """The text of a SEARCH; `keys` tells whether it is one search key or several."""

    parts: tuple[Part, ...]
    keys: int = 1


@dataclass(frozen=True, slots=True)
class CriteriaFacts:
    """A message, as far as it was read for the check. `headers`, `text` and `has_attachment` are None if they were
    not.
    """

    folder: Folder
    flags: frozenset[str]
    date: datetime
    size: int
    headers: Headers | None = None
    text: str | None = None
    has_attachment: bool | None = None


def in_folder(query: Query, folder: Folder) -> Query:
    """The query for the messages of one folder, of which it is known where they are."""
    match query:
        case All(parts):
            found = [in_folder(each, folder) for each in parts]
            return NOTHING if NOTHING in found else All(tuple(each for each in found if each != EVERYTHING))
        case AnyOf(parts):
            found = [in_folder(each, folder) for each in parts]
            return EVERYTHING if EVERYTHING in found else AnyOf(tuple(each for each in found if each != NOTHING))
        case Not(part):
            inner = in_folder(part, folder)
            if inner in (EVERYTHING, NOTHING):
                return NOTHING if inner == EVERYTHING else EVERYTHING
            return Not(inner)
        case InPlace(place):
            return EVERYTHING if _is_there(folder, place) else NOTHING
        case Labelled(name) if folder.label is not None and _same_label(folder.label.removeprefix(FOLDER), name):
            return EVERYTHING
        case Labelled(name) if not is_keyword(written_keyword(name)) or not is_label(written_keyword(name)):
            return NOTHING
        case _:
            return query


def _is_there(folder: Folder, place: str) -> bool:
    match place:
        case "ANYWHERE":
            return True
        case "ARCHIVE":
            return folder.role not in LABELLED
        case _:
            return folder.role == place


def criteria_of(query: Query, *, ascii_only: bool = False) -> Criteria | None:
    """The criteria that every message the query means fulfils; None if they are no restriction."""
    match query:
        case All(parts):
            return _both([criteria_of(each, ascii_only=ascii_only) for each in parts])
        case AnyOf(parts):
            return _either([criteria_of(each, ascii_only=ascii_only) for each in parts])
        case Not(part):
            return _opposite(part, ascii_only)
        case _:
            return _leaf(query, False, ascii_only)


def _opposite(query: Query, ascii_only: bool) -> Criteria | None:
    match query:
        case All(parts):
            return _either([_opposite(each, ascii_only) for each in parts])
        case AnyOf(parts):
            return _both([_opposite(each, ascii_only) for each in parts])
        case Not(part):
            return criteria_of(part, ascii_only=ascii_only)
        case _:
            return _leaf(query, True, ascii_only)


def _both(parts: Sequence[Criteria | None]) -> Criteria | None:
    given = [each for each in parts if each is not None]
    if not given:
        return None
    joined: list[Part] = []
    for each in given:
        joined += [b" ", *each.parts] if joined else each.parts
    return Criteria(tuple(joined), sum(each.keys for each in given))


def _either(parts: Sequence[Criteria | None]) -> Criteria | None:
    found: Criteria | None = None
    for number, each in enumerate(parts):
        if each is None:
            return None
        found = each if number == 0 or found is None else Criteria((b"OR ", *_one(found), b" ", *_one(each)))
    return found


def _one(criteria: Criteria) -> tuple[Part, ...]:
    return criteria.parts if criteria.keys == 1 else (b"(", *criteria.parts, b")")


def _leaf(leaf: Leaf, is_not: bool, ascii_only: bool) -> Criteria | None:
    sign = b"NOT " if is_not else b""
    match leaf:
        case Phrase(text, header):
            if ascii_only and not text.isascii():
                return None
            keys = (b"TEXT",) if header is None else _KEYS[header]
            each = [Criteria((sign + key + b" ", string(text))) for key in keys]
            return _both(each) if is_not else _either(each)
        case Since(moment) if not _EARLIEST < moment < _LATEST:
            # Days that servers may not know.
            return None
        case Since(moment) if is_not:
            return Criteria((b"BEFORE " + written_day(moment + 2 * _DAY),))
        case Since(moment):
            return Criteria((b"SINCE " + written_day(moment - _DAY),))
        case InState("UNREAD"):
            return Criteria((b"SEEN" if is_not else b"UNSEEN",))
        case InState():
            return Criteria((b"UNFLAGGED" if is_not else b"FLAGGED",))
        case Labelled(name):
            return Criteria(((b"UNKEYWORD " if is_not else b"KEYWORD ") + written_keyword(name).encode(),))
        case Larger(size):
            return Criteria((b"SMALLER %d" % (size + 1) if is_not else b"LARGER %d" % size,))
        case WithMessageId(id):
            return Criteria((sign + b"HEADER MESSAGE-ID ", string(id)))
        case HasAttachment() | InPlace():
            return None


def needs(query: Query, kind: type[Leaf], test: Callable[[Leaf], bool] = lambda leaf: True) -> bool:
    """Whether the query has a part of this kind."""
    match query:
        case All(parts) | AnyOf(parts):
            return any(needs(each, kind, test) for each in parts)
        case Not(part):
            return needs(part, kind, test)
        case _:
            return isinstance(query, kind) and test(query)


def needs_headers(query: Query) -> bool:
    return needs(query, WithMessageId) or needs(query, Phrase, lambda leaf: getattr(leaf, "header", None) is not None)


def needs_text(query: Query) -> bool:
    """Whether a server that searches ASCII only leaves it to us to read the messages."""
    return needs(query, Phrase, lambda leaf: isinstance(leaf, Phrase) and not leaf.text.isascii())


def fits(query: Query, message: CriteriaFacts) -> bool | None:
    """Whether the message is meant; None if that cannot be told from what was read of it."""
    match query:
        case All(parts):
            found = {fits(each, message) for each in parts}
            return False if False in found else (None if None in found else True)
        case AnyOf(parts):
            found = {fits(each, message) for each in parts}
            return True if True in found else (None if None in found else False)
        case Not(part):
            inner = fits(part, message)
            return None if inner is None else not inner
        case _:
            return _leaf_fits(query, message)


def _leaf_fits(leaf: Leaf, message: CriteriaFacts) -> bool | None:
    match leaf:
        case Phrase(text, None):
            return _in_text(text, message)
        case Phrase(text, header) if header is not None:
            if message.headers is None:
                return None
            return any(
                _plain(text) in _plain(value) for name in _NAMES[header] for value in values(message.headers, name)
            )
        case Since(moment):
            return message.date >= moment
        case InState(state):
            return state in labels_of(message.folder, message.flags)
        case InPlace(place):
            return _is_there(message.folder, place)
        case Labelled(name):
            own = labels_of(message.folder, message.flags)
            return any(_same_label(_name_of(each), name) for each in own)
        case Larger(size):
            return message.size > size
        case WithMessageId(id):
            if message.headers is None:
                return None
            return any(value.strip().strip("<>") == id for value in values(message.headers, "message-id"))
        case _:
            return message.has_attachment


def _in_text(text: str, message: CriteriaFacts) -> bool | None:
    if message.text is None or message.headers is None:
        return None
    wanted = _plain(text)
    return wanted in _plain(message.text) or any(wanted in _plain(value) for _, value in message.headers)


def _plain(text: str) -> str:
    return folded(" ".join(text.split())).casefold()


def _name_of(label: str) -> str:
    return name_of_keyword(label.removeprefix(KEYWORD)) if label.startswith(KEYWORD) else label.removeprefix(FOLDER)


def _same_label(one: str, other: str) -> bool:
    """Whether the names are the same, written with spaces and slashes or, as in Gmail's searches, with hyphens."""
    return _SEPARATORS.sub("-", one.casefold()) == _SEPARATORS.sub("-", other.casefold())


def shows_attachment(structure: Value) -> bool:
    """Whether a BODYSTRUCTURE has a part that counts as an attachment: no plain text or HTML, or one with a name."""
    left: list[Value] = [structure]
    while left:
        match left.pop():
            case (tuple(), *_) as parts:
                # A multipart: its parts come first, then its own fields.
                for each in parts:
                    if not isinstance(each, tuple):
                        break
                    left.append(each)
            case (bytes() as kind, bytes() as subtype, *rest):
                is_text = kind.lower() == b"text" and subtype.lower() in (b"plain", b"html")
                if not is_text or any(_names_file(each) for each in rest):
                    return True
            case _:
                pass
    return False


def _names_file(field: Value) -> bool:
    """Whether these are parameters with a file name, or the disposition of an attachment."""
    match field:
        case (bytes() as disposition, inner, *_) if disposition.lower() in (b"attachment", b"inline"):
            return disposition.lower() == b"attachment" or _names_file(inner)
        case tuple():
            names = {each.lower().partition(b"*")[0] for each in field[::2] if isinstance(each, bytes)}
            return not names.isdisjoint({b"name", b"filename"})
        case _:
            return False
