"""A search of stored mail, parsed from one line of text.

    invoice march            both words, anywhere in subject, sender or text
    "as agreed"              these words, one right after the other
    invo*                    words that begin with this, of at least three letters
    -newsletter              not this; before any other part too, as in -from:shop.example
    from:lindqvist.example   in the sender's address or name; an address is a phrase of the words in it
    to:"Ada Lovelace"        in the recipients' addresses or names (To, Cc, Bcc)
    subject:"as agreed"      in the subject
    label:Receipts           has this label, by name or id
    in:inbox                 is there: inbox, archive, trash, spam, sent, drafts, anywhere
    is:unread                is unread, read or starred
    has:attachment           has an attachment
    account:ada@example.com  in this mailbox
    after:2026-11-01         sent at that time or later; a day begins at midnight UTC
    before:2026-11-15        sent earlier

All parts must match. Accents make no difference (`core/mail/folding.py`). What other searches understand and this one
does not (OR, groups, `filename:`) is refused: taken for words, it would find something else. The line is never passed
to a database as it is: from here on there are only words, made of letters, digits and their marks, which have no
special meaning in any query language.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.folding import folded
from postroom.core.mail.query_tokens import QuerySyntax, QueryTokens

LONGEST_QUERY = 500
LONGEST_WORD = 100
LONGEST_EXCERPT = 200
MOST_WORDS = 50
MOST_PARTS = 20
MOST_BEGINNINGS = 5
SHORTEST_BEGINNING = 3
FIELD = "query"

Place = Literal["subject", "sender", "recipients"]
_PLACES: dict[str, Place] = {"from": "sender", "to": "recipients", "subject": "subject"}
_FILTERS = ("label", "in", "is", "has", "account", "after", "before")
_NAMES = (*_PLACES, *_FILTERS)
_SYNTAX = QuerySyntax(name=r"\w{1,20}:(?=\S)", word=r"\S+")
# The labels of the places that have one. The archive is mail without any of these.
_IN = {"inbox": "INBOX", "trash": "TRASH", "bin": "TRASH", "spam": "SPAM", "junk": "SPAM", "sent": "SENT"} | {
    "draft": "DRAFT",
    "drafts": "DRAFT",
}
_NOT_ARCHIVED = ("INBOX", "TRASH", "SPAM", "SENT", "DRAFT")
_SPLIT = "search for each by itself"
# Operators of other searches, and what to write instead.
_OPERATORS = {
    "OR": _SPLIT,
    "|": _SPLIT,
    "||": _SPLIT,
    "AND": "leave it out; all parts must match",
    "&&": "leave it out; all parts must match",
    "NOT": "write -word to exclude a word",
    "AROUND": 'write words that follow each other as "a phrase"',
}
_OTHER_NAMES = {
    "cc": "write to:, which looks at all recipients",
    "bcc": "write to:, which looks at all recipients",
    "older": "write before:2026-11-15",
    "older_than": "write before:2026-11-15",
    "newer": "write after:2026-11-15",
    "newer_than": "write after:2026-11-15",
    "filename": "write has:attachment",
    "rfc822msgid": "give the id to `postroom mail show`",
    **dict.fromkeys(
        ("category", "deliveredto", "larger", "list", "size", "smaller"), "leave it out, or write it with a space"
    ),
}


class Term(NamedTuple):
    """Words that follow each other, in one place or in any. With `prefix`, the last is the beginning of a word."""

    words: tuple[str, ...]
    place: Place | None = None
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed search. Everything in it must match."""

    terms: tuple[Term, ...] = ()
    labels: tuple[str, ...] = ()
    account: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    excluded: tuple[Term, ...] = ()
    """Terms of which none may match."""
    other_labels: tuple[str, ...] = ()
    """Labels of which the message has none."""
    has_attachment: bool | None = None
    anywhere: bool = False
    """Whether all mail was asked for by name, `in:anywhere`."""


