"""Parses raw mail as Gmail shows it: decoded headers, the tree of parts, the snippet.

Mail comes from strangers, so nothing in it may raise. It is parsed under the lenient `compat32` policy; the newer
policy also parses header values, and fails on some. Headers alone are split by hand, since a large mailbox needs them
for every message; the tree is built on demand, and not kept.
"""

import base64
import binascii
import html
import re
import secrets
import unicodedata
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from functools import cached_property
from html.parser import HTMLParser
from typing import Any, TypeAlias, TypeGuard, cast

Json = dict[str, Any]
Mime: TypeAlias = "Message[str, str]"

DEEPEST_PART = 64
SNIPPET_LENGTH = 200
# Longer values are kept, but not decoded, since that would take too long.
LONGEST_ENCODED = 65_536
LONGEST_MARKUP = 262_144

_FOLD = re.compile(r"[ \t]*[\r\n]+[ \t]*")
_SPACES = re.compile(r"\s+")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n|\r\r")
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"\w+(?:&\w+)*")
_ADDRESS = re.compile(r"[^\s<>()\[\],;:\"@]+@[^\s<>()\[\],;:\"@]+")
_HEADER = re.compile(r"([!-9;-~]+)[ \t]*:(.*)", re.DOTALL)


class Mail:
    """One mail, parsed on demand."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [(name, _readable(value)) for name, value in self._raw_headers]

    def header(self, name: str) -> str:
        """The first header with this name, decoded; empty if there is none."""
        wanted = name.lower()
        return next((_readable(value) for key, value in self._raw_headers if key.lower() == wanted), "")

    def all_headers(self, *names: str) -> list[str]:
        return [_readable(value) for key, value in self._raw_headers if key.lower() in names]

    def words(self, *names: str) -> str:
        """The words of these headers, as `as_words` gives them, with a line end between two headers."""
        if names not in self._header_words:
            self._header_words[names] = "\n".join(as_words(value) for value in self.all_headers(*names))
        return self._header_words[names]

    def addresses(self, *names: str) -> frozenset[str]:
        """The addresses that stand in these headers, in lower case."""
        if names not in self._header_addresses:
            found = _ADDRESS.findall(" ".join(self.all_headers(*names)).lower())
            self._header_addresses[names] = frozenset(address.strip("'.") for address in found)
        return self._header_addresses[names]

    @cached_property
    def text_words(self) -> str:
        return as_words(self.text)

    @cached_property
    def _header_words(self) -> dict[tuple[str, ...], str]:
        return {}

    @cached_property
    def _header_addresses(self) -> dict[tuple[str, ...], frozenset[str]]:
        return {}

    @cached_property
    def text(self) -> str:
        """The readable text on one line: the first plain text, else the first HTML without tags."""
        leaves = list(_leaves(self._root()))
        for mime_type, read in (("text/plain", str), ("text/html", _without_tags)):
            for leaf in leaves:
                if leaf.get_content_type() == mime_type and not _filename(leaf):
                    return _SPACES.sub(" ", read(_utf8(leaf).decode(errors="replace"))).strip()
        return ""

    @property
    def snippet(self) -> str:
        """The beginning of the text, HTML-escaped like Gmail's."""
        return html.escape(self.text[:SNIPPET_LENGTH]).replace("&#x27;", "&#39;")

    @cached_property
    def filenames(self) -> tuple[str, ...]:
        return tuple(name for leaf in _leaves(self._root()) if (name := _filename(leaf)))

    @property
    def has_attachment(self) -> bool:
        return bool(self.filenames)

    def payload(self) -> Json:
        """The whole tree, for format=full."""
        return {**_part(self._root(), ""), "headers": _header_list(self.headers)}

    def envelope(self, only: frozenset[str]) -> Json:
        """The headers alone, for format=metadata; `only` are the requested names in lower case."""
        shown = [(name, value) for name, value in self.headers if not only or name.lower() in only]
        head = BytesHeaderParser().parsebytes(self.raw[: _head_end(self.raw)])
        return {"mimeType": head.get_content_type(), "headers": _header_list(shown)}

    def attachment(self, attachment_id: str) -> bytes | None:
        """The content of the attachment with this id, if this mail has it."""
        part_id = _part_of(attachment_id)
        if part_id is None:
            return None
        part = self._root()
        for step in part_id.split(".") if part_id else ():
            children = _children(part)
            if not step.isdigit() or int(step) >= len(children):
                return None
            part = children[int(step)]
        return _content(part) if _filename(part) else None

    @cached_property
    def _raw_headers(self) -> list[tuple[str, str]]:
        """Raw names and values, still encoded and folded. After a line that is not a header, the rest is body."""
        found: list[tuple[str, list[str]]] = []
        head = self.raw[: _head_end(self.raw)].decode("ascii", "surrogateescape")
        for number, line in enumerate(_LINE_END.split(head)):
            if found and line[:1] in (" ", "\t"):
                found[-1][1].append(line)
            elif header := _HEADER.fullmatch(line):
                found.append((header[1], [header[2]]))
            elif number or not line.startswith("From "):
                break
        return [(name, "\n".join(lines)) for name, lines in found]

    def _root(self) -> Mime:
        try:
            return message_from_bytes(self.raw)
        except RecursionError:
            # Hundreds of nested multiparts: their content is kept as one opaque text.
            return BytesHeaderParser().parsebytes(self.raw)


