"""Gmail's filters and searches, to and from rules. tests/unit/test_gmail_equivalence.py runs them on mail."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.steps import Step, shown
from postroom.core.errors import BadInput
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.conditions import as_test, read_conditions
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import IMPORTED, Imported
from postroom.core.rules.facts import MessageFacts, Seen
from postroom.core.rules.gmail import read_gmail_filters
from postroom.core.rules.gmail_query import read_query, read_unwanted
from postroom.core.rules.gmail_writing import write_gmail_filters, write_query
from support.foreign_rules.gmail_filters import as_file, random_filters
from support.rule_strategies import drafts, several, trees


def both(condition: dict[str, Any]) -> dict[str, Any]:
    """Gmail's `to:` counts Bcc."""
    ((kind, argument),) = condition.items()
    return {"or": [condition, {kind.replace("to", "bcc", 1): argument}]}


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ("from:ida@shop.example", {"from": "ida@shop.example"}),
        ("from:@shop.example", {"from_words": '"shop.example"'}),
        ("from:(*@shop.example)", {"from_words": '"shop.example"'}),
        ("from:shop.example", {"from_words": '"shop.example"'}),
        ('from:"Ida Holm"', {"from_words": '"Ida Holm"'}),
        ("from:me", {"from_me": True}),
        ('from:"me"', {"from_words": "me"}),
        ("-to:me", {"not": both({"to_me": True})}),
        ("to:me@x.example", both({"to": "me@x.example"})),
        ("to:ida", both({"to_words": "ida"})),
        ("cc:ida", {"cc_words": "ida"}),
        ("bcc:ida@x.example", {"bcc": "ida@x.example"}),
        ("replyto:ida@x.example", {"reply_to": "ida@x.example"}),
        ("deliveredto:ida@x.example", {"delivered_to": "ida@x.example"}),
        ("list:news@shop.example", {"list_words": '"news@shop.example"'}),
        ("list:<news.shop.example>", {"list_words": '"news.shop.example"'}),
        ("list:news", {"list_words": "news"}),
        ("subject:(a b)", {"and": [{"subject_words": "a"}, {"subject_words": "b"}]}),
        ('subject:"a b"', {"subject_words": '"a b"'}),
        ("-has:attachment", {"not": {"has_attachment": True}}),
        ("filename:pdf", {"attachment_name": "pdf"}),
        ("larger:5M", {"larger": "5M"}),
        ("smaller:200kb", {"smaller": "200K"}),
        ("size:1000", {"larger": "1000"}),
        ("in:inbox", {"label_present": "INBOX"}),
        ("is:read", {"not": {"label_present": "UNREAD"}}),
        ("in:anywhere x", {"words": "x"}),
        ("category:primary", {"category": "personal"}),
        ("newer_than:2d", {"newer_than": "2d"}),
        ("after:1767225600", {"sent_after": "2026-01-01T00:00:00+00:00"}),
        ("rfc822msgid:<a+b@x>", {"header_match": {"name": "message-id", "pattern": r"^<?a\+b@x>?$"}}),
        ("{invoice receipt}", {"or": [{"words": "invoice"}, {"words": "receipt"}]}),
        (
            "a b OR c d",
            {"and": [{"words": "a"}, {"or": [{"words": "b"}, {"words": "c"}]}, {"words": "d"}]},
        ),
        ("subject:(x|y)", {"or": [{"subject_words": "x"}, {"subject_words": "y"}]}),
        ("http://shop.example", {"words": '"http://shop.example"'}),
        ("-(from:a@b.example x)", {"not": {"and": [{"from": "a@b.example"}, {"words": "x"}]}}),
        ("a AND a", {"words": "a"}),
        ("a+b?", {"and": [{"words": "a"}, {"words": "b"}]}),
        ("a-b", {"words": '"a-b"'}),
        ("from:ida+shop@x.example", {"from": "ida+shop@x.example"}),
    ],
)
def test_a_search_stands_for_conditions(query: str, conditions: dict[str, Any]) -> None:
    assert read_query(query) == conditions
    read_conditions(conditions)


