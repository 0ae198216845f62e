"""Converts Gmail's filters, as Gmail exports them (`mailFilters.xml`), to rules that do the same.

All filters that match apply, so each becomes a rule that continues, with all of its actions. An earlier rule has
precedence over later ones, so filters that delete come first. A message is forwarded once: for mail that several
filters forward to different addresses, there is a rule before them that forwards to all of these.

A filter with a condition that has no counterpart is refused: without that condition it would match more mail than it
should. An action that only Gmail can do is noted beside the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from postroom.core.actions.steps import Step
from postroom.core.mail.addresses import canonical
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.exchange import Imported, one_line
from postroom.core.rules.gmail_file import read_entries
from postroom.core.rules.gmail_query import read_query, read_unwanted
from postroom.core.rules.implications import exclusive
from postroom.core.rules.logic import Logic, every, some

MOST_FORWARDS = 3
FIELDS = ("from", "to", "subject", "hasTheWord", "doesNotHaveTheWord", "hasAttachment", "size")
IGNORED = frozenset({"sizeOperator", "sizeUnit", "excludeChats"})
ACTIONS = frozenset({"label", "shouldArchive", "shouldTrash", "shouldMarkAsRead", "shouldStar", "forwardTo"})
ONLY_GMAIL = {
    "shouldNeverSpam": "never spam: Gmail decides about spam itself; keep a filter in Gmail for this",
    "shouldAlwaysMarkAsImportant": "important: Gmail marks mail itself; keep a filter in Gmail for this",
    "shouldNeverMarkAsImportant": "not important: Gmail marks mail itself; keep a filter in Gmail for this",
    "smartLabelToApply": "category: categories are Gmail's own; keep a filter in Gmail for this",
    "cannedResponse": "template: its text is not in the file; make a rule with auto_reply",
}
UNITS = {"s_sb": "", "s_skb": "K", "s_smb": "M"}
OPERATORS = {"s_sl": "larger", "s_ss": "smaller"}


@dataclass(slots=True)
class _Filter:
    """A filter whose conditions and actions have counterparts."""

    number: int
    name: str
    condition: Logic
    steps: list[Step]
    forward_to: str | None = None
    notes: list[str] = field(default_factory=list[str])

    @property
    def where(self) -> str:
        return f"filter {self.number}"


def read_gmail_filters(data: bytes) -> Imported:
    """The filters as rules. Raises BadInput when it is not a filter export."""
    imported = Imported()
    found: list[_Filter] = []
    for number, properties in enumerate(read_entries(data), 1):
        summary = _summary(properties)
        try:
            found.append(_read(number, summary, dict(properties)))
        except Inexpressible as error:
            imported.refuse(f"filter {number}", summary, str(error))
    found = list(_without_too_many_forwards(found, imported))
    for condition, filters in _forwarded_twice(found):
        addresses = list(dict.fromkeys(each.forward_to for each in filters))
        where = f"filters {', '.join(str(each.number) for each in filters)}"
        step = Step("forward", {"to": addresses})
        notes = ["mail that several filters forward is sent once, to all of their addresses"]
        imported.add(where, f"Gmail {where}: forward", condition, [step], continues=True, notes=notes)
    for each in sorted(found, key=lambda each: not any(step.action_type == "trash" for step in each.steps)):
        imported.add(each.where, each.name, each.condition, each.steps, continues=True, notes=each.notes)
    return imported


def _read(number: int, summary: str, properties: dict[str, str]) -> _Filter:
    given = {name: text.strip() for name, text in properties.items() if text.strip().lower() not in ("", "false")}
    for name in given:
        if name not in (*FIELDS, *ONLY_GMAIL) and name not in IGNORED | ACTIONS:
            raise Inexpressible(f"{one_line(name, 40)} is unknown, and may be a condition")
    condition = _condition(given)
    steps = _steps(given)
    notes = [note for name, note in ONLY_GMAIL.items() if name in given]
    if not steps:
        raise Inexpressible("; ".join(notes) or "it does nothing")
    forward_to = given.get("forwardTo")
    address = None if forward_to is None else canonical(forward_to) or forward_to
    return _Filter(number, f"Gmail filter {number}: {summary}", condition, steps, address, notes)


def _condition(given: dict[str, str]) -> Logic:
    parts: list[Logic] = []
    for name, operator in (("from", "from"), ("to", "to"), ("subject", "subject"), ("hasTheWord", "")):
        if name in given:
            parts.append(read_query(given[name], operator))
    if "doesNotHaveTheWord" in given:
        parts.append(read_unwanted(given["doesNotHaveTheWord"]))
    if "hasAttachment" in given:
        parts.append({"has_attachment": True})
    if given.get("size", "0") != "0":
        parts.append(_size(given))
    if not parts:
        raise Inexpressible("it has no condition")
    return every(parts)


def _size(given: dict[str, str]) -> Logic:
    size, operator, unit = given["size"], given.get("sizeOperator", "s_sl"), given.get("sizeUnit", "s_sb")
    if operator not in OPERATORS or unit not in UNITS or not (size.isascii() and size.isdigit()):
        raise Inexpressible("its size is not understood")
    return {OPERATORS[operator]: f"{int(size)}{UNITS[unit]}"}


def _steps(given: dict[str, str]) -> list[Step]:
    steps = [Step("apply_label", {"label": given["label"]})] if "label" in given else []
    if "shouldTrash" in given:
        steps.append(Step("trash"))
    elif "shouldArchive" in given:
        steps.append(Step("archive"))
    steps += [Step("mark_read")] if "shouldMarkAsRead" in given else []
    steps += [Step("star")] if "shouldStar" in given else []
    return steps + ([Step("forward", {"to": given["forwardTo"]})] if "forwardTo" in given else [])


def _without_too_many_forwards(filters: Iterable[_Filter], imported: Imported) -> Iterable[_Filter]:
    addresses: dict[str, None] = {}
    for each in filters:
        if each.forward_to is not None and each.forward_to not in addresses:
            if len(addresses) == MOST_FORWARDS:
                why = f"the file forwards to more than {MOST_FORWARDS} addresses, and a message is forwarded only once"
                imported.refuse(each.where, each.name, why)
                continue
            addresses[each.forward_to] = None
        yield each


def _forwarded_twice(filters: Sequence[_Filter]) -> Iterable[tuple[Logic, list[_Filter]]]:
    """The mail that is forwarded to several addresses, first that to the most."""
    by_address: dict[str, list[_Filter]] = {}
    for each in filters:
        if each.forward_to is not None:
            by_address.setdefault(each.forward_to, []).append(each)
    for count in range(len(by_address), 1, -1):
        for chosen in combinations(by_address, count):
            conditions = [some(each.condition for each in by_address[address]) for address in chosen]
            both = every(conditions)
            if not isinstance(both, bool) and not _exclude_each_other(conditions):
                yield both, [each for address in chosen for each in by_address[address]]


def _exclude_each_other(conditions: Sequence[Logic]) -> bool:
    known = [each for each in conditions if not isinstance(each, bool)]
    return any(exclusive(one, other) for one, other in combinations(known, 2))


def _summary(properties: Iterable[tuple[str, str]]) -> str:
    conditions = [f"{name} {text}" for name, text in properties if name in FIELDS and text.strip()]
    return one_line(", ".join(conditions) or "no condition", 120)
