"""Converts Gmail's search syntax, as far as filters use it, to conditions with the same meaning.

    from:(ida@shop.example OR @club.example) -subject:"out of office" {invoice receipt}

All parts must match; `OR` and braces mean any, a minus means not. `OR` joins its two neighbours only. A word is found
as a whole word, in any case and with any accents; a bare one in subject, text, names, addresses and attachments' names.
An address is exactly that address; a domain is a phrase, so `shop.example` is found in `mail.shop.example`. These are
the findings in docs/decisions/0081-gmail-as-observed.md. core/rules/gmail_writing.py does the opposite.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from postroom.core.mail.addresses import canonical
from postroom.core.rules.exchange import Inexpressible
from postroom.core.rules.logic import Condition, Logic, every, negated, some
from postroom.core.rules.words import quoted_phrase, words_of

LONGEST_QUERY = 50_000
LONGEST_WORD = 900
DEEPEST_QUERY = 15
_AGE = re.compile(r"([1-9]\d{0,3})([hd])")
_SIZE = re.compile(r"[1-9]\d{0,11}[kmg]?b?", re.IGNORECASE)
_SECONDS = re.compile(r"\d{9,11}")
_SEPARATING = re.compile(r"[~#$%^+;<>?`\s]+")
_PLAIN_WORD = re.compile(r"[^\W_]+")
SYSTEM_LABELS = {
    "inbox": "INBOX",
    "spam": "SPAM",
    "trash": "TRASH",
    "sent": "SENT",
    "starred": "STARRED",
    "unread": "UNREAD",
    "important": "IMPORTANT",
}
CATEGORIES = {"primary": "personal", **{name: name for name in ("promotions", "social", "updates", "forums")}}
IN_THE_OWN_ZONE = "Gmail counts days in the mailbox's own time zone; write seconds since 1970"
NO_SUCH = "has no counterpart among conditions"


class _Token(NamedTuple):
    kind: str
    text: str
    negated: bool = False


def read_query(text: str, operator: str = "") -> Logic:
    """The conditions for a search; all its parts must match. Raises Inexpressible, which names what has none."""
    return every(_parts(text, operator))


def read_unwanted(text: str) -> Logic:
    """The conditions for the field "doesn't have" of a filter: none of its parts may match."""
    tokens = _tokens(text)
    if any(token.negated for token in tokens):
        raise Inexpressible("it has a minus in what the mail should not have, which has no clear meaning")
    return negated(some(_parts(text, "")))


def _parts(text: str, operator: str) -> list[Logic]:
    if len(text) > LONGEST_QUERY:
        raise Inexpressible("it is too long")
    found = _Parser(_tokens(text)).sequence(operator, "", 0)
    if not found:
        raise Inexpressible("it is empty")
    return found


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise Inexpressible("it has a quotation mark without its pair")
        at = found.end()
        minus, operator, quote_minus, quoted, mark_minus, mark, word = found.groups()
        if operator is not None:
            tokens.append(_Token("operator", operator.lower(), bool(minus)))
        elif quoted is not None:
            tokens.append(_Token("text", quoted, bool(quote_minus)))
        elif mark is not None:
            tokens.append(_Token(mark, mark, bool(mark_minus)))
        elif word is not None:
            tokens.append(_word(word))
        elif found.group() == "|":
            tokens.append(_Token("or", "|"))
    return tokens


def _word(word: str) -> _Token:
    if word in ("OR", "AND"):
        return _Token(word.lower(), word)
    if word == "AROUND":
        raise Inexpressible(f"AROUND {NO_SUCH}")
    is_negated = word.startswith("-") and len(word) > 1
    return _Token("word", word[1:] if is_negated else word, is_negated)


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def sequence(self, operator: str, closing: str, depth: int) -> list[Logic]:
        """The parts up to the closing bracket. All must match, or any inside braces, which is up to the caller."""
        if depth > DEEPEST_QUERY:
            raise Inexpressible("it is nested too deep")
        groups: list[list[Logic]] = []
        joins = False
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.kind in (")", "}"):
                if token.kind != closing or token.negated or joins:
                    raise Inexpressible(f"{token.text!r} is in the wrong place")
                return [some(group) for group in groups]
            if token.kind in ("or", "and"):
                if not groups or joins:
                    raise Inexpressible(f"{token.text} has nothing before it")
                joins = token.kind == "or"
            else:
                part = self._part(token, operator, depth)
                groups[-1].append(part) if joins else groups.append([part])
                joins = False
        if closing or joins:
            raise Inexpressible("it ends too early")
        return [some(group) for group in groups]

    def _part(self, token: _Token, operator: str, depth: int) -> Logic:
        match token.kind:
            case "operator":
                part = self._value(token, depth)
            case "(":
                part = every(self._inside(operator, ")", depth))
            case "{":
                part = some(self._inside(operator, "}", depth))
            case "word" | "text":
                part = _leaf(operator, token.text, is_quoted=token.kind == "text")
            case _:
                raise Inexpressible(f"{token.text!r} is in the wrong place")
        return negated(part) if token.negated else part

    def _value(self, token: _Token, depth: int) -> Logic:
        if self._at >= len(self._tokens):
            raise Inexpressible(f"{token.text}: has no value")
        value = self._tokens[self._at]
        if value.kind == "operator" or value.negated:
            raise Inexpressible(f"{token.text}: is followed by another operator")
        self._at += 1
        return self._part(value, token.text, depth + 1)

    def _inside(self, operator: str, closing: str, depth: int) -> list[Logic]:
        found = self.sequence(operator, closing, depth + 1)
        if not found:
            raise Inexpressible("there is nothing between its brackets")
        return found


def _leaf(operator: str, text: str, *, is_quoted: bool) -> Logic:
    text = text.strip()
    text = text if is_quoted else text.removeprefix("+")
    if not text:
        raise Inexpressible("it searches for nothing")
    if len(text) > LONGEST_WORD:
        raise Inexpressible("it has a word or phrase that is too long")
    if operator not in OPERATORS:
        raise Inexpressible(f"{operator}: {NO_SUCH}")
    if is_quoted and text.lower() == "me" and operator in PEOPLE:
        return _words(f"{operator}_words", text)
    pieces = [text]
    if not is_quoted and operator in OF_WORDS and not _is_address(text):
        pieces = list(filter(None, _SEPARATING.split(text))) or [text]
    return every(OPERATORS[operator](piece) for piece in pieces)


def _words(kind: str, text: str) -> Condition:
    """A word, or the words of a text one after another."""
    if not words_of(text):
        raise Inexpressible(f"{text[:40]!r} has no letter or digit to search for")
    if "*" in text:
        raise Inexpressible(f"{text[:40]!r} has a star, which Gmail does not explain")
    return {kind: text if _PLAIN_WORD.fullmatch(text) and text not in ("OR", "AND") else quoted_phrase(text)}


def _person(kind: str) -> Callable[[str], Logic]:
    """People by address, by domain, by a word in their name or address, or `me`."""

    def read(text: str) -> Logic:
        if text.lower() == "me":
            if kind not in PEOPLE:
                raise Inexpressible(f"{kind}:me {NO_SUCH}")
            return {f"{kind}_me": True}
        if "," in text or ";" in text:
            raise Inexpressible("it lists addresses with commas, which Gmail does not explain; put OR between them")
        if _is_address(text):
            return {kind: text}
        return _words(f"{kind}_words", text.removeprefix("*").removeprefix("@"))

    return read


def _to(text: str) -> Logic:
    """Gmail counts Cc and Bcc."""
    found = _person("to")(text)
    if isinstance(found, bool):
        return found
    ((kind, argument),) = found.items()
    return some([found, {kind.replace("to", "bcc", 1): argument}])


def _delivered_to(text: str) -> Logic:
    if not _is_address(text):
        raise Inexpressible(f"deliveredto: with something else than an address {NO_SUCH}")
    return {"delivered_to": text}


def _has(text: str) -> Logic:
    if text.lower() != "attachment":
        raise Inexpressible(f"has:{text[:40]} {NO_SUCH}")
    return {"has_attachment": True}


def _in(text: str) -> Logic:
    match text.lower():
        case "anywhere":
            return True
        case "read":
            return {"not": {"label_present": "UNREAD"}}
        case name if name in SYSTEM_LABELS:
            return {"label_present": SYSTEM_LABELS[name]}
        case _:
            raise Inexpressible(f"in:{text[:40]} or is:{text[:40]} {NO_SUCH}")


def _label(text: str) -> Logic:
    if "-" in text:
        raise Inexpressible(
            "Gmail writes blanks and slashes in labels as hyphens, so this may be one of several labels"
        )
    return {"label_present": text}


def _category(text: str) -> Logic:
    if text.lower() not in CATEGORIES:
        raise Inexpressible(f"category:{text[:40]} {NO_SUCH}")
    return {"category": CATEGORIES[text.lower()]}


def _age(kind: str) -> Callable[[str], Logic]:
    def read(text: str) -> Logic:
        age = _AGE.fullmatch(text.lower())
        if age is None:
            raise Inexpressible(f"{text[:40]!r} is not an age in hours or days; months and years differ in length")
        return {kind: age.group()}

    return read


def _moment(kind: str) -> Callable[[str], Logic]:
    def read(text: str) -> Logic:
        if not _SECONDS.fullmatch(text):
            raise Inexpressible(IN_THE_OWN_ZONE)
        return {kind: datetime.fromtimestamp(int(text), UTC).isoformat()}

    return read


def _size(kind: str) -> Callable[[str], Logic]:
    def read(text: str) -> Logic:
        if not _SIZE.fullmatch(text):
            raise Inexpressible(f"{text[:40]!r} is not a size")
        return {kind: text.upper().removesuffix("B")}

    return read


def _message_id(text: str) -> Logic:
    name = "".join(f"\\{each}" if each in r"\.+*?()|[]{}^$" else each for each in text.strip("<>"))
    return {"header_match": {"name": "message-id", "pattern": f"^<?{name}>?$"}}


OPERATORS: Mapping[str, Callable[[str], Logic]] = {
    "": lambda text: _words("words", text),
    "from": _person("from"),
    "to": _to,
    "cc": _person("cc"),
    "bcc": _person("bcc"),
    "replyto": _person("reply_to"),
    "deliveredto": _delivered_to,
    "subject": lambda text: _words("subject_words", text),
    "list": lambda text: _words("list_words", text),
    "filename": lambda text: _words("attachment_name", text),
    "has": _has,
    "in": _in,
    "is": _in,
    "label": _label,
    "category": _category,
    "older_than": _age("older_than"),
    "newer_than": _age("newer_than"),
    "after": _moment("sent_after"),
    "before": _moment("sent_before"),
    "newer": _moment("sent_after"),
    "older": _moment("sent_before"),
    "larger": _size("larger"),
    "size": _size("larger"),
    "smaller": _size("smaller"),
    "rfc822msgid": _message_id,
}
PEOPLE = frozenset({"from", "to", "cc", "bcc"})
# Some marks separate words, so that all are searched for; others, such as `-` and `.`, join them to a phrase.
OF_WORDS = frozenset({"", "subject", "from", "to", "cc", "bcc", "replyto", "list", "filename"})
# Operators of Gmail without a counterpart, which would otherwise be taken for words.
UNKNOWN_TO_RULES = ("around", "header", "mimetype", "recipient", "reply")

# Anything before a colon that is not an operator is part of a word, as in `http://shop.example`.
_TOKEN = re.compile(
    rf"""\s+
  | (-?)({"|".join(sorted(filter(None, (*OPERATORS, *UNKNOWN_TO_RULES)), key=len, reverse=True))}):
  | (-?)"([^"]*)"
  | (-?)([(){{}}])
  | \|
  | ([^\s(){{}}"|]+)""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_address(text: str) -> bool:
    return "*" not in text and text.count("@") == 1 and canonical(text) is not None
