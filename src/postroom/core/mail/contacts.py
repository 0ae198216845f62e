"""Contacts from an exported address book: vCard (2.1, 3.0, 4.0) or CSV (Google, Outlook and others).

Exports are often broken. Entries that can be parsed are taken; the others are reported with their line. An entry is
taken whole or not at all: part of a malformed address may be another person's address.
"""

import binascii
import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import unquote

from postroom.core.mail.addresses import listed_addresses
from postroom.core.mail.charsets import decode_text

ContactSource = Literal["vcard", "csv", "mcp", "sent"]
"""Where a contact is known from: a file, a program, or the mail that the user sent."""
LARGEST_FILE = 64 * 1024 * 1024
LONGEST_LINE = 65_536
LONGEST_NAME = 200
LONGEST_ENTRY = 10_000
MOST_PROBLEMS = 20

_UNESCAPED = {"\\n": " ", "\\N": " ", "\\,": ",", "\\;": ";", "\\\\": "\\", "\\:": ":"}
_ESCAPE = re.compile(r"\\[nN,;\\:]")
_NOT_ADDRESSES = ("type", "label", "display")


class Contact(NamedTuple):
    """A person's canonical address and name."""

    address: str
    name: str


@dataclass(frozen=True, slots=True)
class ReadContacts:
    """The contacts found, each address once; and the problems, in words."""

    contacts: tuple[Contact, ...]
    problems: tuple[str, ...]
    form: Literal["vcard", "csv"]

    @property
    def addresses(self) -> frozenset[str]:
        return frozenset(contact.address for contact in self.contacts)


def read_contacts(content: bytes) -> ReadContacts:
    """The contacts in a vCard or CSV file, whichever it is."""
    text = _text(content[:LARGEST_FILE])
    problems: list[str] = (
        ["the file is larger than 64 MiB; the rest was not read"] if len(content) > LARGEST_FILE else []
    )
    is_vcard = re.search(r"^\s*begin:\s*vcard", text[:100_000], re.IGNORECASE | re.MULTILINE) is not None
    found: dict[str, Contact] = {}
    for entry in _vcards(text) if is_vcard else _rows(text):
        given = _addresses(entry.text)
        if not given:
            problems.append(f"line {entry.line}: {entry.text[:60]!r} is not an address")
        for address in given:
            if address not in found or not found[address].name:
                found[address] = Contact(address, entry.name[:LONGEST_NAME])
    if not found and not problems:
        problems.append("it contains no address")
    if len(problems) > MOST_PROBLEMS:
        problems = [*problems[:MOST_PROBLEMS], f"and {len(problems) - MOST_PROBLEMS:,} more"]
    return ReadContacts(tuple(found.values()), tuple(problems), "vcard" if is_vcard else "csv")


def contact_address(text: str) -> str | None:
    """The canonical form of one address, with or without a name; None for no address, or for several."""
    found = _addresses(text)
    return found[0] if len(found) == 1 else None


def _addresses(text: str) -> list[str]:
    """The addresses in an entry of an address book; empty if any part of it is not an address, or if it is too long."""
    if len(text) > LONGEST_ENTRY:
        return []
    listed = listed_addresses(_without_scheme(text))
    return [] if any(each.address is None for each in listed) else [each.address for each in listed if each.address]


def _without_scheme(text: str) -> str:
    """The address in a link such as `mailto:ida%2Bshop@x.example?subject=hello` (RFC 6068)."""
    scheme, colon, rest = text.strip().partition(":")
    return unquote(rest.partition("?")[0]) if colon and scheme.lower() == "mailto" else text


class _Entry(NamedTuple):
    """A text where an address is expected, its line, and the name beside it."""

    line: int
    text: str
    name: str


