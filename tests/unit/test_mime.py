"""Parsing raw messages: headers, text, attachments, and problems."""

import base64

import pytest
from fast_mail_parser import parse_email
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.mail.charsets import Decoded, decode_text
from postroom.core.mail.fields import Fields, safe_filename
from postroom.core.mail.headers import values
from postroom.core.mail.html import html_text
from postroom.core.mail.mime import Attached, parse_message, read_parts
from postroom.core.mail.parts import Part


def message(head: str, body: str | bytes = "Hello", end: str = "\r\n") -> bytes:
    content = body if isinstance(body, bytes) else body.replace("\n", end).encode()
    return head.strip("\n").replace("\n", end).encode() + (end + end).encode() + content


def multipart(kind: str, *parts: str, boundary: str = "b", closed: bool = True) -> bytes:
    body = "".join(f"--{boundary}\n{part}\n" for part in parts) + (f"--{boundary}--\n" if closed else "")
    return message(f'Subject: x\nContent-Type: multipart/{kind}; boundary="{boundary}"', body)


PLAIN = "Content-Type: text/plain\n\nPlain words"
HTML = "Content-Type: text/html\n\n<p>HTML <b>words</b></p>"
PDF = 'Content-Type: application/pdf; name="a.pdf"\nContent-Transfer-Encoding: base64\n\nJVBERi0x\n'


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\r\r\n"])
def test_headers_are_decoded_in_order_with_repeated_ones_kept(end: str) -> None:
    letter = parse_message(message("B: 1\nA: =?utf-8?q?Caf=C3=A9?=\nb: 2\nLong: one\n two\n\tthree", end=end))
    assert letter.headers == (("B", "1"), ("A", "Café"), ("b", "2"), ("Long", "one two\tthree"))
    assert (letter.text, letter.problems) == ("Hello", ())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=?utf-8?b?w6k=?=", "é"),
        ("=?utf-8?B?w6k?=", "é"),
        ("=?utf-8?q?a_b=5Fc?=", "a b_c"),
        ("=?utf-8?q?a?= =?utf-8?q?b?=", "ab"),
        ("=?utf-8?q?a?=\r\n =?iso-8859-1?q?=E9?= c", "aé c"),
        ("=?utf-8?q?=C3?= =?utf-8?q?=A9?=", "é"),
        ("=?utf-8*en?q?a?=", "a"),
        ("=?klingon?q?=E9?=", "é"),
        ("=?utf-8?q?=E9?=", "é"),
        ("x =?utf-8?q?y?= z", "x y z"),
        ("=?utf-8?x?y?=", "=?utf-8?x?y?="),
        ("=?utf-8?q?a=0D=0ABcc:_x?=", "a  Bcc: x"),
        ("=?utf-8?q?a=00b?=", "a\ufffdb"),
        ("=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?gb2312?b?xOO6ww==?=", "你好"),
        ("=?utf-8?b?!?=", ""),
    ],
)
def test_encoded_words_are_made_readable(value: str, expected: str) -> None:
    assert values(parse_message(message(f"Subject: {value}")).headers, "subject") == [expected]


def test_a_name_cannot_pass_for_an_address_once_decoded() -> None:
    letter = parse_message(message("From: =?utf-8?q?a=22=2C_=3Cb=40c=3E?= <real@x.example>"))
    assert values(letter.headers, "from") == ['"a\\", <b@c>" <real@x.example>']


@pytest.mark.parametrize(("raw", "expected"), [(b"\xc3\xa9", "é"), (b"\xe9", "é"), (b"a\0b", "a\ufffdb")])
def test_raw_bytes_in_a_header_are_repaired(raw: bytes, expected: str) -> None:
    assert values(parse_message(b"Subject: " + raw + b"\n\nx").headers, "subject") == [expected]


@pytest.mark.parametrize(
    ("content_type", "content", "expected", "repaired"),
    [
        ("text/plain; charset=utf-8", "é".encode(), "é", False),
        ("text/plain", b"plain", "plain", False),
        ("text/plain", "é".encode(), "é", False),
        ("text/plain; charset=us-ascii", b"caf\xe9", "café", True),
        ("text/plain; charset=utf-8", b"caf\xe9 \x93so\x94", "café “so”", True),
        ("text/plain; charset=iso-8859-1", b"\x80", "€", False),
        ("text/plain; charset=klingon", "é".encode(), "é", True),
        ("text/plain; charset=punycode", b"abc", "abc", True),
        ("text/plain; charset=rot13", b"abc", "abc", True),
        ("text/plain; charset=../../etc/passwd", b"abc", "abc", True),
        ("text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本", False),
        ("text/plain; charset=iso-2022-jp", "日本".encode(), "日本", True),
        ("text/plain; charset=utf-7", b"a+2AA-b+AOk-", "a?bé", False),
        ("text/plain; charset=utf-16", "日本".encode("utf-16"), "日本", False),
        ('text/plain; charset="utf-8" (comment)', "é".encode(), "é", False),
        ("text/plain; charset=KOI8-R (Russian)", "да".encode("koi8-r"), "да", False),
        ("text/plain; charset", b"abc", "abc", False),
        ("text", b"abc", "abc", False),
        ("", b"abc", "abc", False),
        (";;;=;=", b"abc", "abc", False),
    ],
)
def test_the_charset_is_a_hint_that_is_repaired(
    content_type: str, content: bytes, expected: str, repaired: bool
) -> None:
    letter = parse_message(message(f"Content-Type: {content_type}", content))
    assert letter.text == expected
    assert any("charset" in problem for problem in letter.problems) is repaired