@pytest.mark.parametrize(
    "query",
    [
        *("", "has:drive", "is:chat", "from:", "from:a*b@c", "x" * 60_000, "x" * 950, "a AROUND 5 b", 'a "b'),
        *("(a", "a)", "a OR", "OR a", "a OR OR b", "()", "(" * 50, "from:to:x", "is:" * 3_000, "&", "label:a-b"),
        *("older_than:2m", "after:2026/01/01", "replyto:me", "from:a@b.example,c@d.example", "deliveredto:ida", "-"),
        *("category:purchases", "smaller:x", "from:-ida"),
    ],
)
def test_a_search_without_counterpart_is_reported_and_never_half_translated(query: str) -> None:
    with pytest.raises(Inexpressible):
        read_query(query)


def test_each_word_that_mail_should_not_have_is_negated() -> None:
    assert read_unwanted("urgent sale") == {"not": {"or": [{"words": "urgent"}, {"words": "sale"}]}}
    assert read_unwanted("(a b) c") == {"not": {"or": [{"and": [{"words": "a"}, {"words": "b"}]}, {"words": "c"}]}}
    with pytest.raises(Inexpressible, match="minus"):
        read_unwanted("a -b")


MAIL = [
    MessageFacts(
        "ida@shop.example",
        "a \"b\" 'c'",
        (("List-Id", "x"), ("From", "ida@shop.example")),
        frozenset({"a"}),
        "b",
        True,
        ("mara@x.example",),
    ),
    MessageFacts("mara@x.example", "", (("From", "mara@x.example"),), frozenset()),
]


@given(trees())
def test_conditions_written_as_a_search_mean_the_same_when_read(conditions: dict[str, Any]) -> None:
    try:
        query = write_query(conditions)
    except Inexpressible:
        return
    read = read_query(query)
    ours = as_test(read_conditions(conditions))
    for message in MAIL:
        theirs = read if isinstance(read, bool) else as_test(read_conditions(read))(Seen(message, None))
        assert ours(Seen(message, None)) == theirs


@given(st.text(st.sampled_from('ab :()"{}-|*OR@.'), max_size=30))
def test_a_filter_with_any_search_comes_over_whole_or_is_reported(query: str) -> None:
    imported = read_gmail_filters(as_file([{"hasTheWord": query, "shouldStar": "true"}]))
    assert len(imported.drafts) + len(imported.left_out) + len(imported.unreachable) == 1


def test_every_field_of_a_filter_becomes_a_condition() -> None:
    fields = {
        "from": "ida@shop.example",
        "to": "me@x.example",
        "subject": "invoice",
        "hasTheWord": "list:news.example",
        "doesNotHaveTheWord": "urgent",
        "hasAttachment": "true",
        "excludeChats": "true",
        "size": "10",
        "sizeOperator": "s_ss",
        "sizeUnit": "s_smb",
    }
    imported = read_gmail_filters(as_file([fields | {"shouldMarkAsRead": "true"}]))
    [draft] = imported.drafts
    assert imported.left_out == []
    assert (draft.action_type, draft.continues, draft.enabled) == ("mark_read", True, False)
    assert draft.disabled_reason == IMPORTED
    assert draft.conditions == {
        "and": [
            {"from": "ida@shop.example"},
            both({"to": "me@x.example"}),
            {"subject_words": "invoice"},
            {"list_words": '"news.example"'},
            {"not": {"words": "urgent"}},
            {"has_attachment": True},
            {"smaller": "10M"},
        ]
    }


def actions_of(imported: Imported) -> list[str]:
    return [shown(draft.action_type, draft.parameters) for draft in imported.drafts]


def test_all_actions_of_a_filter_stay_together_and_what_only_gmail_can_do_is_noted() -> None:
    actions = dict.fromkeys(("shouldArchive", "shouldMarkAsRead", "shouldStar", "shouldNeverSpam"), "true")
    given = {"from": "a@b.example", "label": "Shop", "forwardTo": "me@x.example", **actions}
    imported = read_gmail_filters(as_file([given]))
    assert actions_of(imported) == ["apply_label Shop, archive, mark_read, star, forward to me@x.example"]
    [came] = imported.report()
    assert (came.where, came.verdict) == ("filter 1", "came over with a note")
    assert came.why.startswith("never spam: ")


