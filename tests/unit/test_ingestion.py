"""Ingestion rules: how much of a message is stored, and by which rule."""

from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import BULK_PACK, DEFAULT_POLICY, IngestionFacts, IngestionPolicy, as_data, parse_rule
from postroom.core.mail.mime import parse_message

RULE = {"number": 10, "name": "r", "kind": "sender_domain", "value": "shop.example", "tier": "skip"}


def facts(head: str) -> IngestionFacts:
    return IngestionFacts.of(parse_message(f"{head}\n\nHello".encode()))


def rule(**changes: Any) -> dict[str, Any]:
    return {**RULE, **changes}


@pytest.mark.parametrize(
    ("changes", "head", "matches"),
    [
        ({}, "From: a@shop.example", True),
        ({}, "From: A <a@SHOP.example>", True),
        ({"value": "@Shop.Example"}, "From: a@shop.example", True),
        ({}, "From: a@mail.shop.example", False),
        ({}, "From: a@notshop.example", False),
        ({}, "Subject: shop.example", False),
        ({"kind": "sender_domain_suffix"}, "From: a@shop.example", True),
        ({"kind": "sender_domain_suffix"}, "From: a@mail.shop.example", True),
        ({"kind": "sender_domain_suffix", "value": "*.shop.example"}, "From: a@x.shop.example", True),
        ({"kind": "sender_domain_suffix"}, "From: a@notshop.example", False),
        ({"value": "bücher.example"}, "From: a@xn--bcher-kva.example", True),
        ({"kind": "sender_address", "value": "A@Shop.example"}, "From: a@shop.example", True),
        ({"kind": "sender_address", "value": "a@shop.example"}, "From: b@shop.example", False),
        ({"kind": "header_present", "header": "List-Id"}, "LIST-ID: <x>", True),
        ({"kind": "header_present", "header": "List-Id"}, "X-List-Id: <x>", False),
        ({"kind": "header_equals", "header": "X-Kind", "value": "Ad"}, "X-Kind:  AD ", True),
        ({"kind": "header_equals", "header": "X-Kind", "value": "ad"}, "X-Kind: ads", False),
        ({"kind": "header_equals", "header": "X-Kind", "value": "ad"}, "X-Kind: x\nX-Kind: ad", True),
        ({"kind": "header_contains", "header": "Subject:", "value": "Sale"}, "Subject: =?utf-8?q?big_SALE?=", True),
        ({"kind": "header_contains", "header": "subject", "value": "sale"}, "Subject: sail", False),
        ({"kind": "mime_type", "value": "text/calendar"}, "Content-Type: text/calendar", True),
        ({"kind": "mime_type", "value": "IMAGE/*"}, "Content-Type: image/png", True),
        ({"kind": "mime_type", "value": "image/*"}, "Content-Type: text/html", False),
    ],
)
def test_a_rule_matches_what_it_says(changes: dict[str, Any], head: str, matches: bool) -> None:
    policy = IngestionPolicy([parse_rule(rule(**changes))])
    assert policy.decide(facts(head)) == (("skip", "r") if matches else ("full", "default"))


def test_the_lowest_number_decides() -> None:
    rules = [parse_rule(rule(number=20, name="late")), parse_rule(rule(number=5, name="early", tier="metadata"))]
    for order in (rules, rules[::-1]):
        assert IngestionPolicy(order).decide(facts("From: a@shop.example")) == ("metadata", "early")


def test_of_rules_with_one_number_the_names_decide() -> None:
    rules = [parse_rule(rule(name="b")), parse_rule(rule(name="a", tier="metadata"))]
    assert IngestionPolicy(rules).decide(facts("From: a@shop.example")).rule == "a"


def test_a_part_of_the_wanted_type_is_enough() -> None:
    head = 'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/calendar\n\nx\n--b--'
    policy = IngestionPolicy([parse_rule(rule(kind="mime_type", value="text/calendar"))])
    assert policy.decide(facts(head)).tier == "skip"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("From: a@b.example", ("full", "default")),
        ("List-Unsubscribe: <x>", ("metadata", "list-unsubscribe")),
        ("List-Id: <x>", ("metadata", "list-id")),
        ("Precedence: Bulk", ("metadata", "precedence-bulk")),
        ("Precedence: list", ("metadata", "precedence-list")),
        ("Precedence: junk", ("metadata", "precedence-junk")),
        ("X-Spam-Flag: YES", ("metadata", "spam-flag")),
        ("List-Unsubscribe: <x>\nContent-Type: text/calendar", ("full", "invitation")),
    ],
)
def test_the_default_pack_keeps_bulk_mail_as_metadata_and_skips_nothing(head: str, expected: tuple[str, str]) -> None:
    assert DEFAULT_POLICY.decide(facts(head)) == expected
    assert all(each.tier != "skip" for each in BULK_PACK)


def test_a_rule_of_the_user_goes_before_the_pack() -> None:
    mine = parse_rule(rule(tier="full"))
    assert IngestionPolicy([*BULK_PACK, mine]).decide(facts("From: a@shop.example\nList-Id: x")) == ("full", "r")


@pytest.mark.parametrize("each", BULK_PACK, ids=lambda each: each.name)
def test_the_pack_is_data_like_any_other_rule(each: Any) -> None:
    assert parse_rule(as_data(each)) == each


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"number": -1}, "number", "whole number"),
        ({"number": True}, "number", "whole number"),
        ({"number": "10"}, "number", "whole number"),
        ({"kind": "sender_domian"}, "kind", "did you mean 'sender_domain'?"),
        ({"kind": None}, "kind", "use one of"),
        ({"tier": "Skip"}, "tier", "did you mean 'skip'?"),
        ({"value": ""}, "value", "one line"),
        ({"value": "a\nb"}, "value", "one line"),
        ({"value": "a@b"}, "value", "not a domain"),
        ({"kind": "sender_address", "value": "nobody"}, "value", "not an address"),
        ({"kind": "mime_type", "value": "calendar"}, "value", "not a MIME type"),
        ({"kind": "header_equals"}, "header", "one line"),
        ({"name": "x" * 600}, "name", "one line"),
        ({"vlaue": "x"}, "vlaue", "did you mean 'value'?"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_field(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(BadInput, match=field) as refused:
        parse_rule(rule(**changes))
    assert says in str(refused.value)


def test_a_trace_of_what_rules_look_at_tells_nothing_of_the_headers() -> None:
    assert "secret" not in repr(IngestionFacts("ann@x.example", (("Subject", "secret"),)))
