"""Reads the answers of IMAP: messages, folders, places of copies. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from postroom.mailboxes.imap.commands import read_ranges, read_uid_set
from postroom.mailboxes.imap.connection import Answer
from postroom.mailboxes.imap.errors import BadAnswer
from postroom.mailboxes.imap.folder_names import decoded
from postroom.mailboxes.imap.responses import Data, Value

GMAIL_LABEL = "\\Label:"
_PARTIAL = re.compile(r"<\d+>\Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(rb" ?(\d{1,2})-([A-Za-z]{3})-(\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")


@dataclass(frozen=True, slots=True)
class Fetched:
    """One message of a FETCH: the values by the name of the item, without the place of a partial body."""

    uid: int
    items: Mapping[str, Value]

    @property
    def flags(self) -> frozenset[str]:
        """Its flags; and Gmail's labels, each written as a flag that begins with GMAIL_LABEL."""
        found = self.items.get("FLAGS")
        flags = {each for each in found if isinstance(each, str)} if isinstance(found, tuple) else set[str]()
        labels = self.items.get("X-GM-LABELS")
        for each in labels if isinstance(labels, tuple) else ():
            if isinstance(each, (str, bytes)):
                flags.add(GMAIL_LABEL + decoded(each.encode("latin-1") if isinstance(each, str) else each))
        return frozenset(flags)

    @property
    def modseq(self) -> int | None:
        match self.items.get("MODSEQ"):
            case (str() as number,) if number.isdigit():
                return int(number)
            case _:
                return None

    @property
    def size(self) -> int:
        return number_of(self.items.get("RFC822.SIZE"))

    @property
    def internal_date(self) -> datetime | None:
        return read_date(self.items.get("INTERNALDATE"))

    def content(self, item: str) -> bytes:
        """The bytes of this item; empty if there are none."""
        match self.items.get(item):
            case bytes() as content:
                return content
            case str() as atom:
                return atom.encode("latin-1")
            case _:
                return b""


@dataclass(frozen=True, slots=True)
class Selected:
    """A folder as it was when it was opened."""

    name: bytes
    uidvalidity: int
    uidnext: int
    exists: int
    highest_modseq: int | None
    permanent_flags: frozenset[str]
    flags: frozenset[str]
    is_read_only: bool
    vanished: tuple[int, ...] = ()
    changed: tuple[Fetched, ...] = ()
    """From QRESYNC: UIDs that are gone, and messages that are new or whose flags changed."""

    @property
    def takes_keywords(self) -> bool:
        return "\\*" in self.permanent_flags