def test_it_is_noted_where_more_actions_may_come_together_than_one_message_gets() -> None:
    labels = [{"subject": f"word{n}", "label": f"Label {n}"} for n in range(12)]
    report = read_gmail_filters(as_file(labels)).report()
    assert [each.where for each in report if each.why] == ["filter 11"]
    assert "at most 10 actions" in report[10].why
    same = [{"subject": f"word{n}", "label": "One", "shouldArchive": "true"} for n in range(12)]
    assert not any(each.why for each in read_gmail_filters(as_file(same)).report())


def test_rules_for_different_senders_never_come_together() -> None:
    imported = Imported()
    for number in range(12):
        condition = {"sender_email": f"ada{number}@shop.example"}
        imported.add(f"filter {number}", f"rule {number}", condition, [label(number)], continues=True)
    assert not any(each.why for each in imported.report())
    imported.add("filter 13", "rule 13", {"sender_domain": "shop.example"}, [label(13)])
    assert "at most 10 actions" in imported.report()[-1].why


def label(number: int) -> Step:
    return Step("apply_label", {"label": f"Label {number}"})


def test_filters_that_delete_come_first_since_the_first_to_say_where_mail_goes_is_right() -> None:
    imported = read_gmail_filters(
        as_file([{"subject": "a", "shouldArchive": "true"}, {"subject": "b", "shouldTrash": "true"}])
    )
    assert actions_of(imported) == ["trash", "archive"]


def test_mail_that_two_filters_forward_goes_to_both_addresses() -> None:
    forwards = [{"subject": word, "forwardTo": f"{word}@x.example"} for word in ("ada", "bob", "cyd", "dan")]
    imported = read_gmail_filters(as_file(forwards[:2]))
    assert actions_of(imported)[0] == "forward to ada@x.example, bob@x.example"
    assert imported.drafts[0].conditions == {"and": [{"subject_words": "ada"}, {"subject_words": "bob"}]}
    assert len(read_gmail_filters(as_file(forwards[:3])).drafts) == 4 + 3
    [refused] = read_gmail_filters(as_file(forwards)).left_out
    assert (refused.where, "more than 3 addresses" in refused.why) == ("filter 4", True)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"from": "a@b.example", "shouldStar": "true", "shouldSing": "true"}, "shouldSing is unknown"),
        ({"from": "a@b.example", "forwardTo": "nobody"}, "not a mail address"),
        ({"from": "a@b.example", "hasTheWord": "has:drive", "shouldTrash": "true"}, "has:drive has no counterpart"),
        ({"shouldTrash": "true"}, "no condition"),
        ({"from": "a@b.example", "shouldAlwaysMarkAsImportant": "true"}, "keep a filter in Gmail"),
        ({"from": "a@b.example"}, "does nothing"),
        ({"from": "a@b.example", "size": "x", "shouldStar": "true"}, "size is not understood"),
        ({"hasTheWord": "in:anywhere", "shouldStar": "true"}, "applies to all mail"),
        ({"from": " OR ".join(f"a{n}@b.example" for n in range(1_200)), "shouldStar": "true"}, "1,000 conditions"),
        ({"from": "a@b.example", "label": "x" * 300}, "label"),
    ],
)
def test_a_filter_with_anything_unknown_does_not_come_over_at_all(given: dict[str, str], why: str) -> None:
    imported = read_gmail_filters(as_file([given]))
    [refused] = imported.left_out
    assert imported.drafts == []
    assert refused.where == "filter 1"
    assert why in refused.why


def test_500_addresses_in_a_filter_and_1000_filters_in_a_file_come_over() -> None:
    long = {"from": " OR ".join(f"a{n}@b.example" for n in range(500)), "label": "x"}
    imported = read_gmail_filters(as_file([long, *({"subject": f"w{n}", "label": "y"} for n in range(1_000))]))
    assert (len(imported.drafts), imported.left_out) == (1_001, [])


