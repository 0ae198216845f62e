"""The conditions that people know from elsewhere: words, people, lists, attachments, size, dates, and what is known of
the sender."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.mail.categories import CATEGORIES
from postroom.core.mail.language import LANGUAGES
from postroom.core.rules.conditions import SPECS, read_conditions
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.leaf import BrokenRule, Leaf
from postroom.core.rules.needs import NEED_THE_HEADERS, NEED_THE_TEXT, READ_THE_TEXT, unknown_kinds
from postroom.core.rules.properties import GMAIL_CATEGORIES
from postroom.core.rules.rule_index import RANK, WORD_FIELDS, needed_keys
from support.matching import matches

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
HEADERS = (
    ("From", '"Holm, Ida" <ida.holm@news.shop.example>'),
    ("Sender", "Robot <robot@lists.shop.example>"),
    ("To", "Mara Lindqvist <mara@lindqvist.example>, team@work.example (The Team)"),
    ("Cc", "Žofie Nováková <zofie@club.example>"),
    ("Bcc", "Hidden One <hidden@club.example>"),
    ("Reply-To", "Help Desk <help@shop.example>"),
    ("Delivered-To", "mara+shop@lindqvist.example"),
    ("List-ID", "Weekly news <News.shop.example>"),
)
MAIL = MessageFacts(
    "ida.holm@news.shop.example",
    "Votre facture n°42: payée",
    HEADERS,
    frozenset({"INBOX", "CATEGORY_UPDATES"}),
    "Dear customer,\nyour order is past\r\n  due. Please pay the café of the street and the rest for you.",
    has_attachment=True,
    to=("mara@lindqvist.example", "team@work.example", "zofie@club.example"),
    sent_at=NOW - timedelta(days=7),
    size=5 * 2**20,
    attachments=(("Invoice 42.PDF", "application/pdf"), ("étude.png", "image/png")),
    own_addresses=frozenset({"mara@lindqvist.example"}),
    categories=frozenset({"finance"}),
    sender_in_contacts=True,
    sender_seen_before=False,
    reply_to_mine=False,
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"subject_words": "FACTURE payee"}, True),
        ({"subject_words": "fact"}, False),
        ({"subject_words": '"facture payée"'}, False),
        ({"subject_words": '"facture n 42"'}, True),
        ({"subject_words": "past"}, False),
        ({"body_words": '"past due"'}, True),
        ({"body_words": '"due past"'}, False),
        ({"body_words": "cafe"}, True),
        ({"body_words": "caf"}, False),
        ({"words": "facture cafe ida zofie etude"}, True),
        ({"words": "team@work.example hidden"}, True),
        ({"words": '"42 payee dear"'}, False),
        ({"words": "robot"}, False),
        ({"words": "desk"}, False),
        ({"from": "Ida.Holm@news.shop.example"}, True),
        ({"from": "ida@news.shop.example"}, False),
        ({"from": "@news.shop.example"}, True),
        ({"from": "@shop.example"}, False),
        ({"from_words": "shop.example"}, True),
        ({"from_words": "ida holm"}, True),
        ({"from_words": '"holm ida"'}, True),
        ({"from_words": '"ida news"'}, False),
        ({"from_name": "ida holm"}, True),
        ({"from_name": "shop"}, False),
        ({"to_header": "mara@lindqvist.example"}, True),
        ({"to_header": "zofie@club.example"}, False),
        ({"to": "zofie@club.example"}, True),
        ({"to_words": "lindqvist"}, True),
        ({"to_words": "novakova"}, True),
        ({"to_words": "hidden"}, False),
        ({"to_name": '"the team"'}, True),
        ({"to_name": "mara team"}, False),
        ({"to_words": "mara team"}, True),
        ({"cc": "@club.example"}, True),
        ({"cc": "mara@lindqvist.example"}, False),
        ({"cc_words": "Zofie"}, True),
        ({"bcc": "hidden@club.example"}, True),
        ({"bcc_words": "one"}, True),
        ({"reply_to": "help@shop.example"}, True),
        ({"reply_to": "ida.holm@news.shop.example"}, False),
        ({"reply_to_words": "desk"}, True),
        ({"delivered_to": "mara+shop@lindqvist.example"}, True),
        ({"delivered_to": "mara@lindqvist.example"}, False),
        ({"from_me": True}, False),
        ({"to_me": True}, True),
        ({"cc_me": False}, True),
        ({"bcc_me": False}, True),
        ({"address_match": {"name": "Sender", "pattern": r"^robot@lists\."}}, True),
        ({"address_match": {"name": "Sender", "pattern": "Robot <"}}, False),
        ({"address_match": {"name": "X-None", "pattern": "."}}, False),
        ({"list": "news.shop.example"}, True),
        ({"list": "news@shop.example"}, True),
        ({"list": "shop.example"}, False),
        ({"list_words": "weekly"}, True),
        ({"list_id": "shop"}, True),
        ({"attachment_name": "pdf"}, True),
        ({"attachment_name": "invoice 42.pdf"}, True),
        ({"attachment_name": "invoice etude"}, False),
        ({"attachment_name": "etude"}, True),
        ({"attachment_name": "inv"}, False),
        ({"attachment_type": "application/PDF"}, True),
        ({"attachment_type": "image/*"}, True),
        ({"attachment_type": "image/jpeg"}, False),
        ({"larger": "4M"}, True),
        ({"larger": "5M"}, False),
        ({"larger": 5 * 2**20 - 1}, True),
        ({"smaller": "5 MB"}, False),
        ({"smaller": "5121k"}, True),
        ({"smaller": "1G"}, True),
        ({"newer_than": "7d"}, False),
        ({"newer_than": "169h"}, True),
        ({"sent_before": "2026-11-09"}, True),
        ({"sent_before": "2026-11-08"}, False),
        ({"sent_after": "2026-11-08"}, True),
        ({"sent_after": "2026-11-08T09:00+01:00"}, True),
        ({"sent_after": "2026-11-08T09:00Z"}, False),
        ({"category": "finance"}, True),
        ({"category": "updates"}, True),
        ({"category": "promotions"}, False),
        ({"sender_in_contacts": True}, True),
        ({"sender_seen_before": False}, True),
        ({"reply_to_mine": True}, False),
        ({"language": "EN"}, True),
        ({"language": "de"}, False),
    ],
)
def test_a_condition_holds_or_not(condition: dict[str, Any], expected: bool) -> None:
    assert matches(condition, MAIL, NOW) is expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"larger": 0}, "if.larger: is not a size; write bytes, or K, M or G, such as 500K or 10M"),
        ({"larger": "10T"}, "if.larger: is not a size"),
        ({"smaller": True}, "if.smaller: is not a size"),
        ({"smaller": "99999999999G"}, "if.smaller: is not a size"),
        ({"and": [{"from_me": True}, {"larger": "-1"}]}, "if.and[1].larger: is not a size"),
        ({"from": "me"}, "if.from: is not an address; write `from_me: true`"),
        ({"to": "Me"}, "if.to: is not an address; write `to_me: true`"),
        (
            {"from": "Ida Holm"},
            "if.from: is not an address; write ida@shop.example, or @shop.example for a whole domain; for",
        ),
        ({"delivered_to": "@"}, "if.delivered_to: is not a domain"),
        ({"from_me": "yes"}, "if.from_me: is neither true nor false"),
        ({"words": "invoice -draft"}, "if.words: has a minus before 'draft'; put that word under `not`"),
        ({"subject_words": "…"}, "if.subject_words: has no letter or digit"),
        ({"attachment_type": "pdf"}, "if.attachment_type: is not a MIME type; write it as application/pdf or image/*"),
        ({"category": "promotion"}, "if.category: is unknown; did you mean"),
        ({"language": "klingon"}, "if.language: is unknown; use one of ar, cs"),
        ({"list": "two words"}, "if.list: is not the id of a list"),
        ({"sent_before": "yesterday"}, "if.sent_before: is not a date; write it as '2026-11-30'"),
        ({"sent_before": date(2026, 11, 30)}, "if.sent_before: is a date of YAML; put it in quotation marks"),
        ({"sent_after": "2026-11-30T08:00"}, "if.sent_after: has no time zone"),
        ({"newer_than": "7"}, "if.newer_than: is not an age"),
        ({"address_match": {"name": "Sender"}}, "if.address_match.pattern: is not a text"),
        (
            {"address_match": {"name": "Sender", "patern": "x"}},
            "if.address_match.patern: is not a field of address_match",
        ),
        ({"sender_in_contacts": 1}, "if.sender_in_contacts: is neither true nor false"),
        ({"subject_word": "x"}, "if.subject_word: is not a known condition; did you mean"),
    ],
)
def test_an_invalid_condition_is_refused_with_the_field_and_the_remedy(condition: Any, message: str) -> None:
    with pytest.raises(BrokenRule) as refused:
        read_conditions(condition)
    assert message in str(refused.value)


def test_without_a_date_or_a_size_neither_side_of_a_limit_holds() -> None:
    mail = replace(MAIL, sent_at=None, size=None)
    for condition in ({"newer_than": "1d"}, {"older_than": "1d"}, {"sent_before": "2030-01-01"}, {"larger": 1}):
        assert not matches(condition, mail, NOW)


@pytest.mark.parametrize(
    ("fact", "kinds"),
    [
        ("size", {"larger", "smaller"}),
        ("attachments", {"attachment_name", "attachment_type", "words"}),
        ("own_addresses", {"from_me", "to_me", "cc_me", "bcc_me"}),
        ("categories", {"category"}),
        ("sender_in_contacts", {"sender_in_contacts"}),
        ("sender_seen_before", {"sender_seen_before"}),
        ("reply_to_mine", {"reply_to_mine"}),
    ],
)
def test_conditions_on_a_fact_that_is_not_known_cannot_be_evaluated(fact: str, kinds: set[str]) -> None:
    assert unknown_kinds(MAIL) == frozenset()
    assert unknown_kinds(replace(MAIL, **{fact: None})) == kinds


# Known of all mail, however little of it is stored.
ALWAYS_KNOWN = {
    *("sender_email", "sender_domain", "subject_contains", "subject_regex", "subject_words"),
    *("older_than", "newer_than", "sent_before", "sent_after"),
}


def test_every_condition_says_which_part_of_a_message_it_needs() -> None:
    nothing = replace(
        MAIL,
        **dict.fromkeys(("size", "attachments", "own_addresses", "categories", "sender_in_contacts")),
        sender_seen_before=None,
        reply_to_mine=None,
    )
    needing = NEED_THE_TEXT | NEED_THE_HEADERS | unknown_kinds(nothing)
    assert READ_THE_TEXT <= NEED_THE_TEXT
    assert needing | ALWAYS_KNOWN == set(SPECS)
    assert not needing & ALWAYS_KNOWN


@pytest.mark.parametrize("kind", sorted(WORD_FIELDS))
def test_a_rule_is_filed_under_a_phrase_that_few_rules_need(kind: str) -> None:
    node = read_conditions({kind: '"the invoice" the'})
    assert needed_keys(node) == ((kind, " the invoice "),)
    assert needed_keys(node, {(kind, " the invoice "): 9, (kind, " the "): 2}) == ((kind, " the "),)
    assert kind in RANK


def test_languages_have_codes_of_two_letters() -> None:
    assert all(len(code) == 2 for code in LANGUAGES)
    assert isinstance(read_conditions({"language": "unknown"}), Leaf)


def test_every_language_and_category_is_documented() -> None:
    reference = (ROOT / "docs" / "reference" / "rules.md").read_text("utf-8")
    for code in (*LANGUAGES, *CATEGORIES, *GMAIL_CATEGORIES):
        assert code in reference
