"""Bytes to text, whatever charset the mail claims: the label is a hint, and a wrong one is repaired.

A label is never passed to Python's codec registry as it is: the registry imports modules by that name, remembers every
unknown one forever, and has codecs (punycode) that take quadratic time. Only labels of text codecs count.
"""

import re
from encodings.aliases import aliases
from typing import NamedTuple

_NOT_TEXT = frozenset(
    {"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec", "mbcs"}
)
_WITHOUT_ALIAS = ("koi8_t", "koi8_u", "cp720", "cp737", "cp856", "cp874", "cp875", "cp1006", "utf_8_sig")
# Mail that names a charset on the left in practice uses the larger one on the right.
_LARGER = {
    "ascii": "utf_8",
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
_PUNCTUATION = re.compile(r"[^a-z0-9]")
_HIGH = bytes(range(0x80, 0x100))
LONGEST_LABEL = 40


class Decoded(NamedTuple):
    """Decoded text, and whether the label turned out to be wrong."""

    text: str
    repaired: bool


def _labels() -> dict[str, str]:
    codecs = {name for name in aliases.values() if name not in _NOT_TEXT} | set(_WITHOUT_ALIAS)
    named = {name: name for name in codecs} | {label: name for label, name in aliases.items() if name in codecs}
    return {_PUNCTUATION.sub("", label): _LARGER.get(name, name) for label, name in named.items()} | {
        "xsjis": "cp932",
        "xgbk": "gb18030",
        "windows31j": "cp932",
        "ansi": "cp1252",
    }


_CODECS = _labels()


def codec_of(label: str) -> str | None:
    """The codec for a charset label; None for an unknown one."""
    return _CODECS.get(_PUNCTUATION.sub("", label[:LONGEST_LABEL].lower()))


def decode_text(content: bytes, label: str | None) -> Decoded:
    """Decode the content. Bytes that fit no charset become replacement characters, never an error."""
    codec = codec_of(label) if label else "utf_8"
    if codec is None:
        return Decoded(_guess(content), repaired=True)
    try:
        text = content.decode(codec)
        return Decoded(text if codec != "utf_7" else _without_surrogates(text), repaired=False)
    except UnicodeError:
        pass
    if codec in ("utf_8", "cp1252"):
        return Decoded(_guess(content), repaired=True)
    try:
        return Decoded(content.decode("utf_8"), repaired=True)
    except UnicodeError:
        return Decoded(_without_surrogates(content.decode(codec, "replace")), repaired=True)


def _without_surrogates(text: str) -> str:
    """The text without lone surrogates, which nothing can store; UTF-7 is the only codec that yields them."""
    return text.encode("utf-8", "replace").decode()


def _guess(content: bytes) -> str:
    """Decode without a usable label: as UTF-8 if only a few bytes are broken, otherwise as Windows-1252."""
    text = content.decode("utf_8", "replace")
    broken = text.count("\ufffd")
    if broken * 2 <= len(content) - len(content.translate(None, _HIGH)):
        return text
    try:
        return content.decode("cp1252")
    except UnicodeError:
        return content.decode("latin_1")
