"""Converts rules to Gmail's filters and searches, with the same meaning or not at all.

Of Gmail's filters all that match apply. So a filter for a rule excludes the mail that an earlier rule decides about,
unless that one continues.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import Step, steps_of
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.conditions import SPECS
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import Exported, LeftOut, conditions_with_scope, why_not_exportable
from postroom.core.rules.gmail_query import DEEPEST_QUERY, LONGEST_QUERY
from postroom.core.rules.gmail_terms import bare, word_search
from postroom.core.rules.implications import exclusive
from postroom.core.rules.logic import Condition, every, negated

ATOM, APPS = "http://www.w3.org/2005/Atom", "http://schemas.google.com/apps/2006"
ACTIONS = {
    "trash": "shouldTrash",
    "star": "shouldStar",
    "archive": "shouldArchive",
    "mark_read": "shouldMarkAsRead",
}


def write_gmail_filters(drafts: Sequence[RuleDraft]) -> Exported:
    """The rules as filters, as far as Gmail can express them."""
    left_out: list[LeftOut] = []
    entries: list[str] = []
    deciding: list[RuleDraft] = []
    sends = False
    for draft in drafts:
        try:
            entries.append(_entry(draft, deciding, sends))
            sends = sends or (draft.continues and bool(_forwards(draft)))
        except Inexpressible as error:
            left_out.append(LeftOut(draft.name, draft.action_type, str(error)))
        if draft.enabled and not draft.shadow and not draft.continues:
            deciding.append(draft)
    head = "<?xml version='1.0' encoding='UTF-8'?>\n"
    feed = f"<feed xmlns='{ATOM}' xmlns:apps='{APPS}'>\n<title>Mail Filters</title>\n"
    return Exported(f"{head}{feed}{''.join(entries)}</feed>\n", left_out)


def _entry(draft: RuleDraft, deciding: Sequence[RuleDraft], sends: bool) -> str:
    if reason := why_not_exportable(draft):
        raise Inexpressible(reason)
    if sends and _forwards(draft):
        raise Inexpressible("an earlier rule forwards and continues; of rules only one forwards, of filters both")
    steps = steps_of(draft.action_type, draft.parameters)
    if not steps:
        raise Inexpressible("a filter cannot do nothing")
    properties = [property for step in steps for property in [_property(step)]]
    query = write_query(_conditions(draft, deciding))
    if len(query) > LONGEST_QUERY:
        raise Inexpressible("it is too long for a search")
    properties.insert(0, ("hasTheWord", query))
    lines = [f"<apps:property name='{each}' value={quoteattr(text)}/>\n" for each, text in properties]
    return f"<entry>\n<category term='filter'/>\n<title>Mail Filter</title>\n<content/>\n{''.join(lines)}</entry>\n"


def _forwards(draft: RuleDraft) -> list[Step]:
    return [step for step in steps_of(draft.action_type, draft.parameters) if step.action_type == "forward"]


def _property(step: Step) -> tuple[str, str]:
    match step.action_type:
        case "apply_label":
            return "label", str(step.parameters["label"])
        case "forward":
            if len(recipients_of(step.parameters)) != 1 or set(step.parameters) != {"to"}:
                raise Inexpressible("a filter forwards to one address, without a note")
            return "forwardTo", recipients_of(step.parameters)[0]
        case action if action in ACTIONS:
            return ACTIONS[action], "true"
        case action:
            raise Inexpressible(f"a filter cannot {action}")


def _conditions(draft: RuleDraft, deciding: Sequence[RuleDraft]) -> Condition:
    own = conditions_with_scope(draft)
    excluded: list[Condition] = []
    for other in deciding:
        theirs = conditions_with_scope(other)
        if exclusive(own, theirs):
            continue
        if other.scope == "account":
            raise Inexpressible(f"the rule {other.name!r} decides first for one account")
        try:
            write_query(theirs)
        except Inexpressible as error:
            raise Inexpressible(f"the rule {other.name!r} decides first, and {error}") from None
        excluded.append(theirs)
    found = every([own, *(negated(each) for each in excluded)]) if excluded else own
    if isinstance(found, bool):
        raise Inexpressible("rules before it decide about all its mail")
    return found


def write_query(condition: Mapping[str, Any], depth: int = 0) -> str:
    """The search for these conditions. Raises Inexpressible, which names what Gmail cannot express."""
    if depth > DEEPEST_QUERY - 2:
        raise Inexpressible("it is nested too deep for a search")
    ((kind, argument),) = condition.items()
    match kind:
        case "and":
            return f"({' '.join(write_query(each, depth + 1) for each in argument)})"
        case "or":
            return _to_anyone(argument) or "{" + " ".join(write_query(each, depth + 1) for each in argument) + "}"
        case "not":
            inner = write_query(argument, depth + 1)
            return f"-({inner})" if inner.startswith("-") else f"-{inner}"
        case kind if kind in SPECS and (term := SPECS[kind].gmail) is not None and term.write is not None:
            return term.write(argument)
        case _:
            raise Inexpressible(f"a search cannot say {kind}")


def _to_anyone(argument: Any) -> str | None:
    """`to:` counts Cc and Bcc, as the importer reads it."""
    match argument:
        case [{"to": str(one)}, {"bcc": str(other)}] if one == other:
            return f"to:{bare(one)}"
        case [{"to_me": True}, {"bcc_me": True}]:
            return "to:me"
        case [{"to_words": str(one)}, {"bcc_words": str(other)}] if one == other:
            return word_search("to:", one)
        case _:
            return None
