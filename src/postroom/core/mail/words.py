"""Decodes the encoded words (`=?utf-8?q?Caf=C3=A9?=`, RFC 2047) in header values."""

import binascii
import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from postroom.core.mail.charsets import codec_of, decode_text

WORD = r"=\?[A-Za-z0-9_.:+-]{1,40}(?:\*[A-Za-z0-9-]{0,40})?\?[bBqQ]\?[^?]*\?="
_WORD = re.compile(WORD)
# A decoded line break would start a new header wherever the value is written again.
_LINES = str.maketrans({"\r": " ", "\n": " ", "\0": "\ufffd"})


class _Run(NamedTuple):
    start: int
    end: int
    words: list[str]


def decode_words(text: str, escape: Callable[[str], str] = str) -> str:
    """The value with every encoded word decoded and passed through `escape`; blanks between two of them are dropped."""
    if "=?" not in text:
        return text
    pieces: list[str] = []
    at = 0
    for start, end, words in _runs(text):
        pieces += (text[at:start], escape(decode_run(words)))
        at = end
    return "".join((*pieces, text[at:]))


def decode_run(words: Sequence[str]) -> str:
    """Decode adjacent words. Those of one charset are joined first, since some mailers split characters."""
    contents = [
        (charset, _content(kind, inner, charset))
        for charset, kind, inner in ((name.partition("*")[0].lower(), *rest) for name, *rest in map(_parts, words))
    ]
    joined = [
        decode_text(b"".join(content for _, content in group), charset).text
        for charset, group in groupby(contents, key=lambda each: each[0])
    ]
    return "".join(joined).translate(_LINES)


def _runs(text: str) -> Iterator[_Run]:
    run: _Run | None = None
    for found in _WORD.finditer(text):
        if run is not None and not text[run.end : found.start()].strip():
            run.words.append(found.group())
            run = run._replace(end=found.end())
            continue
        if run is not None:
            yield run
        run = _Run(found.start(), found.end(), [found.group()])
    if run is not None:
        yield run


def _parts(word: str) -> list[str]:
    """Charset, encoding, and the encoded text."""
    return word[2:-2].split("?", 2)


def _content(kind: str, inner: str, charset: str) -> bytes:
    if kind in "qQ":
        return binascii.a2b_qp(_in_charset(inner, charset), header=True)
    return decode_base64(inner.encode("utf-8", "surrogatepass"))


def _in_charset(inner: str, charset: str) -> bytes:
    """The bytes of an encoded text. Some mailers leave letters in it as they are: those were decoded with the header,
    and become bytes of the word's own charset again."""
    if not inner.isascii() and (codec := codec_of(charset)) is not None:
        with contextlib.suppress(UnicodeError):
            return inner.encode(codec)
    return inner.encode("utf-8", "surrogatepass")


def decode_base64(encoded: bytes) -> bytes:
    """Decode as much as possible: invalid characters are skipped, and a truncated end is dropped."""
    for end, surplus in ((b"", 0), (b"==", 0), (b"A==", 1)):
        try:
            decoded = binascii.a2b_base64(encoded + end)
        except binascii.Error:
            continue
        return decoded[: len(decoded) - surplus]
    return b""
