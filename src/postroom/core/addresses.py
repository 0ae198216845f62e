"""Addresses in header values: found whatever surrounds them, and put into the one form in which they are compared.

A value is read once from left to right, in linear time. Quoted names, comments, groups and routes are understood;
what is malformed yields the addresses that can be told, and never an error.

The compared form is lower-case, with domains as ASCII (`bücher.example` and `xn--bcher-kva.example` are one). Plus
addresses stay as they are: `mara+shop@x.example` is another address than `mara@x.example`.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from postroom.core.mime_words import WORD, decode_run, decode_words

LONGEST_VALUE = 65_536
# A value grows when its names are decoded and quoted; it is not cut a second time for that.
MOST_CHARACTERS = 4 * LONGEST_VALUE
LONGEST_LABEL = 63

_SPECIAL = r'[^\s"(),:;<>@\\\[\]]'
# Nearly every value is one of these two; the rest is taken apart token by token.
_SIMPLE = re.compile(rf'(?:"[^"\\=]*"[ \t]*|[^"(),:;<>@\\\[\]=]*)<({_SPECIAL}+@{_SPECIAL}+)>|({_SPECIAL}+@{_SPECIAL}+)')
_TOKEN = re.compile(
    rf"""
    (?P<blank>   \s++ )
  | (?P<quoted>  "(?:[^"\\]|\\.)*+"? | \\ )
  | (?P<comment> \( )
  | (?P<angle>   <[^<>]*+> | <[^\s<>,;]*+ )
  | (?P<word>    {WORD}(?=[\s"(),:;<]|$) )
  | (?P<mark>    [,:;] )
  | (?P<stray>   [>)] )
  | (?P<atom>    (?:[^\s"(),:;<>\[\\]|\[[^\[\]\s]*+\]?)++ )
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_COMMENT = re.compile(r"[()]|\\.", re.DOTALL)
_COMMENT = re.compile(r"\([^()]*\)")
_NEEDS_QUOTES = re.compile(r'[()<>\[\]:;@\\,"=?]')
_PLAIN_LOCAL = re.compile(r"[^\s\"(),:;<>@\\\[\]]+")
_DOTS = str.maketrans({"。": ".", "．": ".", "｡": "."})


class _Token(NamedTuple):
    kind: str
    text: str


def addresses(value: str) -> list[str]:
    """Every address in the value, in order, in the form in which addresses are compared."""
    value = value[:MOST_CHARACTERS].strip()
    if simple := _SIMPLE.fullmatch(value):
        found = canonical(simple[1] or simple[2])
        return [found] if found else []
    return [found for written in _mailboxes(readable_addresses(value)) if (found := canonical(written))]


def canonical(address: str) -> str | None:
    """The form in which addresses are compared; None for what is no address."""
    bare = _COMMENT.sub("", address) if "(" in address else address
    local, at, domain = "".join(bare.split()).rpartition("@")
    domain = domain.rstrip(".")
    if not (local and at and domain):
        return None
    if local[0] == '"' and local[-1] == '"' and _PLAIN_LOCAL.fullmatch(local[1:-1]):
        local = local[1:-1]
    if not address.isascii():
        local = unicodedata.normalize("NFC", local)
        domain = canonical_domain(domain)
    return f"{local}@{domain}".lower()


def canonical_domain(domain: str) -> str:
    """Lower-case, every label in its ASCII form."""
    if domain.isascii():
        return domain.lower()
    mapped = unicodedata.normalize("NFKC", domain.translate(_DOTS)).lower()
    return ".".join(map(_ascii_label, mapped.split(".")))


def readable_addresses(value: str) -> str:
    """The value with its encoded words decoded, and in quotes where they would change who is addressed."""
    if "=?" not in value:
        return value
    pieces: list[str] = []
    words: list[str] = []
    blank = ""
    for token in _tokens(value):
        if token.kind == "word":
            words.append(token.text)
            blank = ""
            continue
        if token.kind == "blank" and words:
            blank = token.text
            continue
        pieces += (_name(words), blank, _readable(token))
        words, blank = [], ""
    return "".join((*pieces, _name(words), blank))


def _name(words: list[str]) -> str:
    text = decode_run(words) if words else ""
    return f'"{_escaped(text)}"' if _NEEDS_QUOTES.search(text) else text


def _readable(token: _Token) -> str:
    if token.kind == "quoted" and len(token.text) > 1:
        end = '"' if token.text.endswith('"') else ""
        inner = token.text[1 : len(token.text) - len(end)]
        return f'"{decode_words(inner, _escaped)}{end}' if "=?" in inner else token.text
    if token.kind == "comment" and "=?" in token.text:
        return decode_words(token.text, _escaped_in_comment)
    return token.text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped_in_comment(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _mailboxes(value: str) -> Iterator[str]:
    """What stands for an address in each mailbox: the part in angle brackets, else the word with an @ in it."""
    angle = ""
    words: list[str] = []
    for token in _tokens(f"{value},"):
        match token.kind, token.text:
            case "angle", text:
                angle = angle or text.strip("<>").strip()
            case "atom", text:
                words.append(text)
            case "quoted", text if len(text) > 1:
                words.append(text)
            case "mark", ":" if not angle:
                words.clear()  # that was the name of a group
            case "mark", _:
                yield _after_route(angle) if angle else _bare(words)
                angle = ""
                words.clear()
            case _:
                pass


def _bare(words: list[str]) -> str:
    """`mara@x.example`, also beside a name without brackets, and in the old form with blanks around the @."""
    for number, word in enumerate(words):
        if "@" in word[1:-1] and not word.startswith('"'):
            return word
        if word.startswith("@") and number:
            return f"{words[number - 1]}{word}{words[number + 1] if word == '@' and number + 1 < len(words) else ''}"
    return ""


def _after_route(angle: str) -> str:
    """`@relay.example:mara@x.example` is an address with the way there before it."""
    return angle.rpartition(":")[2] if angle.startswith("@") else angle


def _tokens(value: str) -> Iterator[_Token]:
    at = 0
    while at < len(value):
        found = _TOKEN.match(value, at)
        if found is None:  # nothing in the table fails to match, but a loop must end whatever the table says
            return
        end = _end_of_comment(value, at) if found.lastgroup == "comment" else found.end()
        yield _Token(found.lastgroup or "", value[at:end])
        at = end


def _end_of_comment(value: str, start: int) -> int:
    """Comments nest; one that is never closed takes the rest."""
    depth = 0
    for found in _IN_COMMENT.finditer(value, start):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        if depth == 0:
            return found.end()
    return len(value)


def _ascii_label(label: str) -> str:
    """Labels longer than DNS allows are left alone: the encoding takes quadratic time."""
    if label.isascii() or len(label) > LONGEST_LABEL:
        return label
    try:
        return f"xn--{label.encode('punycode').decode('ascii')}"
    except UnicodeError:
        return label
