"""Malicious messages: parsed at little cost, keeping their headers, and listing what was left out."""

from collections.abc import Callable

import pytest

from postroom.core.mail.headers import values
from postroom.core.mail.mime import LARGEST_MESSAGE, LONGEST_TEXT, ParsedMessage, parse_message
from postroom.core.mail.tiers import Known, assign_tier, assign_tier_from_raw
from support.processor_time import MILLION, within_turns

KNOWN = Known.of({"mara@x.example"}, {"ida@x.example"}, {"<sent@x>"})
MIB = 1024 * 1024
TAIL = b"From: ida@x.example\r\n\r\nHello"
MIXED = b'From: ida@x.example\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n'
HTML = b"From: ida@x.example\r\nContent-Type: text/html\r\n\r\n"
TEXT = b"From: ida@x.example\r\nContent-Type: text/plain%s\r\nContent-Transfer-Encoding: %s\r\n\r\n"


def within_time(raw: bytes) -> ParsedMessage:
    """Read, and given a tier from headers and from bytes, at the cost of a loop of 100 million turns.

    What grows with the square costs a hundred times as much.
    """
    letter = within_turns(100 * MILLION, lambda: _read(raw))
    assert not any("cannot be read" in problem for problem in letter.problems)
    assert len(letter.text) <= LONGEST_TEXT
    return letter


def _read(raw: bytes) -> ParsedMessage:
    letter = parse_message(raw)
    assert assign_tier_from_raw(raw, KNOWN) == assign_tier(letter.headers, KNOWN)
    return letter


def nested(depth: int, boundary: Callable[[int], bytes]) -> bytes:
    levels = [
        b'Content-Type: multipart/mixed; boundary="%s"\r\n\r\n--%s\r\n' % (boundary(level), boundary(level))
        for level in range(depth)
    ]
    return b"From: ida@x.example\r\n" + b"".join(levels) + b"Content-Type: text/plain\r\n\r\nHello\r\n"


