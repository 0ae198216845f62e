"""Mail addresses: parsed whole or not at all, and brought into the canonical form in which they are compared.

`canonical` parses one address by the grammar of RFC 5321, 5322 and 6531. Every legal address has a canonical form,
whatever characters, quotes or scripts it uses. Anything else has none, and is never cut down to something that looks
like an address. `addresses` finds the addresses in a header value, in linear time: it understands quoted names,
comments, groups and routes, and takes what it can from a malformed value. `listed_addresses` reads text that should be
addresses, such as a cell of an address book, and reports the entries that are not. `single_mailbox` trusts only an
unambiguous value.

The canonical form is lower-case, with ASCII domains (`bücher.example` and `xn--bcher-kva.example` are the same), and
without needless quotes (`"mara"@x.example`). Plus addresses are kept: `mara+shop@x.example` is not `mara@x.example`.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from postroom.core.mail.words import WORD, decode_run, decode_words

LONGEST_VALUE = 65_536
# Decoding and quoting names makes a value longer; this limit leaves room for that.
MOST_CHARACTERS = 4 * LONGEST_VALUE
LONGEST_LABEL = 63
# More than SMTP allows (64), since lists and forwarders write longer local parts into headers.
LONGEST_LOCAL = 256
LONGEST_DOMAIN = 255

_SPECIAL = r'[^\s"(),:;<>@\\\[\]]'
# Nearly every value has one of these two forms; the rest is parsed token by token.
_SIMPLE = re.compile(rf'(?:"[^"\\=]*"[ \t]*|[^"(),:;<>@\\\[\]=]*)<({_SPECIAL}+@{_SPECIAL}+)>|({_SPECIAL}+@{_SPECIAL}+)')
_SIMPLE_NAME = re.compile(rf'\s*(?:"([^"\\=]*)"\s*|([^"(),:;<>@\\\[\]=]*))<({_SPECIAL}+@{_SPECIAL}+)>\s*')
_TOKEN = re.compile(
    rf"""
    (?P<blank>   \s++ )
  | (?P<quoted>  "(?:[^"\\]|\\.)*+"? | \\ )
  | (?P<comment> \( )
  | (?P<angle>   <(?:[^<>"]|"(?:[^"\\]|\\.)*+")*+> | <[^\s<>,;]*+ )
  | (?P<word>    {WORD}(?=[\s"(),:;<]|$) )
  | (?P<mark>    [,:;] )
  | (?P<stray>   [>)] )
  | (?P<atom>    (?:[^\s"(),:;<>\[\\]|\[[^\[\]\s]*+\]?)++ )
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_COMMENT = re.compile(r"[()]|\\.", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[()<>\[\]:;@\\,"=?]')
_PLAIN = re.compile(
    rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~.-]{{1,{LONGEST_LOCAL}}}@"
    rf"[A-Za-z0-9_-]{{1,{LONGEST_LABEL}}}(?:\.[A-Za-z0-9_-]{{1,{LONGEST_LABEL}}})*\.?"
)
_ATOM = r"""[^\s"(),:;<>@\\\[\].]++"""
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_WRITTEN = re.compile(
    rf"""\s*+
    (?P<local> \.*+ (?:{_ATOM}|{_QUOTED}) (?:\s*+ \.++ \s*+ (?:{_ATOM}|{_QUOTED}))*+ \.*+ ) \s*+
    @ \s*+
    (?P<domain> \[[^\[\]\\\s]++\] | {_ATOM} (?:\s*+ \. \s*+ {_ATOM})*+ \.?+ ) \s*+
    """,
    re.VERBOSE | re.DOTALL,
)
_LOCAL_PIECE = re.compile(rf"(?P<quoted>{_QUOTED})|\s++|[^\s\"]++", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN_LOCAL = re.compile(r"[^\s\"(),:;<>@\\\[\]]+")
_DOMAIN = re.compile(rf"[a-z0-9_-]{{1,{LONGEST_LABEL}}}(?:\.[a-z0-9_-]{{1,{LONGEST_LABEL}}})*|\[[!-Z^-~]+\]")
_WORDS = re.compile(rf"(?:{_QUOTED}|\S)++", re.DOTALL)
_DOTS = str.maketrans({"。": ".", "．": ".", "｡": "."})


class _Token(NamedTuple):
    kind: str
    text: str


class Listed(NamedTuple):
    """One entry of a list of addresses: its text, and its canonical address, or None if it is not an address."""

    text: str
    address: str | None


def addresses(value: str) -> list[str]:
    """Every address in a header value, in order, in canonical form."""
    value = shortened(value, MOST_CHARACTERS).strip()
    if simple := _SIMPLE.fullmatch(value):
        found = canonical(simple[1] or simple[2])
        return [found] if found else []
    return [found for written in _mailboxes(readable_addresses(value)) if (found := canonical(written))]


def single_mailbox(value: str) -> str | None:
    """The address in a header value that names exactly one mailbox, in canonical form; None for several, for a group,
    and for words beside the mailbox that are another address.
    """
    found = addresses(value)
    if len(found) != 1 or _SIMPLE.fullmatch(value.strip()):
        return found[0] if len(found) == 1 else None
    tokens = list(_tokens(readable_addresses(shortened(value, MOST_CHARACTERS))))
    angles = [_after_route(token.text.strip("<>").strip()) for token in tokens if token.kind == "angle"]
    written = [token.text for token in tokens if token.kind == "atom" and canonical(token.text)]
    is_group = any(token.kind == "mark" and token.text in ":;" for token in tokens)
    is_single = len(angles) < 2 and all(canonical(each) == found[0] for each in (*angles, *written))
    return found[0] if is_single and not is_group else None


def names_and_addresses(value: str) -> list[str]:
    """The names and the addresses in a header value, as texts to search in."""
    if simple := _SIMPLE_NAME.fullmatch(value):
        return [simple[1] or simple[2] or "", simple[3]]
    return [*display_names(value), *addresses(value)]


def display_names(value: str) -> list[str]:
    """The names beside the addresses in a header value, in order: `Ida Holm <ida@x.example>`, `ida@x.example (Ida)`."""
    if simple := _SIMPLE_NAME.fullmatch(value):
        name = " ".join((simple[1] or simple[2] or "").split())
        return [name] if name else []
    found: list[list[str]] = [[]]
    for token in _tokens(readable_addresses(shortened(value, MOST_CHARACTERS))):
        match token.kind, token.text:
            case "mark", _:
                found.append([])
            case "quoted", text if not text.startswith("\\"):
                found[-1].append(_ESCAPED.sub(r"\1", text.strip('"')))
            case "comment", text:
                found[-1] += (" ", _ESCAPED.sub(r"\1", text[1:].removesuffix(")")), " ")
            case (("atom" | "word" | "blank"), text) if "@" not in text:
                found[-1].append(text)
            case _:
                found[-1].append(" ")
    return [name for pieces in found if (name := " ".join("".join(pieces).split()))]


def listed_addresses(value: str) -> list[Listed]:
    """The entries of a text that was given as one or more addresses, with or without names.

    Entries are separated by commas, semicolons, line breaks, `:::` (as in Google's exports), or by blanks if each is a
    bare address.
    """
    return [each for entry in _entries(value) for each in _read_entry(entry)]


def shortened(value: str, longest: int) -> str:
    """An address list, cut after a whole entry: half of an address may be another address."""
    return value if len(value) <= longest else value[:longest].rpartition(",")[0]


def canonical(address: str) -> str | None:
    """The form in which an address is compared; None if it is not a valid address."""
    if _PLAIN.fullmatch(address):
        plain = address.lower().removesuffix(".")
        return plain if len(plain) - plain.index("@") <= LONGEST_DOMAIN + 1 else None
    written = _WRITTEN.fullmatch(_without_comments(address))
    if written is None or not written["domain"].isprintable():
        return None
    local, domain = _local(written["local"]), canonical_domain("".join(written["domain"].split()).removesuffix("."))
    if len(local) > LONGEST_LOCAL or len(domain) > LONGEST_DOMAIN or not _DOMAIN.fullmatch(domain):
        return None
    found = f"{local}@{domain}"
    return found if found.isprintable() else None


def _local(written: str) -> str:
    """The local part, quoted only where necessary. Blanks inside quotes count, those outside do not."""
    pieces = (
        _ESCAPED.sub(r"\1", piece.group()[1:-1]) if piece["quoted"] else piece.group().strip()
        for piece in _LOCAL_PIECE.finditer(written)
    )
    content = unicodedata.normalize("NFC", unicodedata.normalize("NFC", "".join(pieces)).lower())
    is_plain = _PLAIN_LOCAL.fullmatch(content) and content.strip(".")
    return content if is_plain else f'"{_escape(content)}"'


def _without_comments(text: str) -> str:
    if "(" not in text:
        return text
    return "".join(" " if token.kind == "comment" else token.text for token in _tokens(text))


def canonical_domain(domain: str) -> str:
    """The domain in lower case, with every label in its ASCII form."""
    if domain.isascii():
        return domain.lower()
    mapped = unicodedata.normalize("NFKC", domain.translate(_DOTS)).lower()
    return ".".join(map(_ascii_label, mapped.split(".")))


def readable_addresses(value: str) -> str:
    """The value with its encoded words decoded, quoted where they could otherwise change the addresses."""
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
    return f'"{_escape(text)}"' if _NEEDS_QUOTES.search(text) else text


def _readable(token: _Token) -> str:
    if token.kind == "quoted" and len(token.text) > 1:
        end = '"' if token.text.endswith('"') else ""
        inner = token.text[1 : len(token.text) - len(end)]
        return f'"{decode_words(inner, _escape)}{end}' if "=?" in inner else token.text
    if token.kind == "comment" and "=?" in token.text:
        return decode_words(token.text, _escaped_in_comment)
    return token.text


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped_in_comment(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _mailboxes(value: str) -> Iterator[str]:
    """The address text of each mailbox: the part in angle brackets, else the word with an @ in it."""
    angle = ""
    pieces: list[str] = []
    for token in _tokens(f"{value},"):
        match token.kind, token.text:
            case "angle", text:
                angle = angle or text.strip("<>").strip()
            case (("atom" | "quoted"), text):
                pieces.append(text)
            case "mark", ":" if not angle and "@" not in "".join(pieces):
                pieces.clear()  # it was the name of a group
            case "mark", ":" if not angle:
                pieces.append(":")
            case "mark", _:
                yield _after_route(angle) if angle else _bare("".join(pieces))
                angle = ""
                pieces.clear()
            case _:
                pieces.append(" ")


def _bare(text: str) -> str:
    """An address without brackets: the whole text, or one of its words."""
    if canonical(text):
        return text
    return next((word for word in _WORDS.findall(text) if "@" in word and canonical(word)), "")


def _entries(value: str) -> Iterator[list[_Token]]:
    """The tokens of each entry of a list, without the names of groups."""
    entry: list[_Token] = []
    tokens = list(_tokens(value))
    for place, token in enumerate(tokens):
        is_triple = token.text == ":" and [each.text for each in tokens[place : place + 3]] == [":"] * 3
        ends = token.text in (",", ";") or is_triple or (token.kind == "blank" and "\n" in token.text)
        if token.kind == "mark" and token.text == ":" and not is_triple and not any("@" in each.text for each in entry):
            entry = []
        elif ends:
            yield entry
            entry = []
        else:
            entry.append(token)
    yield entry


def _read_entry(entry: list[_Token]) -> list[Listed]:
    """The addresses of an entry: one, several if it has nothing else, or the whole text as no address."""
    text = "".join(token.text for token in entry).strip()
    if not text:
        return []
    content = [token for token in entry if token.kind not in ("blank", "comment")]
    angles = [token for token in content if token.kind == "angle"]
    if len(angles) == 1 and content[-1] is angles[0] and angles[0].text.endswith(">"):
        return [Listed(text, canonical(_after_route(angles[0].text[1:-1].strip())))]
    if (whole := canonical(text)) is not None:
        return [Listed(text, whole)]
    words = [Listed(word, canonical(word)) for word in _WORDS.findall(text)]
    return words if all(each.address for each in words) else [Listed(text, None)]


def _after_route(angle: str) -> str:
    """The address without its source route, as in `@relay.example:mara@x.example`."""
    return angle.rpartition(":")[2] if angle.startswith("@") else angle


def _tokens(value: str) -> Iterator[_Token]:
    at = 0
    while at < len(value):
        found = _TOKEN.match(value, at)
        if found is None:  # cannot happen: the pattern matches any character; but the loop must end in any case
            return
        end = _end_of_comment(value, at) if found.lastgroup == "comment" else found.end()
        yield _Token(found.lastgroup or "", value[at:end])
        at = end


def _end_of_comment(value: str, start: int) -> int:
    """Where a comment ends. Comments nest; an unclosed one takes the rest."""
    depth = 0
    for found in _IN_COMMENT.finditer(value, start):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        if depth == 0:
            return found.end()
    return len(value)


def _ascii_label(label: str) -> str:
    """The label in ASCII. One longer than DNS allows is left alone, and so refused: encoding takes quadratic time."""
    if label.isascii() or len(label) > LONGEST_LABEL:
        return label
    try:
        return f"xn--{label.encode('punycode').decode('ascii')}"
    except UnicodeError:
        return label
