"""A search of a mailbox at its provider, parsed from one line as people write it into Gmail's search box, so that the
same line means the same at every provider.

    invoice march            both, anywhere in the message
    "as agreed"              exactly this
    -newsletter              not this; before any other part too
    a OR b, {a b}, (a b)     one of them; one of them; both
    from: to: cc: bcc: subject: list: deliveredto:    in this header; to: looks at all recipients
    after:2026/11/01         received then or later; a day begins at midnight UTC; seconds since 1970 too
    before:2026/11/15        received earlier
    newer_than:2d            received in the last days (d), months of 30 days (m) or years of 365 (y); older_than:
    label:Receipts           has this label or is in this folder
    in:inbox                 is there: inbox, archive, trash, spam, sent, drafts, anywhere
    is:unread                is unread, read or starred
    has:attachment           has an attachment
    larger:5M                larger than that; smaller:
    rfc822msgid:a@b.example  has this Message-ID

Anything else that Gmail understands is refused: taken for words, it would find something else.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from postroom.core.errors import BadInput
from postroom.core.mail.query_tokens import QuerySyntax, QueryTokens

FIELD = "query"
LONGEST_QUERY = 1_500
LONGEST_PHRASE = 500
MOST_PARTS = 60
MOST_DEPTH = 10

Header = Literal["from", "to", "cc", "bcc", "subject", "list", "deliveredto"]
_HEADERS: dict[str, Header] = {name: name for name in ("from", "to", "cc", "bcc", "subject", "list", "deliveredto")}


@dataclass(frozen=True, slots=True)
class All:
    """Everything in it must match; without parts, every message does."""

    parts: tuple["Query", ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of them must match; without parts, no message does."""

    parts: tuple["Query", ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: "Query"


@dataclass(frozen=True, slots=True)
class Phrase:
    """This text, in one header or anywhere in the message."""

    text: str
    header: Header | None = None


@dataclass(frozen=True, slots=True)
class Since:
    """Received at that moment or later."""

    moment: datetime


@dataclass(frozen=True, slots=True)
class InPlace:
    """Is there: INBOX, SENT, DRAFT, TRASH, SPAM; ARCHIVE is none of these, and CHATS are no mail."""

    place: Literal["INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "ARCHIVE", "CHATS", "ANYWHERE"]


@dataclass(frozen=True, slots=True)
class InState:
    state: Literal["UNREAD", "STARRED"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Has the label of this name, or is in the folder of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class HasAttachment:
    pass


@dataclass(frozen=True, slots=True)
class Larger:
    """Has more than so many bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class WithMessageId:
    id: str


Leaf = Phrase | Since | InPlace | InState | Labelled | HasAttachment | Larger | WithMessageId
Query = All | AnyOf | Not | Leaf

EVERYTHING = All()
NOTHING = AnyOf()

_PLACES: dict[str, InPlace] = {
    "inbox": InPlace("INBOX"),
    "sent": InPlace("SENT"),
    "draft": InPlace("DRAFT"),
    "drafts": InPlace("DRAFT"),
    "trash": InPlace("TRASH"),
    "bin": InPlace("TRASH"),
    "spam": InPlace("SPAM"),
    "junk": InPlace("SPAM"),
    "archive": InPlace("ARCHIVE"),
    "chat": InPlace("CHATS"),
    "chats": InPlace("CHATS"),
    "anywhere": InPlace("ANYWHERE"),
    "all": InPlace("ANYWHERE"),
}
_STATES: dict[str, Query] = {
    "unread": InState("UNREAD"),
    "read": Not(InState("UNREAD")),
    "starred": InState("STARRED"),
}
_ONLY_GMAIL = "leave it out: only Gmail itself can search for it"
_REFUSED: dict[str, str] = {
    "category": _ONLY_GMAIL,
    "filename": "write has:attachment",
    "around": 'write words that follow each other as "a phrase"',
}
_SYNTAX = QuerySyntax(name=r"[A-Za-z0-9_]{1,20}:(?=[^\s)}])", word=r'[^\s(){}"]+', sign=r"[-+](?=\S)", mark="[(){}]")
_DAY = re.compile(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})")
# A year alone is no moment.
_SECONDS = re.compile(r"(?![12]\d{3}\Z)\d{1,12}")
_AGE = re.compile(r"(\d{1,5})([dmy])", re.IGNORECASE)
_DAYS = {"d": 1, "m": 30, "y": 365}
_SIZE = re.compile(r"(\d{1,12})([km]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024 * 1024}


def read_mailbox_query(text: str, now: datetime) -> Query:
    """Parse a search. Raises BadInput, with the remedy, for what no mailbox but Gmail's own can search for."""
    if len(text) > LONGEST_QUERY:
        raise BadInput(FIELD, f"has {len(text):,} characters", f"use at most {LONGEST_QUERY:,}")
    if any(ord(each) < 0x20 or each == "\x7f" for each in text):
        raise BadInput(FIELD, "contains a control character", "write it on one line, without control characters")
    return _Parser(text, now).whole()


def negated(query: Query) -> Query:
    """The opposite."""
    return query.part if isinstance(query, Not) else Not(query)


class _Parser:
    def __init__(self, text: str, now: datetime) -> None:
        self._tokens = QueryTokens(text.strip(), _SYNTAX)
        self._now = now
        self._parts = 0
        self._depth = 0

    def whole(self) -> Query:
        found = self._sequence(None, None)
        if (left := self._tokens.next()) is not None:
            raise BadInput(FIELD, f"has {left.text!r} without its beginning", "remove it, or add the beginning")
        return found

    def _sequence(self, closing: str | None, header: Header | None) -> Query:
        """The parts up to the closing bracket: all of them, or any of them in braces."""
        units: list[Query] = []
        is_or = False
        while (unit := self._unit(header)) is not None:
            if unit == "OR":
                if not units or is_or:
                    raise BadInput(FIELD, "has OR without something before it", 'write a OR b, or "OR" for the word')
                is_or = True
                continue
            if is_or:
                last = units.pop()
                units.append(AnyOf((*(last.parts if isinstance(last, AnyOf) else (last,)), unit)))
            else:
                units.append(unit)
            is_or = False
        if is_or:
            raise BadInput(FIELD, "ends with OR", 'write a OR b, or "OR" for the word')
        if closing is None:
            return All(tuple(units)) if len(units) != 1 else units[0]
        end = self._tokens.next("mark")
        if end is None or end.text != closing:
            raise BadInput(FIELD, f"lacks a {closing!r}", "close every bracket that is opened")
        if not units:
            raise BadInput(FIELD, "has empty brackets", "leave them out")
        if len(units) == 1:
            return units[0]
        return AnyOf(tuple(units)) if closing == "}" else All(tuple(units))

    def _unit(self, header: Header | None) -> "Query | Literal['OR'] | None":
        token = self._tokens.next()
        if token is None:
            return None
        if token.kind == "mark" and token.text in ")}":
            self._tokens.put_back(token)
            return None
        self._count()
        match token.kind:
            case "sign":
                return self._signed_term(token.text, header)
            case "mark":
                return self._group(token.text, header)
            case "name":
                return self._operator(token.text, header)
            case "quoted":
                if not token.is_closed:
                    raise BadInput(FIELD, "has a quotation mark without its end", 'write "a phrase" with both')
                return _phrase(token.text, header)
            case "word":
                return self._word(token.text, header)

    def _signed_term(self, sign: str, header: Header | None) -> Query:
        unit = self._unit(header)
        if unit is None or unit == "OR":
            raise BadInput(FIELD, f"has {sign!r} before nothing", "write -word to exclude a word")
        return negated(unit) if sign == "-" else unit

    def _count(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise BadInput(FIELD, "has too many parts", f"use at most {MOST_PARTS}; a phrase in quotes is one")

    def _group(self, opening: str, header: Header | None) -> Query:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise BadInput(FIELD, "has too many brackets inside each other", f"use at most {MOST_DEPTH}")
        found = self._sequence(")" if opening == "(" else "}", header)
        self._depth -= 1
        return found

    def _word(self, word: str, header: Header | None) -> "Query | Literal['OR'] | None":
        if word in ("OR", "|", "||"):
            return "OR"
        if word in ("AND", "&&"):
            return self._unit(header)
        if word == "AROUND":
            raise BadInput(FIELD, "AROUND is not supported", _REFUSED["around"])
        if word.endswith("*"):
            raise BadInput(FIELD, "has the beginning of a word", "write the word in full, without the *")
        if word.endswith(":") and word[:-1].lower() in _NAMES:
            raise BadInput(FIELD, f"{word} has no value right after it", f"leave no space, as in {word}something")
        return _phrase(word, header)

    def _operator(self, name: str, header: Header | None) -> Query:
        lower = name.lower()
        if lower in _REFUSED:
            raise BadInput(FIELD, f"{lower}: cannot be searched for here", _REFUSED[lower])
        if lower in _HEADERS:
            unit = self._unit(_HEADERS[lower])
            if unit is None or unit == "OR":
                raise BadInput(FIELD, f"{lower}: has no value", f"write {lower}:something")
            if lower in ("from", "to", "cc") and unit == Phrase("me", _HEADERS[lower]):
                raise BadInput(FIELD, f"{lower}:me is known to Gmail only", "write your address instead of me")
            return unit
        value = self._value(lower)
        if lower in _READERS:
            return _READERS[lower](value, self._now)
        # As in `Re:something`: not the name of a filter.
        return _phrase(f"{name}:{value}", header)

    def _value(self, name: str) -> str:
        token = self._tokens.next()
        if token is None or token.kind not in ("quoted", "word") or not token.text:
            raise BadInput(FIELD, f"{name}: has no value that can be read", f"write {name}:something, without brackets")
        return token.text


def _phrase(text: str, header: Header | None) -> Phrase:
    phrase = " ".join(text.split())
    if not phrase or len(phrase) > LONGEST_PHRASE:
        remedy = f"use 1 to {LONGEST_PHRASE} characters"
        raise BadInput(FIELD, "has a part without words" if not phrase else "has a part that is too long", remedy)
    return Phrase(phrase, header)


def _moment(name: str, value: str) -> datetime:
    try:
        if (day := _DAY.fullmatch(value)) is not None:
            return datetime(*map(int, day.groups()), tzinfo=UTC)
        if _SECONDS.fullmatch(value):
            return datetime.fromtimestamp(int(value), UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise BadInput(FIELD, f"{name}: is followed by {value[:40]!r}", f"write a day, as in {name}:2026/11/15")


def _age(name: str, value: str, now: datetime) -> datetime:
    found = _AGE.fullmatch(value)
    try:
        if found is not None:
            return now - timedelta(days=int(found.group(1)) * _DAYS[found.group(2).lower()])
    except OverflowError:
        pass
    raise BadInput(FIELD, f"{name}: is followed by {value[:40]!r}", f"write {name}:14d, {name}:3m or {name}:1y")


def _bytes(name: str, value: str) -> int:
    found = _SIZE.fullmatch(value)
    size = -1 if found is None else int(found.group(1)) * _UNITS[found.group(2).lower()]
    if not 0 <= size < 2**32:
        raise BadInput(FIELD, f"{name}: is followed by {value[:40]!r}", f"write a size, as in {name}:5M")
    return size


def _place(value: str, now: datetime) -> Query:
    del now
    return _PLACES.get(value.lower()) or Labelled(value)


def _state(value: str, now: datetime) -> Query:
    if value.lower() in _STATES:
        return _STATES[value.lower()]
    if value.lower() in _PLACES:
        return _place(value, now)
    raise BadInput(FIELD, f"is: is followed by {value[:40]!r}", "write is:unread, is:read or is:starred")


def _having(value: str, now: datetime) -> Query:
    del now
    if value.lower() not in ("attachment", "attachments"):
        raise BadInput(FIELD, f"has: is followed by {value[:40]!r}", "write has:attachment")
    return HasAttachment()


def _message_id(value: str, now: datetime) -> Query:
    del now
    if not (id := value.strip("<>")) or not id.isascii():
        raise BadInput(FIELD, "rfc822msgid: is followed by something else", "write rfc822msgid:id@host.example")
    return WithMessageId(id)


_READERS: dict[str, Callable[[str, datetime], Query]] = {
    "after": lambda value, now: Since(_moment("after", value)),
    "newer": lambda value, now: Since(_moment("newer", value)),
    "before": lambda value, now: Not(Since(_moment("before", value))),
    "older": lambda value, now: Not(Since(_moment("older", value))),
    "newer_than": lambda value, now: Since(_age("newer_than", value, now)),
    "older_than": lambda value, now: Not(Since(_age("older_than", value, now))),
    "label": lambda value, now: Labelled(value),
    "in": _place,
    "is": _state,
    "has": _having,
    "larger": lambda value, now: Larger(_bytes("larger", value)),
    "size": lambda value, now: Larger(_bytes("size", value)),
    "smaller": lambda value, now: Not(Larger(max(_bytes("smaller", value) - 1, 0))),
    "rfc822msgid": _message_id,
}
_NAMES = frozenset({*_HEADERS, *_READERS, *_REFUSED})


def looks_into(query: Query, place: Literal["TRASH", "SPAM"]) -> bool:
    """Whether the query asks for mail in this place, which a search leaves out otherwise."""
    match query:
        case All(parts) | AnyOf(parts):
            return any(looks_into(each, place) for each in parts)
        case InPlace(named):
            return named in (place, "ANYWHERE")
        case _:
            return False