def as_words(text: str) -> str:
    """The words of a text without case and accents, with a blank before and after each: a phrase is found by `in`."""
    return f" {' '.join(_WORD.findall(folded(text)))} "


def folded(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_FOLDED)


class _Folded(dict[int, str]):
    """Each character without case and accents, looked up once. Character by character, since mail with thousands of
    accents on one letter would take `unicodedata.normalize` quadratic time.
    """

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code).casefold())
        self[code] = "".join(each for each in plain if not unicodedata.combining(each)).casefold()
        return self[code]


_FOLDED = _Folded()


def _head_end(raw: bytes) -> int:
    if raw[:1] in (b"\r", b"\n"):
        return 0
    blank = _BLANK_LINE.search(raw)
    return blank.start() if blank else len(raw)


def _readable(value: str) -> str:
    return _unfolded(_words(_eight_bit(value)))


def _part(part: Mime, part_id: str) -> Json:
    filename = _filename(part)
    shown: Json = {
        "partId": part_id,
        "mimeType": part.get_content_type(),
        "filename": filename,
        "headers": _header_list(_headers(part)),
        "body": {"size": 0},
    }
    children = _children(part)
    if not children:
        shown["body"] = _body(part, part_id, bool(filename))
    elif part_id.count(".") < DEEPEST_PART:
        prefix = f"{part_id}." if part_id else ""
        shown["parts"] = [_part(child, f"{prefix}{number}") for number, child in enumerate(children)]
    return shown


def _body(part: Mime, part_id: str, attached: bool) -> Json:
    if attached:
        return {"attachmentId": _attachment_id(part_id), "size": len(_content(part))}
    content = _utf8(part) if part.get_content_maintype() == "text" else _content(part)
    return {"size": len(content), "data": base64.urlsafe_b64encode(content).decode()} if content else {"size": 0}


def _attachment_id(part_id: str) -> str:
    """A new id each time, as at Gmail, so that a client that keeps an id across two reads fails here."""
    return base64.urlsafe_b64encode(f"{secrets.token_hex(8)}:{part_id}".encode()).decode().rstrip("=")


def _part_of(attachment_id: str) -> str | None:
    try:
        padded = attachment_id + "=" * (-len(attachment_id) % 4)
        _, colon, part_id = base64.urlsafe_b64decode(padded).decode("ascii").partition(":")
    except (binascii.Error, ValueError):
        return None
    return part_id if colon else None


def _children(part: Mime) -> list[Mime]:
    """The parts of a multipart, or the mail inside a message/rfc822."""
    inside: object = part.get_payload()
    return [child for child in cast("list[object]", inside) if _is_mime(child)] if isinstance(inside, list) else []


def _is_mime(thing: object) -> TypeGuard[Mime]:
    return isinstance(thing, Message)


def _leaves(part: Mime, depth: int = 0) -> Iterator[Mime]:
    children = _children(part)
    if not children:
        yield part
    elif depth < DEEPEST_PART:
        for child in children:
            yield from _leaves(child, depth + 1)


def _content(part: Mime) -> bytes:
    """The bytes without transfer encoding; unchanged if they cannot be decoded."""
    try:
        content: object = part.get_payload(decode=True)
    except (LookupError, ValueError):
        content = part.get_payload()
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    return content if isinstance(content, bytes) else b""


def _utf8(part: Mime) -> bytes:
    """A text converted to UTF-8 from any charset, as Gmail does."""
    return _decoded(_content(part), _parameter(part, "charset")).encode("utf-8", "replace")


def _parameter(part: Mime, name: str) -> str:
    try:
        value = part.get_param(name, "")
    except (ValueError, IndexError, LookupError):
        return ""
    return value if isinstance(value, str) else value[2] if value else ""


def _filename(part: Mime) -> str:
    try:
        return _unfolded(_words(part.get_filename("")))
    except (ValueError, IndexError, LookupError, TypeError):
        return ""


def _decoded(content: bytes, charset: str) -> str:
    for candidate in (charset, "utf-8"):
        try:
            return content.decode(candidate)
        except (LookupError, ValueError):
            continue
    return content.decode("windows-1252", "replace")


def _headers(part: Mime) -> list[tuple[str, str]]:
    return [(name, _readable(value)) for name, value in part.raw_items()]


def _eight_bit(value: str) -> str:
    """Decode raw non-ASCII bytes, which the parser keeps as surrogates, as UTF-8 or else as Windows-1252."""
    return _decoded(str(value).encode("ascii", "surrogateescape"), "utf-8") if not value.isascii() else value


def _words(value: str) -> str:
    """Decode encoded words (RFC 2047); a value with malformed ones is left unchanged."""
    if "=?" not in value or len(value) > LONGEST_ENCODED:
        return value
    try:
        chunks = cast("list[tuple[str | bytes, str | None]]", decode_header(_unfolded(value)))
    except (HeaderParseError, ValueError):
        return value
    return "".join(
        chunk if isinstance(chunk, str) else _decoded(chunk, charset or "latin-1") for chunk, charset in chunks
    )


def _unfolded(value: str) -> str:
    return _FOLD.sub(" ", value).strip().encode("utf-8", "replace").decode()


def _header_list(headers: list[tuple[str, str]]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in headers]


class _TextOnly(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script") and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def _without_tags(markup: str) -> str:
    reader = _TextOnly()
    reader.feed(markup[:LONGEST_MARKUP])
    return " ".join(reader.pieces)
