"""Gmail's filters and searches, to and from rules."""

from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.rules.conditions import MessageFacts, Seen, as_test, read_conditions
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import Inexpressible
from postroom.core.rules.gmail import read_gmail_filters, write_gmail_filters
from postroom.core.rules.gmail_query import read_query, write_query
from support.rule_strategies import drafts, several, trees


def anywhere(word: str) -> dict[str, Any]:
    return {"or": [{"subject_contains": word}, {"body_contains": word}]}


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ("from:ida@shop.example", {"sender_email": "ida@shop.example"}),
        ("from:@shop.example", {"sender_domain": "shop.example"}),
        ("from:(*@shop.example)", {"sender_domain": "shop.example"}),
        ("from:shop.example", {"header_match": {"name": "From", "pattern": r"\bshop\.example\b"}}),
        ("to:me@x.example", {"to": "me@x.example"}),
        ("list:news@shop.example", {"list_id": "news.shop.example"}),
        ("subject:(a b)", {"and": [{"subject_contains": "a"}, {"subject_contains": "b"}]}),
        ('subject:"a b"', {"subject_contains": "a b"}),
        ("-has:attachment", {"not": {"has_attachment": True}}),
        ("in:inbox", {"label_present": "INBOX"}),
        ("category:promotions", {"label_present": "CATEGORY_PROMOTIONS"}),
        ("newer_than:2m", {"not": {"older_than": "60d"}}),
        ("{invoice receipt}", {"or": [anywhere("invoice"), anywhere("receipt")]}),
        ("a b OR c d", {"and": [anywhere("a"), {"or": [anywhere("b"), anywhere("c")]}, anywhere("d")]}),
        ("subject:(x|y)", {"or": [{"subject_contains": "x"}, {"subject_contains": "y"}]}),
        ("http://shop.example", anywhere("http://shop.example")),
        ("-(from:a@b.example x)", {"not": {"and": [{"sender_email": "a@b.example"}, anywhere("x")]}}),
    ],
)
def test_a_search_stands_for_conditions(query: str, conditions: dict[str, Any]) -> None:
    assert read_query(query) == conditions


@pytest.mark.parametrize(
    "query",
    [
        *("", "larger:5M", "has:drive", "is:chat", "from:", "from:a*b@c", "x" * 20_000),
        *("(a", "a)", "a OR", "OR a", "()", "(" * 50, "from:to:x", "is:" * 3_000),
    ],
)
def test_a_search_without_counterpart_is_reported_and_never_half_translated(query: str) -> None:
    with pytest.raises(Inexpressible):
        read_query(query)


MAIL = [
    MessageFacts(
        "ida@shop.example", "a \"b\" 'c'", (("List-Id", "x"),), frozenset({"a"}), "b", True, ("mara@x.example",)
    ),
    MessageFacts("mara@x.example", "", (), frozenset()),
]


@given(trees())
def test_conditions_written_as_a_search_mean_the_same_when_read(conditions: dict[str, Any]) -> None:
    try:
        query = write_query(conditions)
    except Inexpressible:
        return
    ours, theirs = as_test(read_conditions(conditions)), as_test(read_conditions(read_query(query)))
    for message in MAIL:
        assert ours(Seen(message, None)) == theirs(Seen(message, None))


def feed(*filters: dict[str, str]) -> bytes:
    entries = [
        "<entry>" + "".join(f"<apps:property name='{k}' value={quoteattr(v)}/>" for k, v in each.items()) + "</entry>"
        for each in filters
    ]
    head = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:apps='http://schemas.google.com/apps/2006'>"
    return f"{head}<title>Mail Filters</title>{''.join(entries)}</feed>".encode()


@given(st.text(st.sampled_from('ab :()"{}-|*OR@.'), max_size=30))
def test_a_filter_with_any_search_comes_over_whole_or_is_reported(query: str) -> None:
    imported = read_gmail_filters(feed({"hasTheWord": query, "shouldStar": "true"}))
    assert len(imported.drafts) + len(imported.left_out) == 1


def test_every_field_of_a_filter_becomes_a_condition() -> None:
    imported = read_gmail_filters(
        feed(
            {
                "from": "ida@shop.example",
                "to": "me@x.example",
                "subject": "invoice",
                "hasTheWord": "list:news.example",
                "doesNotHaveTheWord": "urgent",
                "hasAttachment": "true",
                "shouldMarkAsRead": "true",
                "sizeOperator": "s_sl",
                "sizeUnit": "s_smb",
            }
        )
    )
    [draft] = imported.drafts
    assert imported.left_out == []
    assert draft.action_type == "mark_read"
    assert draft.conditions == {
        "and": [
            {"sender_email": "ida@shop.example"},
            {"to": "me@x.example"},
            {"subject_contains": "invoice"},
            {"list_id": "news.example"},
            {"not": anywhere("urgent")},
            {"has_attachment": True},
        ]
    }