def test_utf_8_with_a_broken_byte_stays_utf_8() -> None:
    letter = parse_message(message("Content-Type: text/plain; charset=utf-8", "naïve café \xe9".encode() + b"\xff"))
    assert letter.text == "naïve café \xe9\ufffd"


@pytest.mark.parametrize(
    ("encoding", "content", "expected"),
    [
        ("base64", base64.b64encode(b"words"), "words"),
        ("BASE64", b"d29y\r\n ZHM=", "words"),
        ("base64", b"d29yZHM", "words"),
        ("base64", b"d29yZHMh!!!!", "words!"),
        ("base64", b"d29yZ", "wor"),
        ("quoted-printable", b"w=6Frds=\r\n more=", "words more"),
        ("quoted-printable", b"=ZZ=", "=ZZ"),
        ("8bit", b"words", "words"),
        ("x-uuencode", b"begin 644 x\n#0V%T\n`\nend\n", "Cat"),
        ("klingon", b"words", "words"),
    ],
)
def test_transfer_encodings_are_undone_as_far_as_they_go(encoding: str, content: bytes, expected: str) -> None:
    letter = parse_message(message(f"Content-Transfer-Encoding: {encoding}", content))
    assert letter.text == expected
    assert (letter.problems != ()) == (encoding == "klingon")


def test_of_alternatives_the_plain_words_are_read() -> None:
    assert parse_message(multipart("alternative", PLAIN, HTML)).text == "Plain words"
    assert parse_message(multipart("alternative", HTML, PLAIN)).text == "Plain words"


def test_html_is_read_where_there_are_no_plain_words() -> None:
    assert parse_message(multipart("alternative", "Content-Type: text/plain\n\n \n", HTML)).text == "HTML words"
    assert parse_message(message("Content-Type: text/html", "<p>only</p>")).text == "only"


def test_other_parts_follow_each_other_and_files_are_attachments() -> None:
    letter = parse_message(multipart("mixed", PLAIN, PDF, HTML))
    assert letter.text == "Plain words\n\nHTML words"
    assert letter.attachments == (Attached("a.pdf", "application/pdf", 6),)
    assert letter.mime_types == ("multipart/mixed", "text/plain", "application/pdf", "text/html")


def test_text_that_is_attached_is_not_text() -> None:
    attached = 'Content-Type: text/plain\nContent-Disposition: attachment; filename="notes.txt"\n\nsecret\n'
    letter = parse_message(multipart("mixed", PLAIN, attached))
    assert letter.text == "Plain words"
    assert [each.filename for each in letter.attachments] == ["notes.txt"]


def test_a_message_within_a_message_is_an_attachment() -> None:
    letter = parse_message(multipart("mixed", PLAIN, "Content-Type: message/rfc822\n\nSubject: inner\n\ninner words"))
    assert letter.text == "Plain words"
    assert [each.mime_type for each in letter.attachments] == ["message/rfc822"]


def test_a_digest_holds_messages() -> None:
    assert parse_message(multipart("digest", "\nSubject: inner\n\nx")).mime_types == (
        "multipart/digest",
        "message/rfc822",
    )


def test_a_multipart_that_never_ends_is_read_and_said() -> None:
    letter = parse_message(multipart("mixed", PLAIN, closed=False))
    assert letter.text == "Plain words"
    assert letter.problems == ("it ends within a multipart",)


def test_an_inner_multipart_that_is_not_closed_ends_with_the_outer_one() -> None:
    inner = f'Content-Type: multipart/alternative; boundary="i"\n\n--i\n{PLAIN}\n--i\n{HTML}'
    letter = parse_message(multipart("mixed", inner, PDF))
    assert letter.text == "Plain words"
    assert [each.filename for each in letter.attachments] == ["a.pdf"]


