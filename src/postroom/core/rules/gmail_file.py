"""Reads the file that Gmail's settings export (`mailFilters.xml`): the properties of each filter, in order.

Only elements and attributes are read, in any charset that the file declares. Document types, and with them entities,
are refused: no export has them.
"""

from typing import Any
from xml.parsers.expat import ErrorString, ExpatError, ParserCreate

from postroom.core.errors import BadInput

FILE = "mailFilters.xml"
LARGEST_FILE = 4 * 1024 * 1024
MOST_FILTERS = 5_000
MOST_PROPERTIES = 100
DEEPEST_XML = 8
ATOM, APPS = "http://www.w3.org/2005/Atom", "http://schemas.google.com/apps/2006"
REMEDY = "give the file that Gmail's settings export"


def read_entries(data: bytes) -> list[list[tuple[str, str]]]:
    """The properties of each filter. Raises BadInput, which names the line."""
    if len(data) > LARGEST_FILE:
        raise BadInput(FILE, "is larger than 4 MiB", REMEDY)
    return _Reading().read(data)


class _Reading:
    def __init__(self) -> None:
        self._entries: list[list[tuple[str, str]]] = []
        self._depth = 0
        parser: Any = ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._document_type
        self._parser = parser

    def read(self, data: bytes) -> list[list[tuple[str, str]]]:
        try:
            self._parser.Parse(data, True)
        except ExpatError as error:
            why = ErrorString(error.code) or "not well-formed"
            raise BadInput(
                FILE, f"is not XML (line {error.lineno}, column {error.offset + 1}: {why})", REMEDY
            ) from None
        except (LookupError, ValueError):
            raise BadInput(FILE, "is in a charset that is not known", "save it as UTF-8") from None
        return self._entries

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST_XML:
            raise self._wrong("is nested too deep")
        if self._depth == 1 and name != f"{ATOM} feed":
            raise self._wrong("is not a list of filters")
        if name == f"{ATOM} entry":
            if len(self._entries) == MOST_FILTERS:
                raise BadInput(FILE, f"{self._place} has more than {MOST_FILTERS:,} filters", "divide it")
            self._entries.append([])
        elif name == f"{APPS} property" and self._entries:
            self._property(attributes.get("name", ""), attributes.get("value", ""))

    def _end(self, _: str) -> None:
        self._depth -= 1

    def _property(self, name: str, value: str) -> None:
        entry = self._entries[-1]
        if any(name == known for known, _ in entry) or len(entry) == MOST_PROPERTIES:
            raise self._wrong(f"filter {len(self._entries)} gives a property twice, or too many")
        entry.append((name, value))

    def _document_type(self, *_: object) -> None:
        raise self._wrong("declares a document type or entities")

    @property
    def _place(self) -> str:
        return f"line {self._parser.CurrentLineNumber}:"

    def _wrong(self, problem: str) -> BadInput:
        return BadInput(FILE, f"{self._place} {problem}", REMEDY)