def read_query(text: str) -> SearchQuery:
    """Parse a search. Raises BadInput, with the remedy, for what cannot be searched for."""
    if len(text) > LONGEST_QUERY:
        raise BadInput(FIELD, f"has {len(text)} characters", f"use at most {LONGEST_QUERY}")
    if "\0" in text:
        raise BadInput(FIELD, "contains a NUL character", "leave it out")
    query, has_signs = SearchQuery(), False
    for negated, name, quoted, bare in _parts(text):
        before = query
        query = _with_part(query, name, bare if quoted is None else quoted, quoted is not None, negated)
        has_signs = has_signs or query is before
    # Signs among words separate them; signs alone were to be looked for, and no index has them.
    if query == SearchQuery() or (has_signs and not (query.terms or query.excluded)):
        raise BadInput(FIELD, "has no word in it", "give a word, such as invoice, or a filter, such as label:Receipts")
    _check_cost(query)
    return query


def _check_cost(query: SearchQuery) -> None:
    """Limit the cost of a query, which grows with its parts, and most of all with the words that share a prefix."""
    terms = (*query.terms, *query.excluded)
    if len(terms) + len(query.labels) + len(query.other_labels) > MOST_PARTS:
        raise BadInput(FIELD, "has too many parts", f"use at most {MOST_PARTS}; a phrase in quotes is one")
    if sum(len(term.words) for term in terms) > MOST_WORDS:
        raise BadInput(FIELD, "has too many words", f"use at most {MOST_WORDS}")
    beginnings = [term.words[-1] for term in terms if term.prefix]
    if len(beginnings) > MOST_BEGINNINGS:
        remedy = f"use at most {MOST_BEGINNINGS} with *, and write the others in full"
        raise BadInput(FIELD, "has too many beginnings of words", remedy)
    if any(_letters(each) < SHORTEST_BEGINNING for each in beginnings):
        remedy = f"give at least {SHORTEST_BEGINNING} letters before each *, or leave the * out"
        raise BadInput(FIELD, "has a beginning that too many words share", remedy)


def _letters(word: str) -> int:
    """The length of a word, where an ideograph or syllable counts as two letters: few words share two of them."""
    return sum(2 if unicodedata.east_asian_width(each) == "W" else 1 for each in word)


def _parts(text: str) -> Iterator[tuple[bool, str | None, str | None, str]]:
    """Each part: whether it is negated, the name before the colon, if it is known; the quoted text; the unquoted."""
    tokens = QueryTokens(text, _SYNTAX)
    while (token := tokens.next()) is not None:
        negated = token.kind == "sign"
        token = (tokens.next("name", "quoted", "word") or token) if negated else token
        name = token.text if token.kind == "name" else None
        token = (tokens.next("quoted", "word") or token) if name is not None else token
        quoted, bare = (token.text, "") if token.kind == "quoted" else (None, token.text)
        _check_operator(negated, name, bare)
        if name is not None and name.lower() not in _NAMES:
            yield negated, None, None, f"{name} {bare if quoted is None else quoted}"
        elif name is None and bare.endswith(":") and bare[:-1].lower() in _NAMES:
            raise BadInput(FIELD, f"{bare} has no value right after it", f"leave no space, as in {bare}something")
        else:
            yield negated, name and name.lower(), quoted, bare


def _check_operator(negated: bool, name: str | None, bare: str) -> None:
    """Refuse what other searches understand, and this one would take for words."""
    if name is not None and (remedy := _OTHER_NAMES.get(name.lower())) is not None:
        raise BadInput(FIELD, f"{name}: cannot be searched for", remedy)
    if name is None and (remedy := _OPERATORS.get(bare)) is not None:
        raise BadInput(FIELD, f"{bare} is not supported", f"{remedy}; in quotes it is a word")
    if bare.startswith("{") or (bare.startswith("(") and (negated or name is not None)):
        raise BadInput(FIELD, "has a group in brackets", 'leave the brackets out, or write "a phrase" in quotes')


