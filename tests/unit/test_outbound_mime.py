"""The mail that Postroom sends: complete, in seven bits, and safe whatever the original contains."""

from base64 import b64encode
from datetime import UTC, datetime
from email import message_from_string, policy
from email.message import EmailMessage
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.mail.auto_reply import is_automatic
from postroom.core.mail.carrier import MARK
from postroom.core.mail.headers import Headers
from postroom.core.mail.references import MOST_REFERENCES
from postroom.outbound.queue.attachments import Attached, Attachment, attached_to, html_of
from postroom.outbound.queue.mime import Author, Original, answer_address, build_forward, build_reply

ID = UUID("01a1dfae-963b-771d-8c45-b1fe927a1983")
NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
ME = Author("me@example.com")
ADA = "ada@example.com"


def original(subject: str = "Hello", text: str = "Hi.", headers: Headers = (), files: tuple[Attachment, ...] = ()):
    return Original(ADA, subject, headers, text, Attached(files))


def reply(to: Original, **parameters: Any) -> EmailMessage:
    return parsed(build_reply(ID, ME, to, {"text": "Away", **parameters}, NOW).mime)


def forward(of: Original, **parameters: Any) -> EmailMessage:
    return parsed(build_forward(ID, ME, of, {"to": "ben@example.com", **parameters}, NOW).mime)


def parsed(mime: str) -> EmailMessage:
    assert mime.isascii()
    assert all(len(line) <= 998 for line in mime.split("\r\n"))
    assert "\r" not in mime.replace("\r\n", "")
    assert "\n" not in mime.replace("\r\n", "")
    return message_from_string(mime, policy=policy.default)


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return body.get_content().replace("\r\n", "\n")


NAMES = {"content-type", "mime-version", "content-transfer-encoding", "from", "to", "subject", "date", MARK.lower(),
    "auto-submitted"}  # fmt: skip
OF_REPLIES = NAMES | {"in-reply-to", "references", "x-auto-response-suppress"}
OF_FORWARDS = NAMES | {"x-loop"}
hostile = st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from('\r\n\0\t:=?_<>,;"\\\u202e\x85\u2028'))


@given(subject=hostile, id=hostile, references=hostile, text=hostile, name=hostile, html=st.none() | hostile)
def test_nothing_in_a_message_begins_another_header(
    subject: str, id: str, references: str, text: str, name: str, html: str | None
) -> None:
    headers = (("Message-ID", id), ("References", references), ("From", name), ("X-Loop", references), ("Date", text))
    given = original(subject, text, headers, (Attachment(name, "application/pdf", b"%PDF"),))
    answer = reply(given, text=text, html=html)
    assert {name.lower() for name in answer.keys()} <= OF_REPLIES  # noqa: SIM118 - a message is no dict
    sent_on = forward(given, note=text)
    assert {name.lower() for name in sent_on.keys()} <= OF_FORWARDS  # noqa: SIM118
    assert (answer["To"], sent_on["To"]) == (ADA, "ben@example.com")
    assert [part.get_content() for part in sent_on.iter_attachments()] == [b"%PDF"]


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.sampled_from(" \n")))
def test_a_text_arrives_as_it_was_written(text: str) -> None:
    assert text_of(reply(original(), text=f"[{text}]")) == f"[{text}]"


@pytest.mark.parametrize(
    ("subject", "answered", "sent_on"),
    [
        ("Lunch", "Re: Lunch", "Fwd: Lunch"),
        ("RE: Lunch", "RE: Lunch", "Fwd: RE: Lunch"),
        ("fwd: Lunch", "Re: fwd: Lunch", "fwd: Lunch"),
        ("", "Re:", "Fwd:"),
        ("Grüße\r\nBcc: eve@example.com", "Re: Grüße Bcc: eve@example.com", "Fwd: Grüße Bcc: eve@example.com"),
        ("a=?utf-8?q?=0D=0AX:y?=b", "Re: a=?utf-8?q?=0D=0AX:y?=b", "Fwd: a=?utf-8?q?=0D=0AX:y?=b"),
        ("gpj.\u202eexe", "Re: gpj. exe", "Fwd: gpj. exe"),
    ],
)
def test_a_subject_is_marked_once_and_stays_one_line(subject: str, answered: str, sent_on: str) -> None:
    assert build_reply(ID, ME, original(subject), {"text": "Away"}, NOW).subject == answered
    assert build_forward(ID, ME, original(subject), {"to": ADA}, NOW).subject == sent_on
    assert (reply(original(subject))["Subject"], forward(original(subject))["Subject"]) == (answered, sent_on)


