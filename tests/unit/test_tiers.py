"""The priority tier: ordered rules, the first match decides; from headers and from raw bytes alike."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postroom.core.mail.headers import Headers
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known, assign_tier, assign_tier_from_raw, message_ids, sender_address

KNOWN = Known.of({"mara@lindqvist.example"}, {"ida@lindqvist.example", "käthe@bücher.example"}, {"<sent@x>", "<two@x>"})
STRANGER = ("From", "a@b.example")
DIRECT = ("To", "Mara <Mara@Lindqvist.example>")
CONTACT = ("high_priority", "known_contact")
REPLY = ("high_priority", "reply_to_outbound")
INTERACTIVE = ("interactive", "direct_correspondence")
FALLBACK = ("default", "fallback_default")


def raw(headers: Headers, end: str = "\r\n") -> bytes:
    return (end.join(f"{name}: {value}" for name, value in headers) + end + end + "Hello").encode()


def both(headers: Headers, known: Known = KNOWN) -> tuple[str, str]:
    """What the rules say, having seen that raw bytes come to the same, in any line ends."""
    assignment = assign_tier(headers, known)
    for end in ("\r\n", "\n"):
        assert assign_tier_from_raw(raw(headers, end), known) == assignment
        assert assign_tier(parse_message(raw(headers, end)).headers, known) == assignment
    return assignment


@pytest.mark.parametrize(
    "value",
    [
        "ida@lindqvist.example",
        "IDA@LINDQVIST.EXAMPLE",
        "Ida <ida@lindqvist.example>",
        '"Lindqvist, Ida" <IDA@lindqvist.example>',
        "=?utf-8?q?Lindqvist=2C_Ida?= <ida@lindqvist.example>",
        "=?utf-8?Q?Lindqvist,_Ida?= <ida@lindqvist.example>",
        '"=?utf-8?b?TGluZHF2aXN0LCBJZGE=?=" <ida@lindqvist.example>',
        "Ida (at home, <other@x.example>) <ida@lindqvist.example>",
        "ida@lindqvist.example (Ida)",
        "<ida@lindqvist.example>",
        "Ida <@relay.example,@other.example:ida@lindqvist.example>",
        "  ida@lindqvist.example  ",
        "Ida\r\n <ida@lindqvist.example>",
        "Ida <ida@\r\n lindqvist.example>",
        "Ida <ida@lindqvist.example.>",
        '"ida"@lindqvist.example',
        "Ida <ida(at home)@lindqvist.example>",
        "ida @ lindqvist.example",
        "Ida ida@lindqvist.example",
        "Ida <ida@lindqvist.example",
        "käthe@bücher.example",
        "KÄTHE@BÜCHER.example",
        "käthe@xn--bcher-kva.example",
        "käthe@XN--BCHER-KVA.EXAMPLE",
        "ka\u0308the@bu\u0308cher.example",
    ],
)
def test_a_known_contact_is_recognised_however_the_sender_is_written(value: str) -> None:
    assert both((("From", value),)) == CONTACT


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Ida",
        "ida@lindqvist.example.org",
        "sida@lindqvist.example",
        "ida+news@lindqvist.example",
        '"ida@lindqvist.example" <evil@x.example>',
        "ida@lindqvist.example <evil@x.example>",
        "=?utf-8?q?=3Cida=40lindqvist.example=3E=2C?= <evil@x.example>",
        "=?utf-8?q?ida=40lindqvist.example?= <evil@x.example>",
        '"=?utf-8?q?x=22_=3Cida=40lindqvist.example=3E=2C?=" <evil@x.example>',
        "(=?utf-8?q?x=29_ida=40lindqvist.example=2C=28?=) evil@x.example",
        "(ida@lindqvist.example) evil@x.example",
        "<=?utf-8?q?ida=40lindqvist.example?=>",
        "=?utf-8?q?Ida=0D=0AFrom:_ida=40lindqvist.example?= <evil@x.example>",
        "käthe@xn--bucher-.example",
        "stranger@x.example, Ida <ida@lindqvist.example>",
    ],
)
def test_a_name_or_a_likeness_is_not_the_contact(value: str) -> None:
    assert both((("From", value),)) == FALLBACK


@pytest.mark.parametrize("name", ["From", "from", "FROM", "fRoM"])
def test_the_case_of_a_header_name_does_not_matter(name: str) -> None:
    assert both(((name, "ida@lindqvist.example"),)) == CONTACT


@pytest.mark.parametrize(
    "value",
    [
        "<sent@x>",
        "  <sent@x>  ",
        "<other@x> <sent@x>",
        "<other@x><sent@x>",
        "<other@x>,\r\n\t<sent@x>",
        "<sent@x> (Mara's message of Monday)",
        "(a comment) <sent@x>",
        'Your message of "Mon, 1 Jan 2026" <sent@x>',
        "<se\r\n nt@x>",
        "sent@x",
    ],
)
def test_a_reply_to_what_the_user_sent_is_recognised(value: str) -> None:
    assert both((STRANGER, ("In-Reply-To", value))) == REPLY


@pytest.mark.parametrize("value", ["", "<>", "<SENT@X>", "<other@x>", "sent", "(see <sent@x>) <other@x>", "<<>>"])
def test_a_reply_to_something_else_is_not(value: str) -> None:
    assert both((STRANGER, ("In-Reply-To", value))) == FALLBACK


def test_references_alone_make_no_reply() -> None:
    assert both((STRANGER, ("References", "<sent@x>"))) == FALLBACK


@pytest.mark.parametrize(
    "headers",
    [
        (DIRECT,),
        (("To", "mara@lindqvist.example"),),
        (("TO", "x@y.example, MARA@lindqvist.example, z@y.example"),),
        (("To", '"Lindqvist, Mara" <mara@lindqvist.example>, "Doe, Jo" <jo@y.example>'),),
        (("To", "Family: ida@lindqvist.example, mara@lindqvist.example;"),),
        (("To", "a:b@y.example;, Family: Mara <mara@lindqvist.example>;"),),
        (("To", "x@y.example"), ("To", "z@y.example, mara@lindqvist.example")),
        (("To", "x@y.example,\r\n\tz@y.example,\r\n mara@lindqvist.example"),),
        (("To", "x@y.example; mara@lindqvist.example"),),
        (("To", "=?iso-8859-1?q?M=E4ra?= <mara@lindqvist.example>"),),
        (DIRECT, ("Precedence", "first-class")),
        (DIRECT, ("Precedence", "")),
        (DIRECT, ("List-Id", "<a.b>")),
        (DIRECT, ("X-List-Unsubscribe", "<x>")),
    ],
)
def test_mail_to_the_user_that_is_not_bulk_is_direct_correspondence(headers: Headers) -> None:
    assert both((STRANGER, *headers)) == INTERACTIVE


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("Cc", "mara@lindqvist.example"),),
        (("Bcc", "mara@lindqvist.example"),),
        (("Delivered-To", "mara@lindqvist.example"),),
        (("To", "undisclosed-recipients:;"),),
        (("To", ""),),
        (("To", '"mara@lindqvist.example" <list@y.example>'),),
        (("To", "mara+shop@lindqvist.example"),),
        (("X-To", "mara@lindqvist.example"),),
        (("To-Do", "mara@lindqvist.example"),),
        (("To", "mara@lindqvist.example: other@y.example;"),),
        (DIRECT, ("LIST-UNSUBSCRIBE", "<x>")),
        (DIRECT, ("List-Unsubscribe", "")),
        (DIRECT, ("Precedence", "bulk")),
        (DIRECT, ("Precedence", " Bulk ")),
        (DIRECT, ("precedence", "list")),
        (DIRECT, ("PRECEDENCE", "junk")),
        (DIRECT, ("Precedence", "bulk (automatic)")),
        (DIRECT, ("Precedence", "first-class"), ("Precedence", "junk")),
    ],
)
def test_the_rest_is_default(headers: Headers) -> None:
    assert both((STRANGER, *headers)) == FALLBACK


def test_the_first_rule_that_matches_decides() -> None:
    contact, reply, bulk = ("From", "ida@lindqvist.example"), ("In-Reply-To", "<sent@x>"), ("List-Unsubscribe", "<x>")
    assert both((contact, reply, DIRECT, bulk)) == CONTACT
    assert both((STRANGER, reply, DIRECT, bulk)) == REPLY
    assert both((STRANGER, DIRECT, bulk)) == FALLBACK
    assert both(()) == FALLBACK


def test_a_user_address_with_a_plus_is_that_address_and_no_other() -> None:
    known = Known.of({"mara+post@lindqvist.example"})
    assert both((("To", "Mara+Post@lindqvist.example"),), known) == INTERACTIVE
    assert both((("To", "mara@lindqvist.example"),), known) == FALLBACK


def test_a_user_with_several_addresses_is_found_under_each() -> None:
    known = Known.of({"mara@lindqvist.example", "m@bücher.example"})
    assert both((("To", "m@xn--bcher-kva.example"),), known) == INTERACTIVE


def test_contacts_and_ids_in_any_form_are_known() -> None:
    known = Known.of([" Mara@X.example "], ["Ida@BÜCHER.example", "no address"], [" <a@x> (mine)", "b@x"])
    assert known.user_addresses == {"mara@x.example"}
    assert known.contacts == {"ida@xn--bcher-kva.example"}
    assert known.sent_ids == {"<a@x>", "<b@x>"}


def test_without_contacts_the_other_rules_still_hold() -> None:
    known = Known(frozenset({"mara@lindqvist.example"}), sent_ids=frozenset({"<sent@x>"}))
    assert both((("From", "ida@lindqvist.example"), ("In-Reply-To", "<sent@x>")), known) == REPLY
    assert both((("From", "ida@lindqvist.example"), DIRECT), known) == INTERACTIVE


@pytest.mark.parametrize("value", ["(" * 5000, "a:" * 5000, "<" * 5000, '"' + "\\" * 5000, "a@" * 20_000])
def test_an_address_without_sense_is_no_match(value: str) -> None:
    assert both((("From", value), ("To", value))) == FALLBACK


def test_a_header_behind_a_very_long_one_counts() -> None:
    assert (
        assign_tier_from_raw(b"Subject: " + b"x" * 2_000_000 + b"\nFrom: ida@lindqvist.example\n\n", KNOWN) == CONTACT
    )


def test_what_looks_like_a_header_in_the_body_is_none() -> None:
    message = b"From: a@b.example\r\nSubject: x\r\n\r\nTo: mara@lindqvist.example\r\n\r\n"
    assert assign_tier_from_raw(message, KNOWN) == FALLBACK


def test_a_blank_before_the_colon_and_lines_that_are_no_headers_are_skipped() -> None:
    message = b"From a@b Mon Jan  1 00:00:00 2026\n>From: x\nno header\nTo : mara@lindqvist.example\n\nHello"
    assert assign_tier_from_raw(message, KNOWN) == INTERACTIVE
    assert assign_tier(parse_message(message).headers, KNOWN) == INTERACTIVE


def test_a_sender_is_the_first_address_in_from() -> None:
    assert sender_address((("Sender", "x@y.example"), ("FROM", '"B, A" <Z@y.example>, a@y.example'))) == "z@y.example"
    assert sender_address((("From", "undisclosed"),)) == ""
    assert sender_address(()) == ""


def test_message_ids_lose_blanks_folds_and_comments() -> None:
    assert message_ids(" <a@x>\r\n\t(b) <c\r\n d@x>, junk") == ["<a@x>", "<cd@x>"]
    assert message_ids("a@x b@x word") == ["<a@x>", "<b@x>"]
    assert message_ids("") == []


SCRAPS = st.sampled_from(
    [
        *(
            "ida@lindqvist.example",
            "mara@lindqvist.example",
            "<ida@lindqvist.example>",
            "x",
            "Ida",
            "@",
            "lindqvist.example",
        ),
        *(
            '"',
            "(",
            ")",
            "<",
            ">",
            ",",
            ";",
            ":",
            "\\",
            " ",
            "\r\n ",
            "\n\t",
            "\r",
            "\n",
            "\n\n",
            ".",
            "[",
            "]",
            "=?",
            "?=",
        ),
        *(
            "=?utf-8?q?=3Cida=40lindqvist.example=3E?=",
            "=?utf-8?b?SWRhLA==?=",
            "=?x?q?=22?=",
            "=?utf-8?q?a?=",
            "\0",
            "é",
        ),
        *("<sent@x>", "bulk", "From: ", "\nTo: ", "\nFrom:", "\nfrom :", "\nIn-Reply-To:", "\nList-Unsubscribe:x"),
        *("\nPrecedence: ", "\nX-From: ", "=?utf-8?q?=3D=3Futf-8=3Fq=3F=22=2C?=", "=?utf-8?q?=3D?="),
    ]
)


@given(scraps=st.lists(SCRAPS | st.binary(max_size=4).map(lambda each: each.decode("latin-1")), max_size=30))
@example(scraps=["From: ", "=?utf-8?q?a?=", " ", "@", "lindqvist.example"])
@example(scraps=["From: ", "=?utf-8?q?=3D=3Futf-8=3Fq=3F=22=2C?=", "ida@lindqvist.example"])
@example(scraps=["\n", "\n", "From: ", "ida@lindqvist.example"])
def test_raw_bytes_and_read_headers_come_to_the_same(scraps: list[str]) -> None:
    for encoding in ("latin-1", "utf-8"):
        message = "".join(scraps).encode(encoding)
        assert assign_tier_from_raw(message, KNOWN) == assign_tier(parse_message(message).headers, KNOWN)