@pytest.mark.parametrize("head", ["Content-Type: multipart/mixed", 'Content-Type: multipart/mixed; boundary=""'])
def test_a_multipart_without_a_boundary_is_read_as_text(head: str) -> None:
    letter = parse_message(message(head, "--x\n\nwords"))
    assert "words" in letter.text
    assert letter.problems == ("a multipart has no boundary",)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (b"=?iso-8859-1?q?Caf\xe9?=", "Café"),
        (b"=?iso-8859-1?q?Caf\xe9_=E0?=", "Café à"),
        (b"=?utf-8?q?Caf\xc3\xa9?=", "Café"),
        (b"=?us-ascii?q?Caf\xc3\xa9?=", "Café"),
    ],
)
def test_letters_left_as_they_are_in_an_encoded_word_are_read_in_its_charset(word: bytes, expected: str) -> None:
    letter = parse_message(b"Subject: " + word + b"\nFrom: " + word + b" <a@x.example>\n\n")
    assert values(letter.headers, "subject") == [expected]
    assert values(letter.headers, "from") == [f"{expected} <a@x.example>"]


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n"])
def test_lines_that_end_with_two_returns_are_lines(end: str) -> None:
    inner = f"--b\nContent-Type: text/plain\n\none\ntwo\n--b\n{PDF}--b--\n"
    letter = parse_message(message('Content-Type: multipart/mixed;\n boundary="b"', inner, end))
    assert (letter.text, letter.problems) == ("one\ntwo", ())
    assert letter.attachments == (Attached("a.pdf", "application/pdf", 6),)


@pytest.mark.parametrize(
    "head",
    ["multipart/mixed boundary=b", 'multipart/mixed  boundary="b"', "multipart/mixed\n boundary=b; charset=utf-8"],
)
def test_a_boundary_counts_without_the_semicolon_before_it(head: str) -> None:
    letter = parse_message(message(f"Content-Type: {head}", f"--b\n{PLAIN}\n--b--\n"))
    assert (letter.text, letter.mime_types) == ("Plain words", ("multipart/mixed", "text/plain"))


@pytest.mark.parametrize(("outer", "inner"), [("b", "bc"), ("bc", "b"), ("b", "b--")])
def test_a_boundary_may_begin_with_another(outer: str, inner: str) -> None:
    nested = f'Content-Type: multipart/mixed; boundary="{inner}"\n\n--{inner}\n{PLAIN}\n--{inner}--'
    assert parse_message(multipart("mixed", nested, PLAIN, boundary=outer)).text == "Plain words\n\nPlain words"


def test_bytes_that_are_no_text_are_not_shown_as_control_characters() -> None:
    content = base64.b64encode(b"one\x1b[2J\x07\x0ctwo\rthree\tfour\x9b\x00".replace(b"\x9b", "\x9b".encode()))
    letter = parse_message(message("Content-Transfer-Encoding: base64", content))
    assert letter.text == "one\ufffd[2J\ufffd\ntwo\nthree\tfour\ufffd\ufffd"


def test_a_message_without_any_header_is_all_body() -> None:
    letter = parse_message(b"hello world\n\nbody")
    assert (letter.headers, letter.text) == ((), "hello world\n\nbody")
    assert letter.problems == ("there is no header",)


def test_nothing_yields_nothing() -> None:
    assert parse_message(b"").text == ""


