"""How a search query is read, and which excerpt of a message is shown."""

from datetime import UTC, datetime

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.search import LONGEST_EXCERPT, SearchQuery, Term, excerpt, read_query, words_of


@pytest.mark.parametrize(
    ("line", "terms"),
    [
        ("invoice march", (Term(("invoice",)), Term(("march",)))),
        ('"as agreed"', (Term(("as", "agreed")),)),
        ('"as agreed', (Term(("as", "agreed")),)),
        ("invo*", (Term(("invo",), None, True),)),
        ('"invo*"', (Term(("invo",)),)),
        ("from:mara@lindqvist.example", (Term(("mara", "lindqvist", "example"), "sender"),)),
        ('SUBJECT:"as agreed"', (Term(("as", "agreed"), "subject"),)),
        ("subject:invo*", (Term(("invo",), "subject", True),)),
        ("re:hello", (Term(("re", "hello")),)),
        ('re:"hello you"', (Term(("re", "hello", "you")),)),
        ("https://a.example/b", (Term(("https", "a", "example", "b")),)),
        ('a or "OR" b', (Term(("a",)), Term(("or",)), Term(("OR",)), Term(("b",)))),
        ("(a b) ☃ & |c|", (Term(("a",)), Term(("b",)), Term(("c",)))),
        ("— word !", (Term(("word",)),)),
        ("e\u0301te\u0301", (Term(("ete",)),)),
        ("GRÖẞE straße", (Term(("grosse",)), Term(("strasse",)))),
        ('to:"Ada Lovelace"', (Term(("Ada", "Lovelace"), "recipients"),)),
        ("as-agreed", (Term(("as", "agreed")),)),
        ("東京*", (Term(("東京",), None, True),)),
    ],
)
def test_words_phrases_and_beginnings(line: str, terms: tuple[Term, ...]):
    assert read_query(line) == SearchQuery(terms)


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("a -b", SearchQuery((Term(("a",)),), excluded=(Term(("b",)),))),
        ('-"as agreed" -from:x -subject:yes*', SearchQuery(
            excluded=(Term(("as", "agreed")), Term(("x",), "sender"), Term(("yes",), "subject", True)))),
        ("a - b", SearchQuery((Term(("a",)), Term(("b",))))),
        ("-label:Travel label:Work", SearchQuery(labels=("Work",), other_labels=("Travel",))),
        ("has:attachment", SearchQuery(has_attachment=True)),
        ("a -has:attachment", SearchQuery((Term(("a",)),), has_attachment=False)),
        ("in:inbox -in:Receipts", SearchQuery(labels=("INBOX",), other_labels=("Receipts",))),
        ("in:archive", SearchQuery(other_labels=("INBOX", "TRASH", "SPAM", "SENT", "DRAFT"))),
        ("in:anywhere", SearchQuery(anywhere=True)),
        ("is:unread -is:starred is:read", SearchQuery(labels=("UNREAD",), other_labels=("STARRED", "UNREAD"))),
    ],
)  # fmt: skip
def test_what_is_excluded_and_where_mail_is(line: str, asked: SearchQuery):
    assert read_query(line) == asked


def test_filters():
    asked = read_query(
        'label:Receipts label:"To do" account:ada@example.com after:2026-11-01 after:2026-10-01 '
        "before:2026/11/15 before:2026-11-15T08:00:00+01:00"
    )
    assert asked == SearchQuery(
        (),
        ("Receipts", "To do"),
        "ada@example.com",
        datetime(2026, 11, 1, tzinfo=UTC),
        datetime(2026, 11, 15, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "no word"),
        ("—!*", "no word"),
        ('""', "no word"),
        ("☃ in:inbox", "no word"),
        ("from:☃ in:inbox", "from: has no word"),
        ('in:inbox subject:""', "subject: has no word"),
        ("invoice -☃", "after - has no word"),
        ("a OR b", "OR is not supported"),
        ("a | b", "is not supported"),
        ("a AND b", "AND is not supported"),
        ("a NOT b", "NOT is not supported"),
        ("{a b}", "a group in brackets"),
        ("from:(a b)", "a group in brackets"),
        ("label:{a b}", "a group in brackets"),
        ("-(a b)", "a group in brackets"),
        ("CC:ada invoice", "cannot be searched for"),
        ("-filename:pdf", "cannot be searched for"),
        ("older_than:2d", "cannot be searched for"),
        ("from: mara", "no value right after"),
        ("x label:", "no value right after"),
        ('label:" "', "has no value"),
        ("label:\0", "NUL"),
        ("has:pictures", "something else"),
        ("is:here", "something else"),
        ("-after:2026-11-01", "cannot be excluded"),
        ("-in:archive", "cannot be excluded"),
        ("after:yesterday", "not followed by a day"),
        ("before:0001-01-01T00:00:00+23:00", "not followed by a day"),
        ("x" * 501, "501 characters"),
        ("x" * 101, "more than 100"),
        ("x " * 21, "too many parts"),
        ("label:x " * 21, "too many parts"),
        (f'"{"x " * 51}"', "too many words"),
        ("abc* " * 6, "too many beginnings"),
        ("ab*", "a beginning that too many words share"),
        ("long.phrase.ab*", "a beginning that too many words share"),
        ("東*", "a beginning that too many words share"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_what_to_do(line: str, problem: str):
    with pytest.raises(BadInput, match=problem) as refused:
        read_query(line)
    assert refused.value.field == "query"
    assert refused.value.remedy


def test_words_hold_letters_digits_and_marks_only():
    text = "".join(map(chr, range(0xD800))).replace("\ufffd", "")
    for start in range(0, len(text), 90):
        for word in words_of(text[start : start + 90]):
            assert not set(word) & set("'\"\\:*&|!()<>{}^-+ \n\0")


def test_an_excerpt_is_around_the_first_word_and_short():
    text = f"{'before ' * 100}Needle\n in a haystack {'after ' * 100}"
    shown = excerpt(text, (Term(("NEEDLE",)),))
    assert "Needle in a haystack" in shown
    assert shown.startswith("before")
    assert len(shown) <= LONGEST_EXCERPT


def test_without_a_place_in_the_text_the_beginning_is_shown():
    assert excerpt("a  text", (Term(("other",)),), "its own words") == "its own words"
    assert excerpt("a  text", (Term(("text",), "subject"),), "") == "a text"
    assert excerpt("", (), "") == ""