def test_of_several_actions_the_one_that_hides_no_mail_comes_over_and_the_others_are_reported() -> None:
    imported = read_gmail_filters(
        feed({"from": "a@b.example", "shouldArchive": "true", "label": "Shop", "shouldNeverSpam": "true"})
    )
    [draft] = imported.drafts
    assert (draft.action_type, draft.parameters) == ("apply_label", {"label": "Shop"})
    assert {each.what for each in imported.left_out} == {"shouldArchive", "shouldNeverSpam"}


def test_what_is_not_known_here_and_what_makes_no_rule_is_reported() -> None:
    imported = read_gmail_filters(
        feed(
            {"from": "a@b.example", "shouldStar": "true", "shouldSing": "true"},
            {"from": "a@b.example", "forwardTo": "nobody"},
        )
    )
    assert [draft.action_type for draft in imported.drafts] == ["star"]
    unknown, refused = imported.left_out
    assert (unknown.where, unknown.what, refused.where) == ("filter 1", "shouldSing", "filter 2")
    assert "not a mail address" in refused.why


@pytest.mark.parametrize(("age", "query"), [("7d", "older_than:7d"), ("2w", "older_than:14d"), ("12h", None)])
def test_an_age_in_days_and_weeks_can_be_searched_for_and_one_in_hours_cannot(age: str, query: str | None) -> None:
    if query is not None:
        assert write_query({"older_than": age}) == query
        return
    with pytest.raises(Inexpressible, match="older_than"):
        write_query({"older_than": age})


@pytest.mark.parametrize(("depth", "may"), [(13, True), (14, False)])
def test_a_search_has_a_deepest_nesting(depth: int, may: bool) -> None:
    conditions: dict[str, Any] = {"sender_domain": "x.example"}
    for _ in range(depth):
        conditions = {"and": [conditions]}
    if may:
        assert read_query(write_query(conditions)) is not None
        return
    with pytest.raises(Inexpressible, match="nested too deep"):
        write_query(conditions)


def test_a_filter_with_a_condition_that_has_no_counterpart_does_not_come_over_at_all() -> None:
    imported = read_gmail_filters(
        feed(
            {"from": "a@b.example", "size": "5", "shouldTrash": "true"},
            {"from": "a@b.example", "hasTheWord": "filename:pdf", "shouldTrash": "true"},
            {"shouldTrash": "true"},
            {"from": "a@b.example", "shouldAlwaysMarkAsImportant": "true"},
        )
    )
    assert imported.drafts == []
    assert {each.where for each in imported.left_out} == {"filter 1", "filter 2", "filter 3", "filter 4"}


def test_a_filter_that_forwards_comes_in_disabled() -> None:
    [draft] = read_gmail_filters(feed({"from": "a@b.example", "forwardTo": "boss@work.example"})).drafts
    assert (draft.enabled, draft.disabled_reason) == (False, "review and enable")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<feed",
        b"<html/>",
        b"\xff\xfe<\x00f\x00",
        b"<!DOCTYPE feed [<!ENTITY a 'b'>]>" + feed({"from": "&a;"}),
        b"<!DOCTYPE feed SYSTEM 'file:///etc/passwd'>" + feed(),
        b"<feed xmlns='http://www.w3.org/2005/Atom'>" + b"<a>" * 50_000,
        b"x" * (4 * 1024 * 1024 + 1),
    ],
)
def test_a_file_that_is_not_list_of_filters_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        read_gmail_filters(data)


@given(several(drafts()))
def test_exported_filters_are_read_back_with_the_same_meaning(rules: list[RuleDraft]) -> None:
    exported = write_gmail_filters(rules)
    imported = read_gmail_filters(exported.text.encode())
    assert len(imported.drafts) + len(exported.left_out) == len(rules)
    assert imported.left_out == []
    said = [draft for draft in rules if draft.name not in {each.where for each in exported.left_out}]
    for before, after in zip(said, imported.drafts, strict=True):
        assert (before.action_type, before.parameters) == (after.action_type, after.parameters)
