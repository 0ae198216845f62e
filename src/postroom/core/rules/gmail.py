"""Converts Gmail filters, as Gmail exports and imports them (`mailFilters.xml`), to rules and back.

A rule does one thing, and the first that matches decides; a filter may do several, and all that match apply. So of a
filter with several actions, the first in ACTIONS is imported and the others are reported: as rules of their own they
would never be reached. A filter with a condition that has no counterpart is not imported at all: without that condition
it would match more mail than it should.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.sax.saxutils import quoteattr

from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import (
    Exported,
    Imported,
    Inexpressible,
    LeftOut,
    all_of,
    conditions_with_scope,
    one_line,
    why_not_exportable,
)
from postroom.core.rules.gmail_query import read_query, write_query

LARGEST_FILE = 4 * 1024 * 1024
MOST_FILTERS = 10_000
DEEPEST_XML = 8
ATOM = "{http://www.w3.org/2005/Atom}"
APPS = "{http://schemas.google.com/apps/2006}"
MORE_IS_LOST = "a rule does one thing, and another action of this filter is imported"
# In order of preference when a filter has several: after trash, what leaves mail in the inbox comes first.
ACTIONS = {
    "shouldTrash": "trash",
    "label": "apply_label",
    "shouldStar": "star",
    "shouldArchive": "archive",
    "shouldMarkAsRead": "mark_read",
    "forwardTo": "forward",
}
IGNORED = frozenset({"sizeOperator", "sizeUnit", "excludeChats"})
CONDITIONS = ("from", "to", "subject", "hasTheWord", "doesNotHaveTheWord", "hasAttachment")
WITHOUT_COUNTERPART = {
    "shouldNeverSpam": "Postroom does not look for spam",
    "shouldAlwaysMarkAsImportant": "there is no such action",
    "shouldNeverMarkAsImportant": "there is no such action",
    "smartLabelToApply": "categories are Gmail's own",
    "cannedResponse": "the text of the answer is not in the file; make an auto_reply rule",
}


def read_gmail_filters(data: bytes) -> Imported:
    """The filters as rules. Raises BadInput when it is not a filter export."""
    imported = Imported()
    for number, properties in enumerate(_filters(data), 1):
        where = f"filter {number}"
        try:
            conditions = _conditions(properties)
        except Inexpressible as error:
            imported.left_out.append(LeftOut(where, _summary(properties), str(error)))
            continue
        _add_action(imported, where, properties, conditions)
    return imported


def _add_action(imported: Imported, where: str, properties: dict[str, str], conditions: dict[str, Any]) -> None:
    wanted = [name for name in ACTIONS if _is_set(properties, name)]
    for name in properties:
        if name in WITHOUT_COUNTERPART and _is_set(properties, name):
            imported.left_out.append(LeftOut(where, name, WITHOUT_COUNTERPART[name]))
        elif name not in (*ACTIONS, *CONDITIONS, *WITHOUT_COUNTERPART, *IGNORED, "size"):
            imported.left_out.append(LeftOut(where, one_line(name), "it is unknown"))
    if not wanted:
        imported.left_out.append(LeftOut(where, _summary(properties), "none of its actions has a counterpart"))
        return
    chosen, *others = wanted
    imported.left_out += [LeftOut(where, name, MORE_IS_LOST) for name in others]
    parameters = {"label": {"label": properties.get("label")}, "forwardTo": {"to": properties.get("forwardTo")}}
    name = f"Gmail {where}: {_summary(properties)}"
    imported.add(where, name, conditions, ACTIONS[chosen], parameters.get(chosen, {}))


def _conditions(properties: dict[str, str]) -> dict[str, Any]:
    if properties.get("size"):
        raise Inexpressible("it looks at the size of messages, which no condition does")
    parts: list[dict[str, Any]] = []
    for name, operator in (("from", "from"), ("to", "to"), ("subject", "subject"), ("hasTheWord", "")):
        if text := properties.get(name, "").strip():
            parts.append(read_query(text, operator))
    if text := properties.get("doesNotHaveTheWord", "").strip():
        parts.append({"not": read_query(text)})
    if _is_set(properties, "hasAttachment"):
        parts.append({"has_attachment": True})
    if not parts:
        raise Inexpressible("it has no known condition")
    return all_of(parts)


def _is_set(properties: dict[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() not in ("", "false")


def _summary(properties: dict[str, str]) -> str:
    conditions = [f"{name} {properties[name]}" for name in CONDITIONS if properties.get(name)]
    return one_line(", ".join(conditions) or "no condition", 120)


def _filters(data: bytes) -> list[dict[str, str]]:
    """The properties of each filter. Only elements and text are allowed: no document types, no entities."""
    remedy = "give the file that Gmail's settings export"
    if len(data) > LARGEST_FILE:
        raise BadInput("mailFilters.xml", "is larger than 4 MiB", remedy)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput("mailFilters.xml", "is not UTF-8", remedy) from None
    if "<!" in text.replace("<!--", "").replace("<![CDATA[", ""):
        raise BadInput("mailFilters.xml", "declares a document type or entities", remedy)
    try:
        entries = list(_entries(text))
    except ParseError as error:
        line, column = error.position
        raise BadInput("mailFilters.xml", f"is not XML (line {line}, column {column})", remedy) from None
    if len(entries) > MOST_FILTERS:
        raise BadInput("mailFilters.xml", f"has more than {MOST_FILTERS:,} filters", "divide it")
    return entries


def _entries(text: str) -> Iterable[dict[str, str]]:
    parser: XMLPullParser[Any] = XMLPullParser(["start", "end"])
    depth = 0
    for start in range(0, len(text), 65_536):
        parser.feed(text[start : start + 65_536])
        for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
            depth += 1 if event == "start" else -1
            if depth > DEEPEST_XML:
                raise BadInput("mailFilters.xml", "is nested too deep", "give the file that Gmail's settings export")
            if depth == 1 and event == "start" and element.tag != f"{ATOM}feed":
                raise BadInput(
                    "mailFilters.xml", "is not a list of filters", "give the file that Gmail's settings export"
                )
            if event == "end" and element.tag == f"{ATOM}entry":
                yield _properties(element)
                element.clear()
    parser.close()


def _properties(entry: Element) -> dict[str, str]:
    found = entry.findall(f"{APPS}property")
    return {each.get("name", ""): each.get("value", "") for each in found}


def write_gmail_filters(drafts: Sequence[RuleDraft]) -> Exported:
    """The rules as filters, as far as Gmail can express them. Filters have no order: all that match apply."""
    left_out: list[LeftOut] = []
    entries: list[str] = []
    for draft in drafts:
        try:
            entries.append(_entry(draft))
        except Inexpressible as error:
            left_out.append(LeftOut(draft.name, draft.action_type, str(error)))
    head = "<?xml version='1.0' encoding='UTF-8'?>\n"
    feed = f"<feed xmlns='{ATOM[1:-1]}' xmlns:apps='{APPS[1:-1]}'>\n<title>Mail Filters</title>\n"
    return Exported(f"{head}{feed}{''.join(entries)}</feed>\n", left_out)


def _entry(draft: RuleDraft) -> str:
    if reason := why_not_exportable(draft):
        raise Inexpressible(reason)
    name = next((each for each, action in ACTIONS.items() if action == draft.action_type), None)
    if name is None:
        raise Inexpressible(f"a filter cannot {draft.action_type}")
    value = {"label": draft.parameters.get("label"), "forwardTo": draft.parameters.get("to")}.get(name, "true")
    if not isinstance(value, str):
        raise Inexpressible("a filter forwards to one address")
    properties = {"hasTheWord": write_query(conditions_with_scope(draft)), name: value}
    lines = [f"<apps:property name='{each}' value={quoteattr(text)}/>\n" for each, text in properties.items()]
    return f"<entry>\n<category term='filter'/>\n<title>Mail Filter</title>\n<content/>\n{''.join(lines)}</entry>\n"
