"""Hides what an external model need not know to sort mail: addresses, identifying numbers, secrets in links.

The text is normalised first, so that one pattern finds every spelling: full-width letters and Arabic digits, no-break
spaces, typographic hyphens, invisible characters between digits. The model gets the normalised text, so nothing can
pass unchecked. docs/reference/model.md says exactly what is promised.

Mail is hostile: every pattern is RE2, which takes linear time for any text.
"""

import unicodedata
from functools import lru_cache
from typing import Protocol

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

# Between two digits of one number there may be up to two of these, so "4111 - 1111" is two numbers.
_GAP = r"[ \t\-./_·•‧∙⋅。]{0,2}"
_LONG_GAP = r"(?:[ \t\-./_·•‧∙⋅。]{0,2}|\n)"

_MARKED_DIGIT = re2.compile(r"([0-9])\pM+", _OPTIONS)
# Applied in this order: what one pattern hides, the later ones no longer see.
_LINK = re2.compile(
    r"(?i)((?:[a-z][a-z0-9+.\-]*:)?//)(?:[^\s/?#<>\"]*@)?([^\s?#;<>\"]*)([?#;][^\s<>\"]*)?"
    r"|((?:[\pL\pN_\-]+[.。])+[\pL\pN\-]{2,}(?::[0-9]{1,5})?(?:/[^\s?#;<>\"]*)?)([?#;][^\s<>\"]+)"
    r"|(/[^\s?#;<>\"]*)([?#;][^\s<>\"=]+=[^\s<>\"]*)",
    _OPTIONS,
)
_DOMAIN = r"(?:\[[0-9a-fA-F.:IPv]{2,60}\]|[^\s@<>()\[\],;:\"'=]+)"
_LOCAL_PART = r"(?:\"(?:[^\"\\\n]|\\.){0,128}\"|[^\s@<>()\[\],;:\"]+)(?:\([^()\n]{0,128}\))?"
# With spaces around the @, it is an address only if a whole domain follows.
_ADDRESS = re2.compile(rf"{_LOCAL_PART}(?:@|%40){_DOMAIN}|{_LOCAL_PART} ?@ ?[\pL\pN\-]+(?:[.。][\pL\pN\-]+)+", _OPTIONS)
_IBAN = re2.compile(
    rf"(?i)\b[a-z]{{2}}[0-9]{{2}}(?:{_LONG_GAP}[a-z0-9]{{4}}){{2,7}}(?:{_GAP}[a-z0-9]{{1,4}})?\b", _OPTIONS
)
_CARD = re2.compile(rf"\b[0-9](?:{_LONG_GAP}[0-9]){{12,18}}\b", _OPTIONS)
_PHONES = (
    re2.compile(r"(?:\+ ?|\b00|\(0|\b0)[0-9()](?:[ \t\-./()_·•‧∙⋅。]{0,3}[0-9]){5,14}", _OPTIONS),
    re2.compile(rf"\(?\b[0-9]{{3}}\)?{_GAP}[0-9]{{3}}{_GAP}[0-9]{{4}}\b", _OPTIONS),
)
_NUMBER = re2.compile(rf"[0-9](?:{_GAP}[0-9]){{5,}}", _OPTIONS)
_AMOUNT = re2.compile(r"^[0-9]{1,5}\.[0-9]{1,2}$", _OPTIONS)

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u20e3\u3164\uffa0")
_QUOTES = dict.fromkeys("“”„‟″〝〞", '"') | dict.fromkeys("‘’‚‛′", "'")
_OTHER_HYPHENS = frozenset("−⁃˗➖")


class Found(Protocol):
    """A match, by its groups."""

    def __getitem__(self, group: int, /) -> str | None: ...


def redacted(text: str, sender: str) -> str:
    """The normalised text without addresses other than the sender's, without phone, card, account and other long
    numbers, and without what follows the path in a link, where secret tokens are."""
    kept = normalised(sender).lower()
    text = _LINK.sub(_plain_link, normalised(text))
    text = _ADDRESS.sub(lambda match: _kept_or_hidden(match, kept), text)
    text = _IBAN.sub("[iban]", text)
    text = _CARD.sub("[card]", text)
    for phone in _PHONES:
        text = phone.sub("[phone]", text)
    return _NUMBER.sub(_number, text)


def normalised(text: str) -> str:
    """The same spelling for text that reads alike: NFKC, ASCII digits, one space, one hyphen, nothing invisible."""
    folded = unicodedata.normalize("NFKC", text).translate(_FOLDING)
    return _MARKED_DIGIT.sub(r"\1", folded)


class _Folding:
    """A table for `str.translate`, computed on demand."""

    def __getitem__(self, code: int) -> str:
        return _fold(chr(code))


_FOLDING = _Folding()


@lru_cache(maxsize=4096)
def _fold(each: str) -> str:
    if each.isascii():
        return each if each in "\n\t" or " " <= each <= "~" else ""
    category = unicodedata.category(each)
    if (digit := unicodedata.digit(each, None)) is not None:
        return str(digit)
    if category[0] == "C" or each in _FILLERS or "\ufe00" <= each <= "\ufe0f" or "\U000e0100" <= each <= "\U000e01ef":
        return ""
    if category == "Zs":
        return " "
    if category in ("Zl", "Zp"):
        return "\n"
    if category == "Pd" or each in _OTHER_HYPHENS:
        return "-"
    return _QUOTES.get(each, each)


def _kept_or_hidden(match: Found, kept: str) -> str:
    address = match[0] or ""
    return address if address.strip(".'").lower() == kept else "[address]"


def _plain_link(match: Found) -> str:
    plain = f"{match[1]}{match[2] or ''}" if match[1] is not None else match[4] or match[6] or ""
    return plain if plain == match[0] else f"{plain}[…]"


def _number(match: Found) -> str:
    """Hide a long number, but not an amount such as 1299.00, which identifies nobody."""
    text = match[0] or ""
    return text if _AMOUNT.search(text) else "[number]"