def test_a_subject_of_any_length_is_cut() -> None:
    assert len(build_reply(ID, ME, original("ü" * 5_000), {"text": "Away"}, NOW).subject) <= 500


def test_references_keep_the_beginning_and_the_latest() -> None:
    ids = [f"<{number}.{'x' * 80}@example.com>" for number in range(100)]
    mail = reply(original(headers=(("message-id", "<last@example.com>"), ("References", " ".join(ids)))))
    assert mail["In-Reply-To"] == "<last@example.com>"
    kept = mail["References"].split()
    assert kept == [ids[0], *ids[102 - MOST_REFERENCES :], "<last@example.com>"]


def test_an_id_that_is_too_long_or_not_plain_is_left_out() -> None:
    assert reply(original(headers=(("Message-ID", f"<{'x' * 300}@example.com>"),)))["In-Reply-To"] is None
    assert reply(original(headers=(("Message-ID", "<ü@example.com>"),)))["References"] is None


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ((), ADA),
        (("Ben <ben@example.com>",), "ben@example.com"),
        (("ben@example.com, cleo@example.com",), ADA),
        (("nobody",), ADA),
    ],
)
def test_an_answer_goes_to_the_one_address_of_reply_to(values: tuple[str, ...], address: str) -> None:
    assert answer_address(original(headers=tuple(("Reply-To", value) for value in values))) == address


@pytest.mark.parametrize(
    "to", ["ädä@example.com", "ada@example.com\nBcc: eve@example.com", "a@b@", "", "a b@c.example"]
)
def test_what_is_not_address_is_refused(to: str) -> None:
    with pytest.raises(BadInput):
        build_forward(ID, ME, original(), {"to": to}, NOW)


def test_a_forward_notes_through_whom_it_went() -> None:
    assert forward(original(headers=(("X-Loop", "a@example.com"),)))["X-Loop"] == f"a@example.com, {ME.address}"


def test_files_of_all_kinds_are_taken_out_of_a_message() -> None:
    mail = EmailMessage()
    mail["From"], mail["To"] = ADA, ME
    mail.set_content("text")
    mail.add_alternative("<p>text</p>", subtype="html")
    mail.add_attachment(b"\x00\xff" * 500, maintype="image", subtype="png", filename="../Größe.png")
    mail.add_attachment("words, ünd words", filename="notes.txt")
    inner = EmailMessage()
    inner.set_content("within")
    mail.add_attachment(inner)
    found = attached_to(mail.as_bytes()).files
    assert [(each.filename, each.mime_type) for each in found] == [
        ("Größe.png", "image/png"),
        ("notes.txt", "text/plain"),
        ("message.eml", "application/octet-stream"),
    ]
    assert found[0].content == b"\x00\xff" * 500
    assert found[1].content.decode().strip() == "words, ünd words"
    assert b"within" in found[2].content


@pytest.mark.parametrize(
    ("name", "ending"), [("ü" * 500 + ".pdf", ".pdf"), ("x" * 500, "x"), ("😀" * 400 + ".ü" * 50, "")]
)
def test_a_long_name_of_a_file_is_cut_and_keeps_its_ending(name: str, ending: str) -> None:
    (file,) = forward(original(files=(Attachment(name, "application/pdf", b"%PDF"),))).iter_attachments()
    shown = file.get_filename() or ""
    assert 0 < len(shown.encode()) <= 200
    assert shown.endswith(ending)


def test_files_too_large_together_are_all_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b64encode(b"x" * 700).decode()
    part = f"--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment\r\n\r\n{body}\r\n"  # noqa: E501
    raw = f"Content-Type: multipart/mixed; boundary=b\r\n\r\n{part * 2}--b--\r\n".encode()
    assert len(attached_to(raw).files) == 2
    monkeypatch.setattr("postroom.outbound.queue.attachments.LARGEST_TOGETHER", 1_000)
    assert attached_to(raw) == Attached(left_out=2)


