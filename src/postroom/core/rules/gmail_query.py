"""Converts Gmail's search syntax, as far as filters use it, to conditions with the same meaning.

    from:(ida@shop.example OR @club.example) -subject:"out of office" {invoice receipt}

All parts must match; `OR` and braces mean any, a minus means not. `OR` joins its two neighbours only. A bare word is
found in subject, text, names, addresses and attachments' names. These are the findings in
docs/decisions/0081-gmail-as-observed.md. The meanings of operators are in core/rules/gmail_terms.py.
core/rules/gmail_writing.py does the opposite.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from postroom.core.mail.query_tokens import QuerySyntax, QueryTokens
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.conditions import SPECS
from postroom.core.rules.gmail_terms import NO_SUCH, PEOPLE, is_address, word_condition
from postroom.core.rules.logic import Logic, every, negated, some

LONGEST_QUERY = 50_000
LONGEST_WORD = 900
DEEPEST_QUERY = 15
_SEPARATING = re.compile(r"[~#$%^+;<>?`\s]+")


class _Token(NamedTuple):
    kind: str
    text: str
    negated: bool = False


def read_query(text: str, operator: str = "") -> Logic:
    """The conditions for a search; all its parts must match. Raises Inexpressible, naming the part that has none."""
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
    source = QueryTokens(text, _SYNTAX)
    while (token := source.next()) is not None:
        is_negated = token.kind == "sign"
        token = (source.next("mark", "quoted", "name", "word") or token) if is_negated else token
        match token.kind:
            case "name":
                tokens.append(_Token("operator", token.text.lower(), is_negated))
            case "quoted" if not token.is_closed:
                raise Inexpressible("it has a quotation mark without its pair")
            case "quoted":
                tokens.append(_Token("text", token.text, is_negated))
            case "mark":
                tokens.append(_Token("or" if token.text == "|" else token.text, token.text, is_negated))
            case _:
                tokens.append(_Token("word", token.text, True) if is_negated else _word(token.text))
    return tokens


def _word(word: str) -> _Token:
    if word in ("OR", "AND"):
        return _Token(word.lower(), word)
    if word == "AROUND":
        raise Inexpressible(f"AROUND {NO_SUCH}")
    return _Token("word", word)


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
        return word_condition(f"{operator}_words", text)
    pieces = [text]
    if not is_quoted and operator in OF_WORDS and not is_address(text):
        pieces = list(filter(None, _SEPARATING.split(text))) or [text]
    return every(OPERATORS[operator](piece) for piece in pieces)


_TERMS = [spec.gmail for spec in SPECS.values() if spec.gmail is not None]
OPERATORS: Mapping[str, Callable[[str], Logic]] = {name: read for term in _TERMS for name, read in term.read.items()}
# Some marks separate words, so that all are searched for; others, such as `-` and `.`, join them to a phrase.
OF_WORDS = frozenset(name for term in _TERMS if term.of_words for name in term.read)
# Operators of Gmail without a counterpart, which would otherwise be taken for words.
UNKNOWN_TO_RULES = ("around", "header", "mimetype", "recipient", "reply")

# Anything before a colon that is not an operator is part of a word, as in `http://shop.example`.
_NAMES = "|".join(sorted(filter(None, (*OPERATORS, *UNKNOWN_TO_RULES)), key=len, reverse=True))
_SYNTAX = QuerySyntax(name=rf"(?i:{_NAMES}):", word=r'[^\s(){}"|]+', sign=r"-(?=[^\s|])", mark=r"[(){}|]")