def test_other_charsets_are_read_as_the_file_declares_them() -> None:
    text = as_file([{"subject": "Grüße", "shouldStar": "true"}]).decode()
    for charset in ("UTF-16", "ISO-8859-1", "windows-1252"):
        data = text.replace("UTF-8", charset).encode(charset)
        assert read_gmail_filters(data).drafts[0].conditions == {"subject_words": "Grüße"}


BOMB = b"<!DOCTYPE feed [<!ENTITY a 'b'><!ENTITY c '&a;&a;&a;'>]>"


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", "line 1"),
        (b"<feed", "line 1"),
        (b"\n<html/>", "line 2"),
        (bytes(range(256)), "line 1"),
        (b"\xff\xfe<\x00f\x00", "line 1"),
        (b"<?xml version='1.0' encoding='klingon'?><feed/>", ""),
        (b"\n" + BOMB + b"<feed>&c;</feed>", "line 2"),
        (b"<!DOCTYPE feed SYSTEM 'file:///etc/passwd'><feed/>", "line 1"),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'>" + b"\n<a>" * 50_000, "line 9"),
        (b"x" * (4 * 1024 * 1024 + 1), "4 MiB"),
        (as_file([{}] * 5_001).replace(b"<entry>", b"\n<entry>"), "line 5002: has more than 5,000 filters"),
        (as_file([{"a": "b"}]).replace(b"<apps:", b"<apps:property name='a' value='c'/><apps:"), "filter 1 gives"),
    ],
)
def test_a_file_that_is_not_list_of_filters_is_refused_with_the_place(data: bytes, place: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_gmail_filters(data)
    assert place in str(refused.value)


@given(several(drafts()))
def test_exported_filters_are_read_back_without_a_refusal(rules: list[RuleDraft]) -> None:
    exported = write_gmail_filters(rules)
    imported = read_gmail_filters(exported.text.encode())
    assert imported.left_out == []
    assert len(exported.text.split("<entry>")) - 1 + len(exported.left_out) == len(rules)


def test_a_filter_excludes_the_mail_that_an_earlier_rule_decides_about() -> None:
    def rule(name: str, word: str, *, continues: bool) -> RuleDraft:
        return RuleDraft(name, {"subject_words": word}, "star", continues=continues)

    exported = write_gmail_filters([rule("one", "a", continues=False), rule("two", "b", continues=True)])
    assert 'value=\'(subject:"b" -subject:"a")\'' in exported.text
    exported = write_gmail_filters([rule("one", "a", continues=True), rule("two", "b", continues=True)])
    assert "value='subject:\"b\"'" in exported.text
    first = RuleDraft("first", {"subject_contains": "a"}, "star")
    assert "'first' decides first" in write_gmail_filters([first, rule("two", "b", continues=True)]).left_out[1].why


@pytest.mark.parametrize(
    ("conditions", "query"),
    [
        ({"older_than": "7d"}, "older_than:7d"),
        ({"older_than": "2w"}, "older_than:14d"),
        ({"older_than": "12h"}, None),
        ({"subject_contains": "a"}, None),
        ({"words": 'a "b c"'}, '("a" "b c")'),
        ({"category": "personal"}, "category:primary"),
        ({"category": "travel"}, None),
        (both({"to_me": True}), "to:me"),
        ({"larger": "10M"}, "larger:10M"),
    ],
)
def test_conditions_are_written_as_a_search_or_not_at_all(conditions: dict[str, Any], query: str | None) -> None:
    if query is not None:
        assert write_query(conditions) == query
        return
    with pytest.raises(Inexpressible):
        write_query(conditions)


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


def test_imported_filters_are_exported_as_they_came() -> None:
    rng = Random(7)
    for _ in range(50):
        first = read_gmail_filters(as_file(random_filters(rng)))
        enabled = [
            RuleDraft(each.name, each.conditions, each.action_type, each.parameters, continues=True)
            for each in first.drafts
            if not each.is_reviewed
        ]
        exported = write_gmail_filters(enabled)
        again = read_gmail_filters(exported.text.encode())
        assert exported.left_out == []
        assert [each.conditions for each in again.drafts] == [each.conditions for each in enabled]
        assert [each.parameters for each in again.drafts] == [each.parameters for each in enabled]
