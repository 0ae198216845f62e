"""The content headers of a part: type, charset, transfer encoding, name, disposition."""

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from postroom.core.mail.charsets import decode_text
from postroom.core.mail.words import decode_words

LONGEST_FIELD = 8192
LONGEST_NAME = 150
MOST_PARAMETERS = 200

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,120}")
_PARAMETER = re.compile(r';\s*+([^\s=;"]++)\s*+=\s*+("(?:[^"\\]|\\.)*+"?|[^;"]*+)', re.DOTALL)
# A type and its first parameter with only a blank between them.
_UNSEPARATED = re.compile(r"^(\s*+[^\s;/()]++/[^\s;()]++)(?=\s++[^\s=;\"()]++\s*+=)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SECTION = re.compile(r"([^*]+)\*([0-9]{1,3})?(\*)?")
# Control characters, and those that reverse the direction of writing, so that `gpj.exe` shows as `exe.jpg`.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_RESERVED = re.compile(r'[<>:"|?*]')
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fields:
    """The facts that decide how a part is read."""

    content_type: str
    charset: str | None = None
    boundary: str = ""
    encoding: str = ""
    filename: str = ""
    attached: bool = False
    content_id: str = ""
    """The id by which the HTML part refers to it, without the angle brackets."""


def read_fields(content_type: str, encoding: str, disposition: str, otherwise: str = "text/plain") -> Fields:
    """Parse the three headers, each empty where absent. An invalid content type counts as `otherwise`."""
    kind, of_type = _value_and_parameters(content_type)
    how, of_disposition = _value_and_parameters(disposition)
    charset = of_type.get("charset", "").partition("(")[0].split()
    return Fields(
        content_type=kind if _TYPE.fullmatch(kind) else otherwise,
        charset=charset[0] if charset else None,
        boundary=of_type.get("boundary", "").rstrip(),
        encoding=encoding.partition(";")[0].partition("(")[0].strip().lower(),
        filename=of_disposition.get("filename") or of_type.get("name", ""),
        attached=how == "attachment",
    )


def safe_filename(name: str) -> str:
    """A plain file name: no folders, no control characters, and nothing that is special to a file system."""
    base = _UNSEEN.sub("", decode_words(name)).replace("\\", "/").rstrip("/").rpartition("/")[2]
    base = " ".join(_RESERVED.sub("_", base).split()).strip(" .")
    if len(base) > LONGEST_NAME:
        stem, dot, ending = base.rpartition(".")
        kept = f"{dot}{ending}" if stem and len(ending) <= 10 else ""
        base = base[: LONGEST_NAME - len(kept)] + kept
    return f"_{base}" if _DEVICES.fullmatch(base) else base


def _value_and_parameters(field: str) -> tuple[str, dict[str, str]]:
    if not field:
        return "", {}
    field = _UNSEPARATED.sub(r"\1;", field[:LONGEST_FIELD], count=1)
    value = field.partition(";")[0].partition("(")[0].strip().lower()
    plain: dict[str, str] = {}
    sections: dict[str, dict[int, tuple[str, bool]]] = {}
    for number, found in enumerate(_PARAMETER.finditer(field)):
        if number == MOST_PARAMETERS:
            break
        name, content = found[1].lower(), _unquote(found[2].strip())
        if section := _SECTION.fullmatch(name):
            sections.setdefault(section[1], {})[int(section[2] or 0)] = (
                content,
                section[3] is not None or not section[2],
            )
        else:
            plain.setdefault(name, content)
    return value, plain | {name: _join_sections(pieces) for name, pieces in sections.items()}


def _join_sections(pieces: dict[int, tuple[str, bool]]) -> str:
    """Join the sections of a parameter, as in `name*0*=utf-8''caf%C3%A9; name*1=.txt` (RFC 2231)."""
    charset = ""
    content = b""
    for number in sorted(pieces):
        text, encoded = pieces[number]
        if encoded and not content and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
        content += unquote_to_bytes(text) if encoded else text.encode("utf-8", "surrogatepass")
    return decode_text(content, charset or None).text


def _unquote(content: str) -> str:
    if not content.startswith('"'):
        return content
    return _ESCAPED.sub(r"\1", content[1:].removesuffix('"'))