@pytest.mark.parametrize(
    ("disposition", "expected"),
    [
        ('attachment; filename="a.txt"', "a.txt"),
        ("attachment; filename=a b.txt", "a b.txt"),
        ("attachment; filename*=utf-8''caf%C3%A9.txt", "café.txt"),
        ("attachment; filename*0*=utf-8''caf%C3; filename*1*=%A9; filename*2=.txt", "café.txt"),
        ("attachment; filename*=koi8-r''%C6%C1%CA%CC.txt", "файл.txt"),
        ("attachment; filename*1=b; filename*0=a", "ab"),
        ('attachment; filename="=?utf-8?q?caf=C3=A9.txt?="', "café.txt"),
        ('attachment; filename="=?utf-8?q?a=0D=0ABcc=3A_x.txt?="', "a Bcc_ x.txt"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ('attachment; filename="C:\\\\Windows\\\\evil.exe"', "evil.exe"),
        ('attachment; filename="a\\"b.txt"', "a_b.txt"),
        ('attachment; filename=".."', "unnamed"),
        ("attachment", "unnamed"),
        ("attachment; filename*999999999999999999999=a", "unnamed"),
        ("attachment; filename*=x", "x"),
    ],
)
def test_names_of_attachments_are_decoded_and_safe(disposition: str, expected: str) -> None:
    part = f"Content-Type: application/x\nContent-Disposition: {disposition}\n\nx"
    assert [each.filename for each in parse_message(multipart("mixed", part)).attachments] == [expected]


def test_words_between_tags_with_quoted_attributes_are_kept() -> None:
    assert (
        html_text('<a href="x">One</a> and <a title="a > b" href="y">two</a>, "three" > 2')
        == 'One and two, "three" > 2'
    )


@pytest.mark.parametrize("before", ["\n", "\r\n\r\n", "\n\n\n"])
def test_empty_lines_before_the_headers_are_skipped(before: str) -> None:
    letter = parse_message(before.encode() + message("Subject: x", "Words"))
    assert (letter.headers, letter.text) == ((("Subject", "x"),), "Words")


def test_what_is_neither_in_its_charset_nor_in_utf_8_is_read_with_gaps_and_told_as_repaired() -> None:
    assert decode_text(b"caf\xe9", "iso-2022-jp") == Decoded("caf\ufffd", repaired=True)


@pytest.mark.parametrize(("count", "told"), [(990, False), (1_010, True)])
def test_of_more_than_a_thousand_parts_the_rest_is_left_out(count: int, told: bool) -> None:
    letter = parse_message(multipart("mixed", *[PDF] * count))
    assert ("it has more than 1,000 parts" in letter.problems) == told
    assert (len(letter.attachments) == count) != told


def test_parts_that_a_provider_has_taken_apart_are_read_by_the_same_rules() -> None:
    root = Part(
        Fields("multipart/mixed"),
        parts=[
            Part(
                Fields("multipart/alternative"),
                parts=[
                    Part(Fields("text/plain", charset="utf-8"), "Plain é".encode()),
                    Part(Fields("text/html", charset="utf-8"), b"<p>HTML</p>"),
                ],
            ),
            Part(Fields("application/pdf", filename="../a.pdf"), size=4711),
        ],
    )
    body = read_parts(root)
    assert (body.text, body.attachments) == ("Plain é", (Attached("a.pdf", "application/pdf", 4711),))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a\0b\r\nc.txt", "abc.txt"),
        ("annual\u202egpj.exe", "annualgpj.exe"),
        ("con.txt", "_con.txt"),
        (" .hidden. ", "hidden"),
        ("x" * 400 + ".pdf", "x" * 146 + ".pdf"),
        ("x" * 400, "x" * 150),
        ("a/", "a"),
        ("\ud800.txt", "txt"),
    ],
)
def test_a_safe_name_is_one_name(name: str, expected: str) -> None:
    assert safe_filename(name) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("a<br>b", "a\nb"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<script>alert('<p>')</script>a<style>p{}</style><!-- <p>x --> b", "a b"),
        ("<title>t</title>a &amp; b &#233; &nbsp; c", "a & b é c"),
        ('<a title="x > y" href="z">link</a>', "link"),
        ("1 < 2 and <3", "1 < 2 and <3"),
        ("a <b", "a"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\n\nc"),
        ("  a \n\n  b  ", "a b"),
        ("&#99999999999999999999;&#xFFFFFFFFFFFF;", "\ufffd\ufffd"),
        (f"&#{'9' * 5000};", "\ufffd"),
        ("<!DOCTYPE html><html><body>a</body></html>", "a"),
        ("", ""),
    ],
)
def test_html_becomes_what_a_reader_would_see(source: str, expected: str) -> None:
    assert html_text(source) == expected


TYPES = st.sampled_from(["text/plain", "text/html", "application/pdf", "image/png"])
NAMES = st.text(alphabet="abcé .", min_size=1, max_size=12).map(lambda name: f"x{name}x.bin")


@given(parts=st.lists(st.tuples(TYPES, st.text(max_size=60), st.none() | NAMES, st.booleans()), min_size=1, max_size=6))
def test_another_parser_finds_the_same_parts_in_a_well_formed_message(
    parts: list[tuple[str, str, str | None, bool]],
) -> None:
    from email.message import EmailMessage

    mail = EmailMessage()
    mail["Subject"] = "x"
    mail.make_mixed()
    for kind, content, name, _ in parts:
        maintype, subtype = kind.split("/")
        if maintype == "text" and name is None:
            piece = EmailMessage()
            piece.set_content(content, subtype=subtype)
            mail.attach(piece)
        else:
            mail.add_attachment(content.encode(), maintype=maintype, subtype=subtype, filename=name or "n.bin")
    letter, theirs = parse_message(bytes(mail)), parse_email(bytes(mail))
    assert [(each.mime_type, each.size) for each in letter.attachments] == [
        (each.mimetype, len(each.content)) for each in theirs.attachments
    ]
    assert letter.problems == ()


@given(raw=st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(raw: bytes) -> None:
    for prefix in (
        b"",
        b"Subject: x\n\n",
        b'Content-Type: multipart/mixed; boundary="b"\n\n--b\n',
        b"Content-Type: text/html\n\n",
    ):
        letter = parse_message(prefix + raw)
        assert not any("cannot be read" in problem for problem in letter.problems)
        assert "\0" not in letter.text
        assert letter.text.encode().decode() == letter.text