@dataclass(frozen=True, slots=True)
class Listed:
    """A folder in a list. `attributes` are in lower case, such as \\trash and \\noselect."""

    name: bytes
    separator: str
    attributes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Copied:
    """Where copies are, if the server says so: the folder's UIDVALIDITY, and the new UID by the old one."""

    uidvalidity: int
    uids: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in a folder: flags by UID, and ranges of UIDs that are gone; None if the server cannot tell."""

    flags: Mapping[int, frozenset[str]]
    vanished: Sequence[tuple[int, int]] | None


@dataclass(frozen=True, slots=True)
class Namespace:
    prefix: bytes
    separator: str


def fetched_in(answers: Sequence[Data]) -> list[Fetched]:
    """The messages of these responses that have a UID; others are notices about messages that nobody asked for."""
    found: list[Fetched] = []
    for data in answers:
        match data.values:
            case (tuple() as pairs,) if len(pairs) % 2 == 0:
                items: dict[str, Value] = {}
                for name, value in zip(pairs[::2], pairs[1::2], strict=True):
                    if not isinstance(name, str):
                        raise BadAnswer("an item of a message has no name")
                    items[_PARTIAL.sub("", name.upper())] = value
                if uid := number_of(items.get("UID")):
                    found.append(Fetched(uid, items))
            case _:
                raise BadAnswer("the items of a message are malformed")
    return found


def number_of(value: Value) -> int:
    """The number; 0 for anything else."""
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) <= 20 else 0


def read_date(value: Value) -> datetime | None:
    """A date such as `17-Nov-2026 09:30:00 +0100`; None for anything else."""
    given = _DATE.fullmatch(value) if isinstance(value, bytes) else None
    if given is None:
        return None
    day, month, year, hour, minute, second, sign, off_hours, off_minutes = (each.decode() for each in given.groups())
    try:
        moment = f"{year}-{_MONTHS.index(month.title()) + 1:02}-{int(day):02}T{hour}:{minute}:{second}"
        return datetime.fromisoformat(f"{moment}{sign}{off_hours}:{off_minutes}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def written_day(moment: datetime) -> bytes:
    """A day as SEARCH wants it."""
    return f"{moment.day}-{_MONTHS[moment.month - 1]}-{moment.year:04}".encode()


def vanished_in(answers: Sequence[Data]) -> tuple[int, ...]:
    """The UIDs that VANISHED names."""
    found: list[int] = []
    for data in answers:
        named = [each for each in data.values if isinstance(each, str)]
        for each in named:
            found += read_uid_set(each)
    return tuple(found)


def vanished_ranges(data: Data) -> list[tuple[int, int]]:
    """The UIDs that VANISHED names as ranges, which may be very large: they may also name UIDs that never were."""
    texts = [each for each in data.values if isinstance(each, str)]
    return [(min(each), max(each)) for text in texts for each in read_ranges(text)]


def selected_in(folder: bytes, answer: Answer, read_only: bool) -> Selected:
    exists = [each.number or 0 for each in answer.of("EXISTS")]
    flags = answer.code("PERMANENTFLAGS") or ((),)
    permanent = flags[0] if flags and isinstance(flags[0], tuple) else ()
    uidvalidity = _code_number(answer, "UIDVALIDITY")
    if not uidvalidity:
        raise BadAnswer("a folder was opened without its UIDVALIDITY")
    return Selected(
        folder,
        uidvalidity,
        _code_number(answer, "UIDNEXT"),
        exists[-1] if exists else 0,
        _code_number(answer, "HIGHESTMODSEQ") or None,
        frozenset(each for each in permanent if isinstance(each, str)),
        _flags_in(answer.of("FLAGS")),
        read_only or answer.status.code == "READ-ONLY",
        vanished_in(answer.of("VANISHED")),
        tuple(fetched_in(answer.of("FETCH"))),
    )


def _flags_in(answers: Sequence[Data]) -> frozenset[str]:
    """The flags that messages of a folder have, or had."""
    lists = [each.values[0] for each in answers if each.values]
    return frozenset(flag for each in lists if isinstance(each, tuple) for flag in each if isinstance(flag, str))


def _code_number(answer: Answer, name: str) -> int:
    found = answer.code(name)
    return number_of(found[0]) if found else 0


def copied_in(answer: Answer) -> Copied | None:
    match answer.code("COPYUID"):
        case (str() as validity, str() as old, str() as new) if validity.isdigit():
            before, after = read_uid_set(old), read_uid_set(new)
            if len(before) == len(after):
                return Copied(int(validity), dict(zip(before, after, strict=True)))
        case _:
            pass
    return None


def listed_in(data: Data) -> Listed | None:
    match data.values:
        case (tuple() as attributes, (bytes() | None) as separator, (bytes() | str()) as name, *_):
            raw = name.encode("latin-1") if isinstance(name, str) else name
            found = frozenset(each.lower() for each in attributes if isinstance(each, str))
            return Listed(raw, (separator or b"").decode("latin-1"), found)
        case _:
            return None


def status_in(data: Data) -> tuple[bytes, dict[str, int]]:
    """The name of a folder and its figures."""
    match data.values:
        case ((bytes() | str()) as name, tuple() as pairs):
            raw = name.encode("latin-1") if isinstance(name, str) else name
            named = zip(pairs[::2], pairs[1::2], strict=False)
            return raw, {key.upper(): number_of(value) for key, value in named if isinstance(key, str)}
        case _:
            raise BadAnswer("the figures of a folder are malformed")
