"""The tokens of a search, as people write it on one line: words, "phrases", names before a colon, signs and marks.

Three languages of searches are read with it, each with a syntax of its own: of stored mail (core/mail/search.py), of a
mailbox (core/mail/mailbox_query.py), and Gmail's, which become conditions of rules (core/rules/gmail_query.py). What
the tokens mean is up to them.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, cast

TokenKind = Literal["sign", "mark", "quoted", "name", "word"]
_ANY: tuple[TokenKind, ...] = ("sign", "mark", "quoted", "name", "word")


class QueryToken(NamedTuple):
    """A token, without its quotation marks or its colon. `is_closed` is false for a phrase without its end."""

    kind: TokenKind
    text: str
    start: int
    is_closed: bool


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """The patterns of tokens in one language: a name ends with its colon, a mark is a token wherever it is."""

    name: str
    word: str
    sign: str = r"-(?=\S)"
    mark: str = r"(?!)"


class QueryTokens:
    """The tokens of one text, taken from its beginning to its end."""

    def __init__(self, text: str, syntax: QuerySyntax) -> None:
        self._text = text
        self._syntax = syntax
        self._at = 0

    def next(self, *kinds: TokenKind) -> QueryToken | None:
        """Take the next token; None at the end. With kinds, the text is read as one of these, if it can be."""
        found = _pattern(self._syntax, kinds or _ANY).match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        kind = cast("TokenKind", found.lastgroup)
        text = found[kind].removesuffix(":") if kind == "name" else found[kind]
        return QueryToken(kind, text, found.start(), is_closed=kind != "quoted" or found.end() > found.end(kind))

    def put_back(self, token: QueryToken) -> None:
        """Let the token be the next one again."""
        self._at = token.start


@cache
def _pattern(syntax: QuerySyntax, kinds: tuple[TokenKind, ...]) -> re.Pattern[str]:
    """The pattern of the next token, which is the first of these kinds that fits."""
    patterns = {
        "sign": f"(?P<sign>{syntax.sign})",
        "mark": f"(?P<mark>{syntax.mark})",
        "quoted": '"(?P<quoted>[^"]*)"?',
        "name": f"(?P<name>{syntax.name})",
        "word": f"(?P<word>{syntax.word})",
    }
    return re.compile(rf"\s*(?:{'|'.join(patterns[kind] for kind in kinds)})")