def test_a_mail_that_becomes_too_large_goes_without_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    files = (Attachment("big", "application/pdf", b"x" * 5_000),)
    monkeypatch.setattr("postroom.outbound.queue.mime.LARGEST", 4_000)
    mail = forward(original(files=files))
    assert list(mail.iter_attachments()) == []
    assert "1 attachments are not sent along" in text_of(mail)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_looked_through(raw: bytes) -> None:
    attached_to(raw)
    attached_to(b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" + raw + b"\r\n--b\r\n" + raw)


PAGE = "<html><head><style>p {color: red}</style></head><body class='x'><p>Gr\u00fc\u00dfe</p></body></html>"


def html_in(mail: EmailMessage) -> str:
    body = mail.get_body(("html",))
    assert body is not None
    return body.get_content()


def test_a_forward_keeps_the_html_of_the_original_beside_its_text() -> None:
    headers = (("From", 'Ada "A" <ada@example.com>'), ("Subject", "<b>bold</b>"))
    mail = forward(Original(ADA, "Hello", headers, "Gr\u00fc\u00dfe", html=PAGE), note="Look & see\nplease")
    assert mail.get_content_type() == "multipart/alternative"
    assert "Gr\u00fc\u00dfe" in text_of(mail)
    html = html_in(mail)
    assert "<p>Gr\u00fc\u00dfe</p>" in html
    assert html.index("<style>") < html.index("<body") < html.index("Look &amp; see<br>") < html.index("<p>Gr")
    assert "&lt;ada@example.com&gt;" in html
    assert "&lt;b&gt;bold&lt;/b&gt;" in html


def test_a_forward_of_plain_text_has_no_html_unless_the_note_has() -> None:
    assert forward(original()).get_content_type() == "text/plain"
    mail = forward(original(text="a < b"), note="Look", html="<p>Look</p>")
    assert html_in(mail).startswith("<p>Look</p>")
    assert "a &lt; b" in html_in(mail)


def test_pictures_within_the_html_stay_within_it_and_other_files_beside_it() -> None:
    picture = Attachment("logo.png", "image/png", b"PNG", "logo@x")
    paper = Attachment("bill.pdf", "application/pdf", b"PDF", "unused@x")
    html = "<body><img src='cid:logo@x'></body>"
    mail = forward(Original(ADA, "Hello", (), "Hi.", Attached((picture, paper)), html))
    kinds = [part.get_content_type() for part in mail.walk()]
    assert kinds == [
        *("multipart/mixed", "multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"),
        "application/pdf",
    ]
    shown = next(part for part in mail.walk() if part.get_content_type() == "image/png")
    assert (shown["Content-ID"], shown.get_content_disposition()) == ("<logo@x>", "inline")
    beside = next(part for part in mail.walk() if part.get_content_type() == "application/pdf")
    assert (beside["Content-ID"], beside.get_content_disposition()) == (None, "attachment")


def test_html_and_the_ids_of_pictures_are_read_out_of_a_raw_message() -> None:
    message = EmailMessage()
    message["From"] = ADA
    message.set_content("Hi")
    message.add_alternative(PAGE, subtype="html")
    _, page = message.iter_parts()
    page.add_related(b"PNG", "image", "png", cid="<logo@x>")
    raw = message.as_bytes()
    assert (html_of(raw) or "").strip() == PAGE
    assert [(each.mime_type, each.content_id) for each in attached_to(raw).files] == [("image/png", "logo@x")]
    assert html_of(b"From: a@example.com\r\n\r\nplain") is None


@pytest.mark.parametrize(
    "name", ["Mara Lindqvist", 'Mara "M" <evil@example.com>', "M\u00e4ra", "\u00fc" * 90, "a\r\nBcc: b@example.com"]
)
def test_mail_goes_out_under_the_name_of_its_author(name: str) -> None:
    own = Author("me@example.com", name)
    for built in (
        build_reply(ID, own, original(), {"text": "Away"}, NOW),
        build_forward(ID, own, original(), {"to": ADA}, NOW),
    ):
        mail = parsed(built.mime)
        (sender,) = mail["From"].addresses
        assert sender.addr_spec == "me@example.com"
        assert sender.display_name[:20] == " ".join(name.split())[:20]
        assert mail["Bcc"] is None


def test_copies_a_subject_and_files_of_its_own_are_sent() -> None:
    file = {"filename": "plan.pdf", "mime_type": "application/pdf", "data": b64encode(b"PDF").decode()}
    given: dict[str, Any] = {"cc": ["cc@example.com", "cd@example.com"], "subject": "New", "attachments": [file]}
    for built in (
        build_reply(ID, ME, original(), {"text": "Away", **given}, NOW),
        build_forward(ID, ME, original(), {"to": "ben@example.com", **given}, NOW),
    ):
        mail = parsed(built.mime)
        assert (mail["Cc"], mail["Subject"], built.subject) == ("cc@example.com, cd@example.com", "New", "New")
        assert built.recipients[1:] == ("cc@example.com", "cd@example.com")
        (sent,) = mail.iter_attachments()
        assert (sent.get_filename(), sent.get_content()) == ("plan.pdf", b"PDF")


def test_what_we_send_is_recognised_as_automatic_when_it_is_found_in_sent_mail() -> None:
    for mail in (reply(original()), forward(original())):
        assert is_automatic(tuple((name, str(value)) for name, value in mail.items()))
