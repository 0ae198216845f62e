"""Conditions on properties of a message: its headers, list, labels, category and attachments."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from postroom.core.mail.addresses import addresses
from postroom.core.mail.categories import CATEGORIES
from postroom.core.rules import gmail_terms, sieve_terms
from postroom.core.rules.condition_spec import MOST_SHOWN, ConditionSpec, FormField, needing, says, whether
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Check, one_of, pattern_in, suggestion, text_of
from postroom.core.rules.texts import contains_more, words_condition
from postroom.core.strict import shown_name

GMAIL_CATEGORIES = ("personal", "social", "promotions", "updates", "forums")
_HEADER_NAME = re.compile(r"[!-9;-~]+")
_MIME_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")
_LIST_ID = re.compile(r"<([^<>]*)>")


def _header_match(field: str, argument: object) -> Check:
    """`{"name": "Precedence"}` tests that the header exists; with `"pattern"`, that one of its values matches."""
    wanted = _object("header_match", field, argument, '{"name": "Precedence", "pattern": "bulk|list"}')
    name = _header_name(field, wanted)
    if "pattern" not in wanted:
        return Check(lambda seen: name in seen.headers, (("header", name),))
    pattern = pattern_in(f"{field}.pattern", wanted["pattern"])
    keys = (("header_pattern", f"{name}\n{pattern.text}"),)
    return Check(lambda seen: pattern.finds(*seen.headers.get(name, ())), keys, pattern)


def _address_match(field: str, argument: object) -> Check:
    """`{"name": "Sender", "pattern": "@lists\\."}`: one of the addresses in this header matches; names do not count."""
    wanted = _object("address_match", field, argument, '{"name": "Sender", "pattern": "@lists[.]"}')
    name = _header_name(field, wanted)
    pattern = pattern_in(f"{field}.pattern", wanted.get("pattern"))

    def test(seen: Seen) -> bool:
        return pattern.finds(*(each for value in seen.headers.get(name, ()) for each in addresses(value)))

    return Check(test, (("header", name),), pattern)


def _object(kind: str, field: str, argument: object, example: str) -> Mapping[object, object]:
    if not isinstance(argument, Mapping):
        raise BrokenRule(field, "is not an object", f"write {example}")
    wanted = cast("Mapping[object, object]", argument)
    for name in wanted:
        if name not in ("name", "pattern"):
            problem, remedy = f"is not a field of {kind}", suggestion(str(name), ("name", "pattern"))
            raise BrokenRule(f"{field}.{shown_name(str(name))}", problem, remedy)
    return wanted


def _header_name(field: str, wanted: Mapping[object, object]) -> str:
    name = text_of(f"{field}.name", wanted.get("name")).rstrip(":").lower()
    if not _HEADER_NAME.fullmatch(name):
        raise BrokenRule(f"{field}.name", "is not a header name", "write it as List-Id")
    return name


def _label_present(field: str, argument: object) -> Check:
    """A label, by its exact id or by its name in any case."""
    wanted = text_of(field, argument)
    folded = wanted.casefold()
    keys = tuple({("label", wanted): None, ("label", folded): None})
    return Check(
        lambda seen: wanted in seen.message.labels or folded in seen.message.labels,
        keys,
    )


def _category(field: str, argument: object) -> Check:
    """One of Postroom's categories, or of Gmail's, which are labels there."""
    wanted = one_of(field, argument, (*CATEGORIES, *GMAIL_CATEGORIES))
    if wanted in GMAIL_CATEGORIES:
        label = f"CATEGORY_{wanted.upper()}"
        return Check(lambda seen: label in seen.message.labels, (("label", label),))
    return Check(lambda seen: wanted in (seen.message.categories or ()), (("category", wanted),))


def _list_id(field: str, argument: object) -> Check:
    wanted = text_of(field, argument).casefold()
    return Check(lambda seen: any(wanted in value for value in seen.list_ids), (("list_id", wanted),))


def _list(field: str, argument: object) -> Check:
    """The whole id of a list; an @ in it, as in the address of the list, counts as the dot that ids have there."""
    text = text_of(field, argument).strip()
    wanted = list_name(text)
    if not wanted or re.search(r"\s", wanted):
        raise BrokenRule(
            field, "is not the id of a list", "write it as news.shop.example; for a part of it use list_id"
        )
    return Check(lambda seen: any(list_name(each) == wanted for each in seen.list_ids), (("list", wanted),))


def list_name(value: str) -> str:
    """The id in a value of List-Id: the part in brackets, or all of it."""
    found = _LIST_ID.search(value)
    return (found[1] if found else value).strip().casefold().replace("@", ".")


def _attachment_type(field: str, argument: object) -> Check:
    """A MIME type, or all of its kind: `image/*`."""
    wanted = text_of(field, argument).strip().lower()
    if not _MIME_TYPE.fullmatch(wanted):
        remedy = "write it as application/pdf or image/*; for the ending of a name use attachment_name"
        raise BrokenRule(field, "is not a MIME type", remedy)
    start = wanted.removesuffix("*")

    def test(seen: Seen) -> bool:
        types = (kind.lower() for _, kind in seen.message.attachments or ())
        return any(kind == wanted if start == wanted else kind.startswith(start) for kind in types)

    return Check(test, (("attachment_type", wanted),))


def _says_header(argument: object) -> str | None:
    if not isinstance(argument, Mapping):
        return None
    given = cast("Mapping[object, object]", argument)
    name, pattern = given.get("name"), given.get("pattern")
    return f"the header {name} is present" if pattern is None else f"the header {name} matches {pattern}"


def _header_from_text(text: str) -> object:
    """The argument for `Precedence`, or for `Precedence: bulk|list`."""
    name, _, pattern = text.partition(":")
    return {"name": name.strip(), **({"pattern": pattern.strip()} if pattern.strip() else {})}


def _header_as_text(argument: object) -> str | None:
    given = cast("Mapping[str, object]", argument)
    name, pattern = str(given.get("name")), given.get("pattern")
    if ":" in name:
        return None
    return name if pattern is None else f"{name}: {pattern}"


def _observed_header(argument: Mapping[str, Any], seen: Seen) -> str:
    return "no value of it matches" if str(argument["name"]).lower() in seen.headers else "it is missing"


def _observed_list(_: object, seen: Seen) -> str:
    return _observed_header({"name": "list-id"}, seen)


def _observed_files(_: object, seen: Seen) -> str:
    names = [f"{name} ({kind})" for name, kind in seen.message.attachments or ()]
    return f"it has {', '.join(names[:MOST_SHOWN]) or 'no attachment'}"


def _names(categories: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in categories)


SPECS = (
    ConditionSpec(
        "header_match",
        _header_match,
        meaning="the pattern matches somewhere in one of the values of this header; without a pattern: it is present",
        example={"name": "Precedence", "pattern": "bulk|list"},
        says=_says_header,
        observed=_observed_header,
        needs=needing("headers"),
        gmail=gmail_terms.message_id(),
        sieve=sieve_terms.header_match,
        form=FormField(
            "Has the header", "List-Unsubscribe, or Precedence: bulk|list", 210, _header_from_text, _header_as_text
        ),
    ),
    ConditionSpec(
        "address_match",
        _address_match,
        meaning="the pattern matches one of the addresses in this header; names do not count",
        example={"name": "Sender", "pattern": r"@lists\."},
        says=_says_header,
        observed=_observed_header,
        needs=needing("headers"),
    ),
    ConditionSpec(
        "label_present",
        _label_present,
        meaning="the message has this label, by its name or its id",
        example="Receipts",
        says=says("it has the label “{}”"),
        observed=lambda _, seen: f"it has {', '.join(sorted(seen.message.labels)) or 'no label'}",
        needs=needing("headers"),
        gmail=gmail_terms.label(),
        form=FormField("Has the label", "Receipts", 110),
    ),
    ConditionSpec(
        "category",
        _category,
        meaning=f"it is in this [category](categories.md) of Postroom ({_names(CATEGORIES)}) "
        f"or of Gmail ({_names(GMAIL_CATEGORIES)})",
        example="promotions",
        says=says("its category is {}"),
        observed=lambda _, seen: f"its categories are {', '.join(sorted(seen.message.categories or ())) or 'none'}",
        needs=needing("headers", "categories"),
        gmail=gmail_terms.category(),
        form=FormField("Category", "newsletters", 120),
    ),
    ConditionSpec(
        "list_id",
        _list_id,
        meaning="`List-Id` contains this",
        example="news.shop.example",
        says=says("List-Id contains {}"),
        observed=_observed_list,
        needs=needing("headers"),
        implies={"list_id": contains_more},
        sieve=sieve_terms.header_contains("list-id"),
    ),
    ConditionSpec(
        "list",
        _list,
        meaning="this is the id in `List-Id`, the part in angle brackets; `news@shop.example` means the same",
        example="news.shop.example",
        says=says("it is from the list {}"),
        observed=_observed_list,
        needs=needing("headers"),
        form=FormField("Mailing list", "news.shop.example", 100),
    ),
    words_condition(
        "list_words",
        ("list",),
        "`List-Id`, its description included, has all these words",
        "List-Id has the words “{}”",
        _observed_list,
        needing("headers"),
        gmail_terms.words("list_words", "list"),
        example="weekly news",
    ),
    whether(
        "has_attachment",
        lambda seen: seen.message.has_attachment,
        "there is an attachment; `false`: there is none",
        "it has an attachment",
        "it has no attachment",
        lambda _, seen: "it has one" if seen.message.has_attachment else "it has none",
        needing("files"),
        gmail_terms.has_attachment(),
        FormField("Has an attachment", place=130),
    ),
    words_condition(
        "attachment_name",
        ("attachments",),
        "the name of an attachment has all these words; `pdf` finds the ending",
        "an attachment's name has “{}”",
        _observed_files,
        needing("files", "attachments"),
        gmail_terms.words_in_one_name("attachment_name", "filename"),
        FormField("Attachment's name has", "pdf", 140),
        example="invoice.pdf",
        in_one=True,
    ),
    ConditionSpec(
        "attachment_type",
        _attachment_type,
        meaning="an attachment has this MIME type; `image/*` means any image",
        example="application/pdf",
        says=says("an attachment is of type {}"),
        observed=_observed_files,
        needs=needing("files", "attachments"),
    ),
)