def _with_part(query: SearchQuery, name: str | None, value: str, quoted: bool, negated: bool) -> SearchQuery:
    match name:
        case "label":
            return _with_labels(query, (_value_of(name, value),), negated)
        case "in":
            return _in_place(query, _value_of(name, value), negated)
        case "is":
            return _in_state(query, _value_of(name, value).lower(), negated)
        case "has":
            if value.lower() not in ("attachment", "attachments"):
                raise BadInput(FIELD, "has: is followed by something else", "write has:attachment")
            return replace(query, has_attachment=not negated)
        case "account" | "after" | "before" if negated:
            raise BadInput(FIELD, f"{name}: cannot be excluded", f"write {name}: without the minus sign")
        case "account":
            return replace(query, account=_value_of(name, value))
        case "after":
            moment = _moment(name, value)
            return replace(query, after=moment if query.after is None else max(query.after, moment))
        case "before":
            moment = _moment(name, value)
            return replace(query, before=moment if query.before is None else min(query.before, moment))
        case _:
            words = words_of(value)
            term = Term(words, _PLACES.get(name or ""), value.endswith("*") and not quoted)
            if not words and (negated or name is not None):
                where = "the part after -" if name is None else f"{name}:"
                raise BadInput(FIELD, f"{where} has no word in it", "signs cannot be searched for; give a word")
            if not words:
                return query
            if negated:
                return replace(query, excluded=(*query.excluded, term))
            return replace(query, terms=(*query.terms, term))


def _with_labels(query: SearchQuery, labels: tuple[str, ...], negated: bool) -> SearchQuery:
    if negated:
        return replace(query, other_labels=(*query.other_labels, *labels))
    return replace(query, labels=(*query.labels, *labels))


def _in_place(query: SearchQuery, place: str, negated: bool) -> SearchQuery:
    """Mail in a place of the mailbox, or with a label of this name."""
    match place.lower():
        case "anywhere" | "all":
            return replace(query, anywhere=True)
        case "archive" if negated:
            raise BadInput(FIELD, "in:archive cannot be excluded", "write in:inbox, in:trash, in:spam or in:sent")
        case "archive":
            return _with_labels(query, _NOT_ARCHIVED, negated=True)
        case plain:
            return _with_labels(query, (_IN.get(plain, place),), negated)


def _in_state(query: SearchQuery, state: str, negated: bool) -> SearchQuery:
    match state:
        case "unread" | "starred":
            return _with_labels(query, (state.upper(),), negated)
        case "read":
            return _with_labels(query, ("UNREAD",), not negated)
        case _:
            raise BadInput(FIELD, "is: is followed by something else", "write is:unread, is:read or is:starred")


def _value_of(name: str, value: str) -> str:
    if not value.strip():
        raise BadInput(FIELD, f"{name}: has no value", f'write {name}:something, or {name}:"some thing"')
    return value.strip()


def _moment(name: str, value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value.replace("/", "-"))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        remedy = f"write {name}:2026-11-15 or {name}:2026-11-15T08:00:00Z"
        raise BadInput(FIELD, f"{name}: is not followed by a day or a time", remedy) from None


def words_of(text: str) -> tuple[str, ...]:
    """The words in a text, without accents. The databases split words differently only in rare scripts."""
    whole = folded(text)
    plain = "".join(each if each.isalnum() or unicodedata.category(each)[0] == "M" else " " for each in whole)
    words = tuple(word for word in plain.split() if any(each.isalnum() for each in word))
    if any(len(word) > LONGEST_WORD for word in words):
        raise BadInput(FIELD, f"has a word of more than {LONGEST_WORD} characters", "search for its beginning: begin*")
    return words


def excerpt(text: str, terms: tuple[Term, ...], otherwise: str = "") -> str:
    """A piece of the text around the first match, on one line; without a match, `otherwise` or the beginning."""
    line = " ".join(text.split())
    lowered = folded(line).lower()  # a few characters longer where a letter becomes two
    places = [lowered.find(word.lower()) for term in terms for word in term.words if term.place is None]
    found = min((place for place in places if place >= 0), default=None)
    if found is None:
        return " ".join(otherwise.split())[:LONGEST_EXCERPT] or line[:LONGEST_EXCERPT]
    start = max(0, found - LONGEST_EXCERPT // 3)
    start = start if start == 0 else line.find(" ", start, found) + 1 or start
    return line[start : start + LONGEST_EXCERPT]