@pytest.mark.parametrize("name", ["Subject", "To", "In-Reply-To", "Precedence", "Content-Type"])
@pytest.mark.parametrize(
    "scrap",
    [
        *("a", "=?utf-8?q?a?= ", "=?", "(", ")", "<", ">", '"', '"\\', "\\", "a:", "a@b,", "<a@b>,", "[", "@", ";a=b"),
        *('; a="', "; n*1=b", ";=", "ü@ü.ü,", "a\r\n ", "\r", "=?utf-8?b?////?=", "=?utf-8?q?=0D=0A?=", "<a@b> ", "\0"),
        *("'", "%", "*", "; boundary=b", "=?a?q?=?= "),
    ],
    ids=ascii,
)
def test_a_header_of_a_mebibyte(name: str, scrap: str) -> None:
    value = scrap.encode() * (MIB // len(scrap.encode()))
    letter = within_time(f"{name}: ".encode() + value + b"\r\n" + TAIL)
    assert values(letter.headers, "from") == ["ida@x.example"]
    assert assign_tier(letter.headers, KNOWN).rule == "known_contact"
    assert any(f"64 KiB: {name}" in problem for problem in letter.problems)


def test_a_subject_of_a_mebibyte_is_cut_and_the_rest_is_read() -> None:
    letter = within_time(b"Subject: " + b"s" * MIB + b"\r\n" + TAIL)
    assert [len(value) for value in values(letter.headers, "subject")] == [65_535]
    assert letter.text == "Hello"


def test_hundreds_of_thousands_of_headers() -> None:
    letter = within_time(b"From: ida@x.example\r\n" + b"a:\n" * 2_000_000 + b"\nHello")
    assert letter.text == "Hello"
    assert letter.problems == ("the head is larger than 1 MiB",)


def test_hundreds_of_thousands_of_senders() -> None:
    assert within_time(b"From:\n" * 150_000 + TAIL).text == "Hello"


def test_a_hundred_thousand_parts() -> None:
    letter = within_time(MIXED + b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n" * 100_000 + b"--b--\r\n")
    assert letter.problems == ("it has more than 1,000 parts",)
    assert letter.text.count("x") == 999


def own(level: int) -> bytes:
    return b"b%d" % level


def same(_level: int) -> bytes:
    return b"b"


@pytest.mark.parametrize("boundary", [own, same])
def test_two_thousand_levels(boundary: Callable[[int], bytes]) -> None:
    letter = within_time(nested(2000, boundary))
    assert values(letter.headers, "from") == ["ida@x.example"]
    assert letter.problems != ()


def test_fifty_levels_are_read() -> None:
    assert within_time(nested(50, own)).text == "Hello"
    assert within_time(nested(51, own)).problems[0] == "parts are nested deeper than 50"


def test_two_thousand_messages_within_each_other() -> None:
    letter = within_time(b"From: ida@x.example\r\n" + b"Content-Type: message/rfc822\r\n\r\n" * 2000 + b"x")
    assert [each.mime_type for each in letter.attachments] == ["message/rfc822"]


@pytest.mark.parametrize("line", [b"--\n", b"--x\n", b"--b--x\n", b"--" + b"b" * 200 + b"\n", b"--b \n"])
def test_tens_of_mebibytes_of_what_looks_like_boundaries(line: bytes) -> None:
    assert within_time(MIXED + line * (30 * MIB // len(line))).problems != ()


@pytest.mark.parametrize(
    ("encoding", "scrap"),
    [
        *((b"base64", b"QUFB"), (b"base64", b"="), (b"base64", b"\xff"), (b"quoted-printable", b"=41")),
        *((b"quoted-printable", b"="), (b"x-uuencode", b"#0V%T\n"), (b"8bit", b"abc\r\n"), (b"none", b"\0")),
    ],
)
@pytest.mark.parametrize(
    "charset", [b"", b"; charset=utf-8", b"; charset=utf-7", b"; charset=punycode", b"; charset=hz"]
)
def test_tens_of_mebibytes_of_text(encoding: bytes, scrap: bytes, charset: bytes) -> None:
    letter = within_time(TEXT % (charset, encoding) + scrap * (10 * MIB // len(scrap)))
    assert values(letter.headers, "from") == ["ida@x.example"]


def test_more_than_may_be_decoded_is_left_and_said() -> None:
    letter = within_time(TEXT % (b"", b"8bit") + b"abc\r\n" * (12 * MIB))
    assert letter.problems == ("it has more than 50 MiB decoded",)


def test_more_than_may_be_read_leaves_the_headers() -> None:
    letter = within_time(TEXT % (b"", b"8bit") + b"x" * LARGEST_MESSAGE)
    assert values(letter.headers, "from") == ["ida@x.example"]
    assert letter.problems == ("it is larger than 100 MiB; only its headers were read",)


@pytest.mark.parametrize(
    "scrap",
    [
        *(
            b"<div>",
            b"<b><p>",
            b"<",
            b"<<",
            b'<a "',
            b'<a ">',
            b"<a x=1 ",
            b"&",
            b"&#1",
            b"&#11111111",
            b"&#x",
            b"<!--",
        ),
        *(b"<script>", b"<p>", b"</p", b" ", b"&amp;", b"<!", b"<?", b"<br>\n \n", b"<title>", b"</script", b"<a x='"),
        *(b"<table><td>", b"<svg><g>", b"\0", b"\xff", b">", b"-->", b"\n"),
    ],
)
def test_mebibytes_of_html(scrap: bytes) -> None:
    within_time(HTML + scrap * (3 * MIB // len(scrap)))


def test_a_tag_with_a_hundred_thousand_attributes() -> None:
    attributes = b" ".join(b"x%d=1" % number for number in range(100_000))
    assert within_time(HTML + b"<a " + attributes + b">words</a>").text == "words"


def test_many_html_parts_share_one_allowance() -> None:
    letter = within_time(MIXED + (b"--b\r\nContent-Type: text/html\r\n\r\n" + b"<p>" * 30_000 + b"\r\n") * 900)
    assert "it has more than a million characters of text" in letter.problems


def test_a_million_parameters() -> None:
    within_time(b"Content-Type: multipart/mixed" + b"; boundary=b" * 80_000 + b"\r\n" + TAIL)
    many = b"".join(b"; name*%d*=a" % number for number in range(5000))
    within_time(MIXED + (b"--b\r\nContent-Type: a/b" + many + b"\r\n\r\nx\r\n") * 500)


def test_heads_of_parts_without_end() -> None:
    assert within_time(MIXED + (b"--b\r\n" + b"Content-Type: text/plain;\r\n " * 2000) * 900).problems != ()


@pytest.mark.parametrize(
    "scrap", [b"\0", b"\xff", b"\r", b"\n", b"\r\n", b"--", b":", b" ", b": \n", b"\n--\n", b"\t\n"]
)
def test_mebibytes_of_nothing(scrap: bytes) -> None:
    within_time(scrap * (4 * MIB // len(scrap)))


def test_every_beginning_of_a_message_is_read() -> None:
    whole = MIXED + b'--b\r\nContent-Type: text/html; charset="utf-8"\r\n\r\n<p>caf\xc3\xa9</p>\r\n--b--\r\n'
    for end in range(len(whole)):
        within_time(whole[:end])
