"""Converts Gmail's search syntax, as far as filters use it, to conditions and back.

    from:(ida@shop.example OR @club.example) -subject:"out of office" {invoice receipt}

All parts must match; `OR` and braces mean any, a minus means not. `OR` joins its two neighbours only. A bare word is
searched for in subject and text.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from postroom.core.mail.addresses import canonical
from postroom.core.rules.exchange import Inexpressible, all_of, any_of

LONGEST_QUERY = 10_000
DEEPEST_QUERY = 15
_WORD = re.compile(r"\w", re.ASCII)
_AGE = re.compile(r"(\d{1,4})([hdmy])")
SYSTEM_LABELS = {
    "inbox": "INBOX",
    "spam": "SPAM",
    "trash": "TRASH",
    "sent": "SENT",
    "starred": "STARRED",
    "unread": "UNREAD",
    "important": "IMPORTANT",
}
CATEGORIES = ("promotions", "social", "updates", "forums", "personal")
DAYS = {"d": 1, "m": 30, "y": 365}
UNKNOWN_TO_RULES = (
    *("bcc", "filename", "larger", "smaller", "size"),
    *("after", "before", "older", "newer", "rfc822msgid", "around"),
)


class _Token(NamedTuple):
    kind: str
    text: str
    negated: bool = False


def read_query(text: str, operator: str = "") -> dict[str, Any]:
    """The conditions for a search. Raises Inexpressible, which names what has no counterpart."""
    if len(text) > LONGEST_QUERY:
        raise Inexpressible("it is too long")
    found = _Parser(_tokens(text)).sequence(operator, "", 0)
    if not found:
        raise Inexpressible("it is empty")
    return all_of(found)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    for found in _TOKEN.finditer(text):
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
    negated = word.startswith("-") and len(word) > 1
    return _Token("text", word[1:] if negated else word, negated)


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def sequence(self, operator: str, closing: str, depth: int) -> list[dict[str, Any]]:
        """The parts up to the closing bracket. All must match, or any inside braces, which is up to the caller."""
        if depth > DEEPEST_QUERY:
            raise Inexpressible("it is nested too deep")
        groups: list[list[dict[str, Any]]] = []
        joins = False
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.kind in (")", "}"):
                if token.kind != closing:
                    raise Inexpressible(f"{token.text!r} closes nothing")
                return [any_of(group) for group in groups]
            if token.kind == "or":
                if not groups:
                    raise Inexpressible("OR has nothing before it")
                joins = True
            elif token.kind != "and":
                part = self._part(token, operator, depth)
                groups[-1].append(part) if joins else groups.append([part])
                joins = False
        if closing or joins:
            raise Inexpressible("it ends too early")
        return [any_of(group) for group in groups]

    def _part(self, token: _Token, operator: str, depth: int) -> dict[str, Any]:
        match token.kind:
            case "operator":
                if self._at >= len(self._tokens):
                    raise Inexpressible(f"{token.text}: has no value")
                value = self._tokens[self._at]
                if value.kind == "operator":
                    raise Inexpressible(f"{token.text}: is followed by another operator")
                self._at += 1
                part = self._part(value, token.text, depth + 1)
            case "(":
                part = all_of(self._inside(operator, ")", depth))
            case "{":
                part = any_of(self._inside(operator, "}", depth))
            case "text":
                part = _leaf(operator, token.text)
            case _:
                raise Inexpressible(f"{token.text!r} is in the wrong place")
        return {"not": part} if token.negated else part

    def _inside(self, operator: str, closing: str, depth: int) -> list[dict[str, Any]]:
        found = self.sequence(operator, closing, depth + 1)
        if not found:
            raise Inexpressible("there is nothing between its brackets")
        return found


def _leaf(operator: str, text: str) -> dict[str, Any]:
    text = text.strip().removeprefix("+")
    if not text:
        raise Inexpressible("it searches for nothing")
    if operator not in OPERATORS:
        raise Inexpressible(f"{operator}: has no counterpart among conditions")
    return OPERATORS[operator](text)


def _anywhere(text: str) -> dict[str, Any]:
    return {"or": [{"subject_contains": text}, {"body_contains": text}]}


def _from(text: str) -> dict[str, Any]:
    whole = text.removeprefix("*")
    if whole.startswith("@"):
        return {"sender_domain": whole[1:]}
    return {"sender_email": text} if _is_address(text) else _in_header("From", text)


def _to(text: str) -> dict[str, Any]:
    whole = text.removeprefix("*")
    return {"to": whole} if whole.startswith("@") or _is_address(whole) else _in_header("To", text)


def _in_header(name: str, text: str) -> dict[str, Any]:
    """A header that contains the text as a whole word, in the name or the address."""
    if "*" in text:
        raise Inexpressible(f"{text!r} has a star in its middle")
    before = r"\b" if _WORD.match(text[0]) else ""
    behind = r"\b" if _WORD.match(text[-1]) else ""
    return {"header_match": {"name": name, "pattern": f"{before}{escaped(text)}{behind}"}}


def escaped(text: str) -> str:
    """A pattern that matches exactly this text."""
    return "".join(f"\\{each}" if each in r"\.+*?()|[]{}^$" else each for each in text)


def _has(text: str) -> dict[str, Any]:
    if text.lower() != "attachment":
        raise Inexpressible(f"has:{text} has no counterpart among conditions")
    return {"has_attachment": True}


def _in(text: str) -> dict[str, Any]:
    if text.lower() not in SYSTEM_LABELS:
        raise Inexpressible(f"in:{text} or is:{text} has no counterpart among conditions")
    return {"label_present": SYSTEM_LABELS[text.lower()]}


def _category(text: str) -> dict[str, Any]:
    if text.lower() not in CATEGORIES:
        raise Inexpressible(f"category:{text} has no counterpart among conditions")
    return {"label_present": f"CATEGORY_{text.upper()}"}


def _older_than(text: str) -> dict[str, Any]:
    age = _AGE.fullmatch(text.lower())
    if age is None or int(age[1]) == 0:
        raise Inexpressible(f"{text!r} is not an age")
    return {"older_than": f"{age[1]}h" if age[2] == "h" else f"{int(age[1]) * DAYS[age[2]]}d"}


OPERATORS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "": _anywhere,
    "from": _from,
    "to": _to,
    "cc": lambda text: _in_header("Cc", text),
    "deliveredto": lambda text: _in_header("Delivered-To", text),
    "subject": lambda text: {"subject_contains": text},
    "list": lambda text: {"list_id": text.replace("@", ".")},
    "has": _has,
    "in": _in,
    "is": _in,
    "label": lambda text: {"label_present": text},
    "category": _category,
    "older_than": _older_than,
    "newer_than": lambda text: {"not": _older_than(text)},
}


# Anything before a colon that is not an operator is part of a word, as in `http://shop.example`.
_TOKEN = re.compile(
    rf"""\s+
  | (-?)({"|".join(filter(None, (*OPERATORS, *UNKNOWN_TO_RULES)))}):
  | (-?)"([^"]*)"
  | (-?)([(){{}}])
  | \|
  | ([^\s(){{}}"|]+)""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_address(text: str) -> bool:
    return "*" not in text and text.count("@") == 1 and not text.startswith("@") and canonical(text) is not None


def write_query(condition: Mapping[str, Any], depth: int = 0) -> str:
    """The search for these conditions. Raises Inexpressible, which names what Gmail cannot express."""
    if depth > DEEPEST_QUERY - 2:
        raise Inexpressible("it is nested too deep for a search")
    ((kind, argument),) = condition.items()
    match kind:
        case "and":
            return f"({' '.join(write_query(each, depth + 1) for each in argument)})"
        case "or":
            word = _word_anywhere(argument)
            return word or "{" + " ".join(write_query(each, depth + 1) for each in argument) + "}"
        case "not":
            inner = write_query(argument, depth + 1)
            return f"-({inner})" if inner.startswith("-") else f"-{inner}"
        case "has_attachment":
            return "has:attachment" if argument else "-has:attachment"
        case "sender_email":
            return f"from:{_bare(argument)}"
        case "sender_domain":
            return f"from:@{_bare(argument)}"
        case "to":
            return f"to:{_bare(argument)}"
        case "subject_contains":
            return f"subject:{_quoted(argument)}"
        case "list_id":
            return f"list:{_quoted(argument)}"
        case "label_present":
            return f"label:{_quoted(argument)}"
        case "older_than" if not argument.endswith("h"):
            return f"older_than:{int(argument[:-1]) * (7 if argument.endswith('w') else 1)}d"
        case _:
            raise Inexpressible(f"a search cannot say {kind}")


def _word_anywhere(argument: Any) -> str | None:
    match argument:
        case [{"subject_contains": str(word)}, {"body_contains": str(other)}] if word == other:
            return _quoted(word)
        case _:
            return None


def _bare(text: str) -> str:
    if re.search(r'[\s(){}":|]', text):
        raise Inexpressible(f"{text!r} cannot be used in a search")
    return text


def _quoted(text: str) -> str:
    if '"' in text or text != text.strip() or text.startswith("+"):
        raise Inexpressible("a search has no quotes, or blanks at its ends, inside quotes")
    return f'"{text}"'
