"""A mail's raw bytes as Gmail shows them: decoded headers, the tree of parts, the snippet.

Mail comes from strangers, so nothing in it may raise. It is parsed under the lenient `compat32` policy; the newer
policy parses header values too, and there are values on which it fails.
"""

import base64
import html
import re
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

_FOLD = re.compile(r"[ \t]*[\r\n]+[ \t]*")
_SPACES = re.compile(r"\s+")


class Mail:
    """One mail, parsed when it is first looked into."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @cached_property
    def headers(self) -> list[tuple[str, str]]:
        return _headers(self._root)

    def header(self, name: str) -> str:
        """The first header of this name, decoded, or an empty text."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    @cached_property
    def text(self) -> str:
        """What a person would read, on one line: the first plain text, else the first HTML without its tags."""
        leaves = list(_leaves(self._root))
        for mime_type, read in (("text/plain", str), ("text/html", _without_tags)):
            for leaf in leaves:
                if leaf.get_content_type() == mime_type and not _filename(leaf):
                    return _SPACES.sub(" ", read(_utf8(leaf).decode(errors="replace"))).strip()
        return ""

    @property
    def snippet(self) -> str:
        """The beginning of the text, escaped for HTML as Gmail gives it."""
        return html.escape(self.text[:SNIPPET_LENGTH]).replace("&#x27;", "&#39;")

    @property
    def has_attachment(self) -> bool:
        return any(_filename(leaf) for leaf in _leaves(self._root))

    def payload(self) -> Json:
        """The whole tree, for format=full."""
        return _part(self._root, "")

    def envelope(self, only: frozenset[str]) -> Json:
        """The headers alone, for format=metadata; `only` names, in lower case, the ones that were asked for."""
        shown = [(name, value) for name, value in self.headers if not only or name.lower() in only]
        return {"mimeType": self._root.get_content_type(), "headers": _named(shown)}

    @cached_property
    def _root(self) -> Mime:
        try:
            return message_from_bytes(self.raw)
        except RecursionError:
            # Multiparts nested by the hundred: their content stays one opaque text.
            return BytesHeaderParser().parsebytes(self.raw)


def _part(part: Mime, part_id: str) -> Json:
    filename = _filename(part)
    shown: Json = {
        "partId": part_id,
        "mimeType": part.get_content_type(),
        "filename": filename,
        "headers": _named(_headers(part)),
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
        content = _content(part)
        return {"attachmentId": base64.urlsafe_b64encode(f"part-{part_id}".encode()).decode(), "size": len(content)}
    content = _utf8(part) if part.get_content_maintype() == "text" else _content(part)
    return {"size": len(content), "data": base64.urlsafe_b64encode(content).decode()} if content else {"size": 0}


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
    """The bytes after the transfer encoding is undone; undecodable ones as they are."""
    try:
        content: object = part.get_payload(decode=True)
    except (LookupError, ValueError):
        content = part.get_payload()
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    return content if isinstance(content, bytes) else b""


def _utf8(part: Mime) -> bytes:
    """A text as Gmail gives it: turned into UTF-8, whatever charset it came in."""
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
    return [(name, _unfolded(_words(_eight_bit(value)))) for name, value in part.raw_items()]


def _eight_bit(value: str) -> str:
    """The parser keeps raw bytes beyond ASCII as surrogates; mail that has them means UTF-8, or else Windows-1252."""
    return _decoded(str(value).encode("ascii", "surrogateescape"), "utf-8") if not value.isascii() else value


def _words(value: str) -> str:
    """Encoded words (RFC 2047) decoded; a value in which they are broken stays as it is."""
    if "=?" not in value:
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


def _named(headers: list[tuple[str, str]]) -> list[Json]:
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
    reader.feed(markup)
    return " ".join(reader.pieces)
