"""The priority tier: ordered rules, the first match decides."""

import pytest

from postroom.core.tiers import Headers, Known, assign_tier, sender_address

KNOWN = Known(frozenset({"mara@lindqvist.example"}), frozenset({"ida@lindqvist.example"}), frozenset({"<sent@x>"}))
DIRECT = ("To", "Mara <Mara@Lindqvist.example>")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ((("From", '"Lindqvist, Ida" <IDA@lindqvist.example>'),), ("high_priority", "known_contact")),
        ((("from", "ida@lindqvist.example"), ("List-Unsubscribe", "<x>")), ("high_priority", "known_contact")),
        ((("In-Reply-To", "<other@x> <sent@x>"),), ("high_priority", "reply_to_outbound")),
        ((("From", "a@b.example"), DIRECT), ("interactive", "direct_correspondence")),
        ((("From", "a@b.example"), DIRECT, ("LIST-UNSUBSCRIBE", "<x>")), ("default", "fallback_default")),
        ((("From", "a@b.example"), DIRECT, ("Precedence", " Bulk ")), ("default", "fallback_default")),
        ((("From", "a@b.example"), DIRECT, ("precedence", "junk")), ("default", "fallback_default")),
        ((("From", "a@b.example"), ("Cc", "mara@lindqvist.example")), ("default", "fallback_default")),
        (
            (("To", "x@y.example"), ("To", "z@y.example, mara@lindqvist.example")),
            ("interactive", "direct_correspondence"),
        ),
        ((), ("default", "fallback_default")),
    ],
)
def test_the_first_rule_that_matches_decides(headers: Headers, expected: tuple[str, str]) -> None:
    assert assign_tier(headers, KNOWN) == expected


@pytest.mark.parametrize("value", ["(" * 5000, "a:" * 5000, "<" * 5000, '"' + "\\" * 5000, "a@" * 20_000])
def test_an_address_that_chokes_the_parser_is_no_address(value: str) -> None:
    headers = (("From", value), ("To", value))
    assert assign_tier(headers, KNOWN) == ("default", "fallback_default")
    assert sender_address(headers) in ("", "a@a")


def test_a_sender_without_an_address_is_nobody() -> None:
    assert sender_address((("From", "undisclosed"),)) == ""
