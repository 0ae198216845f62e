"""A search of a mailbox, parsed: what it means, and what is refused."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.mail.mailbox_query import (
    LONGEST_QUERY,
    All,
    AnyOf,
    HasAttachment,
    InPlace,
    InState,
    Labelled,
    Larger,
    Not,
    Phrase,
    Query,
    Since,
    WithMessageId,
    looks_into,
    read_mailbox_query,
)

NOW = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)
MEANINGS: list[tuple[str, Query]] = [
    ("", All()),
    ("invoice", Phrase("invoice")),
    ("invoice march", All((Phrase("invoice"), Phrase("march")))),
    ('"as  agreed"', Phrase("as agreed")),
    ("-newsletter", Not(Phrase("newsletter"))),
    ("a OR b c", All((AnyOf((Phrase("a"), Phrase("b"))), Phrase("c")))),
    ("a OR b OR c", AnyOf((Phrase("a"), Phrase("b"), Phrase("c")))),
    ("{a b}", AnyOf((Phrase("a"), Phrase("b")))),
    ("-(a b)", Not(All((Phrase("a"), Phrase("b"))))),
    ("a AND b", All((Phrase("a"), Phrase("b")))),
    ("from:ada@example.com", Phrase("ada@example.com", "from")),
    ('subject:"as agreed"', Phrase("as agreed", "subject")),
    ("subject:(a OR b)", AnyOf((Phrase("a", "subject"), Phrase("b", "subject")))),
    ("-from:{a b}", Not(AnyOf((Phrase("a", "from"), Phrase("b", "from"))))),
    ("after:2026/11/01", Since(datetime(2026, 11, 1, tzinfo=UTC))),
    ("before:2026-11-15", Not(Since(datetime(2026, 11, 15, tzinfo=UTC)))),
    ("after:1700000000", Since(datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC))),
    ("after:0", Since(datetime(1970, 1, 1, tzinfo=UTC))),
    ("after:3599", Since(datetime(1970, 1, 1, 0, 59, 59, tzinfo=UTC))),
    ("newer_than:2d", Since(NOW - timedelta(days=2))),
    ("older_than:1y", Not(Since(NOW - timedelta(days=365)))),
    ("label:Receipts", Labelled("Receipts")),
    ("in:inbox", InPlace("INBOX")),
    ("-in:drafts -in:chats", All((Not(InPlace("DRAFT")), Not(InPlace("CHATS"))))),
    ("in:Receipts", Labelled("Receipts")),
    ("is:read is:starred", All((Not(InState("UNREAD")), InState("STARRED")))),
    ("has:attachment", HasAttachment()),
    ("larger:5M", Larger(5 * 2**20)),
    ("smaller:1k", Not(Larger(1023))),
    ("rfc822msgid:<a@b.example>", WithMessageId("a@b.example")),
    ("Re:lunch", Phrase("Re:lunch")),
    ("12:30", Phrase("12:30")),
    ("grüße", Phrase("grüße")),
]
REFUSED = [
    ("category:promotions", "category:"),
    ("a (b OR category:social)", "category:"),
    ("filename:pdf", "filename:"),
    ("a AROUND b", "AROUND"),
    ("invo*", "beginning of a word"),
    ("from:me", "your address"),
    ("from: ada", "no space"),
    ("is:important", "is:"),
    ("has:drive", "has:"),
    ("after:yesterday", "after:"),
    ("after:2026/13/01", "after:"),
    ("after:2026", "after:"),
    ("newer_than:2", "newer_than:"),
    ("larger:big", "larger:"),
    ('"a', "quotation mark"),
    ('""', "without words"),
    ("(a", "lacks"),
    ("a)", "without its beginning"),
    ("()", "empty brackets"),
    ("OR a", "OR"),
    ("a OR", "OR"),
    ("a\nb", "control character"),
    ("a\x00b", "control character"),
    ("a " * 100, "too many parts"),
    ("(" * 20 + "a" + ")" * 20, "too many brackets"),
    ("a" * (LONGEST_QUERY + 1), "characters"),
    ("a" * 600, "too long"),
]


@pytest.mark.parametrize(("text", "meant"), MEANINGS, ids=[each[0] or "empty" for each in MEANINGS])
def test_a_search_means(text: str, meant: Query) -> None:
    assert read_mailbox_query(text, NOW) == meant


@pytest.mark.parametrize(("text", "named"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_a_search_that_mailboxes_do_not_know_is_refused_with_a_remedy(text: str, named: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_mailbox_query(text, NOW)
    assert refused.value.field == "query"
    assert named in str(refused.value)
    assert refused.value.remedy


@given(st.text(alphabet=st.sampled_from('ab -"(){}:OR|*in:frm\u00fc+'), max_size=60))
def test_whatever_is_written_is_understood_or_refused(text: str) -> None:
    with suppress(BadInput):
        read_mailbox_query(text, NOW)


def test_the_trash_is_searched_only_by_name() -> None:
    assert looks_into(read_mailbox_query("a in:trash", NOW), "TRASH")
    assert looks_into(read_mailbox_query("in:anywhere", NOW), "SPAM")
    assert not looks_into(read_mailbox_query("-in:trash a", NOW), "TRASH")
