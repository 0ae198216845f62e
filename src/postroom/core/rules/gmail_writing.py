"""Converts rules to Gmail's filters and searches, with the same meaning or not at all.

Of Gmail's filters all that match apply. So a filter for a rule excludes the mail that an earlier rule decides about,
unless that one continues.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import Step, steps_of
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import Exported, Inexpressible, LeftOut, conditions_with_scope, why_not_exportable
from postroom.core.rules.gmail_query import DEEPEST_QUERY, LONGEST_QUERY
from postroom.core.rules.logic import Condition, every, exclusive, negated
from postroom.core.rules.words import words_of

ATOM, APPS = "http://www.w3.org/2005/Atom", "http://schemas.google.com/apps/2006"
ACTIONS = {
    "trash": "shouldTrash",
    "star": "shouldStar",
    "archive": "shouldArchive",
    "mark_read": "shouldMarkAsRead",
}
_WORDS = {
    "words": "",
    "subject_words": "subject:",
    "from_words": "from:",
    "to_words": "to:",
    "cc_words": "cc:",
    "bcc_words": "bcc:",
    "reply_to_words": "replyto:",
    "list_words": "list:",
}
_ADDRESSES = {
    "from": "from",
    "to": "to",
    "cc": "cc",
    "bcc": "bcc",
    "reply_to": "replyto",
    "delivered_to": "deliveredto",
}
_PIECES = re.compile(r'"[^"]*"|[^\s"]+')


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
        case "sender_email" | "sender_domain":
            return f"from:{_bare(argument if kind == 'sender_email' else f'@{argument}')}"
        case kind if kind in _ADDRESSES:
            return f"{_ADDRESSES[kind]}:{_bare(argument)}"
        case kind if kind in _WORDS:
            return _words(_WORDS[kind], argument)
        case kind if kind in _LEAVES:
            return _LEAVES[kind](argument)
        case "subject_contains" | "body_contains":
            raise Inexpressible(f"a search finds whole words only, not {kind}; use {kind.split('_')[0]}_words")
        case _:
            raise Inexpressible(f"a search cannot say {kind}")


def _to_anyone(argument: Any) -> str | None:
    """`to:` counts Cc and Bcc, as the importer reads it."""
    match argument:
        case [{"to": str(one)}, {"bcc": str(other)}] if one == other:
            return f"to:{_bare(one)}"
        case [{"to_me": True}, {"bcc_me": True}]:
            return "to:me"
        case [{"to_words": str(one)}, {"bcc_words": str(other)}] if one == other:
            return _words("to:", one)
        case _:
            return None


def _words(operator: str, argument: str) -> str:
    """Words and phrases as `words` and its like write them: all must be found."""
    pieces = [each if each.startswith('"') else f'"{each}"' for each in _PIECES.findall(argument)]
    pieces = [f"{operator}{each}" for each in pieces if words_of(each)]
    if not pieces or "*" in argument:
        raise Inexpressible("a search has no stars, and at least one word")
    return pieces[0] if len(pieces) == 1 else f"({' '.join(pieces)})"


def _attachment_name(argument: str) -> str:
    if len(_PIECES.findall(argument)) != 1:
        raise Inexpressible("a search cannot ask for several words in one attachment's name")
    return _words("filename:", argument)


def _age(operator: str) -> Callable[[str], str]:
    def write(argument: str) -> str:
        if argument.endswith("h"):
            raise Inexpressible(f"a search cannot say {operator} in hours")
        days = int(argument[:-1]) * (7 if argument.endswith("w") else 1)
        if days > 9_999:
            raise Inexpressible(f"a search cannot say {operator} with so many days")
        return f"{operator}:{days}d"

    return write


def _yes_or_no(text: str) -> Callable[[bool], str]:
    return lambda wanted: text if wanted else f"-{text}"


def _label(argument: str) -> str:
    if "-" in argument:
        raise Inexpressible(
            "Gmail writes blanks and slashes in labels as hyphens, so this may be one of several labels"
        )
    return f"label:{_quoted(argument)}"


def _category(argument: str) -> str:
    names = {"personal": "primary", **{name: name for name in ("promotions", "social", "updates", "forums")}}
    if argument.strip().lower() not in names:
        raise Inexpressible(f"the category {argument!r} is not one of Gmail's")
    return f"category:{names[argument.strip().lower()]}"


def _size(operator: str) -> Callable[[object], str]:
    return lambda argument: f"{operator}:{_bare(str(argument).replace(' ', ''))}"


_LEAVES: dict[str, Callable[[Any], str]] = {
    "has_attachment": _yes_or_no("has:attachment"),
    "from_me": _yes_or_no("from:me"),
    "to_me": _yes_or_no("to:me"),
    "cc_me": _yes_or_no("cc:me"),
    "bcc_me": _yes_or_no("bcc:me"),
    "label_present": _label,
    "category": _category,
    "older_than": _age("older_than"),
    "newer_than": _age("newer_than"),
    "larger": _size("larger"),
    "smaller": _size("smaller"),
    "attachment_name": _attachment_name,
}


def _bare(text: str) -> str:
    if re.search(r'[\s(){}":|*,;]', text) or text.lower() == "me":
        raise Inexpressible(f"{text!r} cannot be used in a search")
    return text


def _quoted(text: str) -> str:
    if '"' in text or text != text.strip():
        raise Inexpressible("a search has no quotes, or blanks at its ends, inside quotes")
    return f'"{text}"'
