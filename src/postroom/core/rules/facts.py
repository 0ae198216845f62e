"""The facts about a message that conditions look at, and their values while rules look at it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeVar

from postroom.core.mail.addresses import addresses, display_names, names_and_addresses
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.language import language_of
from postroom.core.rules.words import folded

T = TypeVar("T")

RECIPIENT_HEADERS = ("to", "cc")
LOOKS_BEFORE_SPLITTING = 20
# The headers in which each condition on addresses looks.
ADDRESS_HEADERS: Mapping[str, tuple[str, ...]] = {
    "from": ("from",),
    "to": RECIPIENT_HEADERS,
    "to_header": ("to",),
    "cc": ("cc",),
    "bcc": ("bcc",),
    "reply_to": ("reply-to",),
    "delivered_to": ("delivered-to",),
}


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """The facts about a message that conditions look at. None is a fact that is not known.

    `labels` are ids as they are, and casefolded names. `to` are the canonical addresses in To and Cc, as `recipients`
    returns them. `attachments` have a name and a MIME type each.
    """

    sender: str
    subject: str
    headers: Headers
    labels: frozenset[str]
    body_text: str = ""
    has_attachment: bool = False
    to: tuple[str, ...] = ()
    sent_at: datetime | None = None
    size: int | None = None
    attachments: tuple[tuple[str, str], ...] | None = None
    own_addresses: frozenset[str] | None = None
    categories: frozenset[str] | None = None
    sender_in_contacts: bool | None = None
    sender_seen_before: bool | None = None
    reply_to_mine: bool | None = None

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2]


def headers_of(field: str) -> tuple[str, ...]:
    """The headers that a field of words is read from; none if it is not read from headers."""
    if field in ("subject", "body", "attachments"):
        return ()
    return ("list-id",) if field == "list" else ADDRESS_HEADERS[field.removesuffix("_name")]


def recipients(headers: Headers) -> tuple[str, ...]:
    """The canonical addresses in To and Cc, each once."""
    found = [each for name in RECIPIENT_HEADERS for value in values(headers, name) for each in addresses(value)]
    return tuple(dict.fromkeys(found))


class ByField(dict[str, T]):
    """A value for each field, computed on first use. It is asked some hundred times for a message."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[str], T]) -> None:
        self._compute = compute

    def __missing__(self, field: str) -> T:
        value = self[field] = self._compute(field)
        return value


class FoldedField:
    """The folded texts of one field, one for each name, address or attachment: phrases are found in them.

    Splitting a text into a set of words takes as long as looking for some twenty phrases in it, so it is done when more
    than that are asked for.
    """

    __slots__ = ("_looks_left", "_words", "texts")

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self._words: frozenset[str] | None = None
        self._looks_left = LOOKS_BEFORE_SPLITTING

    @property
    def words(self) -> Iterator[str]:
        """The words of all texts, in order."""
        return chain.from_iterable(map(str.split, self.texts))

    def has(self, phrase: str, words: frozenset[str]) -> bool:
        """Whether one text has the folded phrase, here with its words."""
        if self._looks_left:
            self._looks_left -= 1
        else:
            if self._words is None:
                self._words = frozenset(self.words)
            if not words <= self._words:
                return False
        for text in self.texts:  # noqa: SIM110 - a plain loop takes half the time
            if phrase in text:
                return True
        return False


class Seen:
    """One message while rules look at it. Values that many conditions need are computed once, on first use.

    `addresses` are the canonical addresses in the headers of a field of ADDRESS_HEADERS. `folded` are the folded texts
    of a field.
    """

    __slots__ = (
        *("_body", "_fields", "_language", "_list_ids", "_subject"),
        *("addresses", "domain", "folded", "message", "now", "sender"),
    )

    def __init__(self, message: MessageFacts, now: datetime | None) -> None:
        self.message = message
        self.now = now
        self.sender = message.sender.lower()
        self.domain = self.sender.rpartition("@")[2]
        self._subject: str | None = None
        self._body: str | None = None
        self._list_ids: list[str] | None = None
        self._language: str | None = None
        self._fields = _Fields(message)
        self.addresses = ByField(self._fields.addresses)
        self.folded = ByField(self._fields.folded)

    @property
    def subject(self) -> str:
        """Casefolded."""
        if self._subject is None:
            self._subject = self.message.subject.casefold()
        return self._subject

    @property
    def body(self) -> str:
        """Casefolded."""
        if self._body is None:
            self._body = self.message.body_text.casefold()
        return self._body

    @property
    def headers(self) -> dict[str, list[str]]:
        """The values of each header, by its lower-case name."""
        return self._fields.headers

    @property
    def list_ids(self) -> list[str]:
        """The values of List-Id, casefolded."""
        if self._list_ids is None:
            self._list_ids = [value.casefold() for value in self.headers.get("list-id", ())]
        return self._list_ids

    @property
    def language(self) -> str:
        """The language of the text, by its code; `unknown` if it is unclear."""
        if self._language is None:
            self._language = language_of(self.message.body_text)
        return self._language


class _Fields:
    """The fields of a message in which conditions look for people and words."""

    __slots__ = ("_headers", "_message")

    def __init__(self, message: MessageFacts) -> None:
        self._message = message
        self._headers: dict[str, list[str]] | None = None

    @property
    def headers(self) -> dict[str, list[str]]:
        if self._headers is None:
            found: dict[str, list[str]] = {}
            for name, value in self._message.headers:
                found.setdefault(name.lower(), []).append(value)
            self._headers = found
        return self._headers

    def addresses(self, field: str) -> frozenset[str]:
        found = frozenset(each for value in self._values(field) for each in addresses(value))
        is_from = field == "from" and bool(self._message.sender)
        return found | {self._message.sender.lower()} if is_from else found

    def folded(self, field: str) -> FoldedField:
        return FoldedField([folded(text) for text in self._parts(field)])

    def _values(self, field: str) -> Iterator[str]:
        for name in ADDRESS_HEADERS[field]:
            yield from self.headers.get(name, ())

    def _parts(self, field: str) -> Iterator[str]:
        """The texts of a field of words: `subject`, `body`, `attachments`, `list`, names of people, or people."""
        match field:
            case "subject":
                yield self._message.subject
            case "body":
                yield self._message.body_text
            case "attachments":
                yield from (name for name, _ in self._message.attachments or ())
            case "list":
                yield from self.headers.get("list-id", ())
            case _:
                people = field.removesuffix("_name")
                parts = names_and_addresses if field == people else display_names
                for value in self._values(people):
                    yield from parts(value)