def _text(content: bytes) -> str:
    """Decode the file: by its byte order mark, else as UTF-8 or Windows-1252."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return decode_text(content.removeprefix(b"\xef\xbb\xbf"), None).text.replace("\0", "")


def _vcards(text: str) -> Iterator[_Entry]:
    """The addresses of each card, with its name, which may come after them."""
    name, waiting = "", list[tuple[int, str]]()
    for number, line in _logical_lines(text):
        head, colon, value = _split(line)
        if not colon:
            continue
        key, *parameters = head.upper().split(";")
        key = key.rpartition(".")[2].strip()
        if key in ("BEGIN", "END"):
            yield from (_Entry(at, address, name) for at, address in waiting)
            name, waiting = "", []
        elif key in ("EMAIL", "FN"):
            plain = _value(value, parameters)
            if key == "FN":
                name = name or " ".join(plain.split())
            elif plain.strip():
                waiting.append((number, plain.strip()))
    yield from (_Entry(at, address, name) for at, address in waiting)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines: folded ones are joined, as are quoted-printable lines of vCard 2.1 that end with `=`."""
    held, at = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if held and line[:1] in (" ", "\t") and len(held) < LONGEST_LINE:
            held += line[1:]
        elif held.endswith("=") and "QUOTED-PRINTABLE" in held[:200].upper() and len(held) < LONGEST_LINE:
            held = held[:-1] + line
        else:
            if held:
                yield at, held
            held, at = line[:LONGEST_LINE], number
    if held:
        yield at, held


def _split(line: str) -> tuple[str, str, str]:
    """Split a line at its first colon outside quotes."""
    head, colon, value = line.partition(":")
    while colon and head.count('"') % 2:
        more, colon, value = value.partition(":")
        head = f"{head}:{more}"
    return head, colon, value


def _value(value: str, parameters: list[str]) -> str:
    encoded = {parameter.removeprefix("ENCODING=").strip() for parameter in parameters}
    charset = next((each.removeprefix("CHARSET=") for each in parameters if each.startswith("CHARSET=")), None)
    if "QUOTED-PRINTABLE" in encoded:
        return decode_text(binascii.a2b_qp(value.encode("utf-8", "surrogatepass")), charset).text
    if encoded & {"B", "BASE64"}:
        return decode_text(_base64(value), charset).text
    return _ESCAPE.sub(lambda found: _UNESCAPED[found.group()], value)


def _base64(value: str) -> bytes:
    try:
        return binascii.a2b_base64(value.encode("ascii", "replace"))
    except binascii.Error:
        return b""


def _rows(text: str) -> Iterator[_Entry]:
    """The cells of all columns whose title contains `mail`; without such a column, all cells."""
    lines = text.splitlines()
    rows = _cells(lines)
    try:
        first = next(rows)
    except StopIteration:
        return
    columns = [index for index, title in enumerate(first[1]) if _holds_addresses(title)]
    names = _name_columns(first[1])
    if not columns or any("@" in cell for cell in first[1]):
        columns.clear()
        names.clear()
        yield from _in_row(first, columns, names)
    for row in rows:
        yield from _in_row(row, columns, names)


def _in_row(row: tuple[int, list[str]], columns: list[int], names: list[int]) -> Iterator[_Entry]:
    number, cells = row
    name = " ".join(part for index in names if index < len(cells) and (part := cells[index].strip()))
    looked_at = [cells[index] for index in columns if index < len(cells)] if columns else cells
    for cell in looked_at:
        for below, line in enumerate(cell.splitlines()):
            if "@" in line or (columns and line.strip()):
                yield _Entry(number + below, line.strip(), name)


def _cells(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows of cells. Where a quote never ends, each line from there on is a row."""
    mark = max(",;\t", key=(lines[0] if lines else "").count)
    reader = csv.reader((f"{line[:LONGEST_LINE]}\n" for line in lines), delimiter=mark)
    done = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield from enumerate((line.split(mark) for line in lines[done:]), done + 1)
            return
        if cells:
            yield done + 1, cells
        done = reader.line_num


def _holds_addresses(title: str) -> bool:
    words = title.casefold()
    return "mail" in words and not any(other in words for other in _NOT_ADDRESSES)


def _name_columns(titles: Iterable[str]) -> list[int]:
    """The column with the whole name, or those of its parts."""
    lowered = [title.strip().casefold() for title in titles]
    for whole in ("name", "display name", "full name"):
        if whole in lowered:
            return [lowered.index(whole)]
    return [lowered.index(part) for part in ("first name", "given name", "last name", "family name") if part in lowered]
