"""Reports about delivered, delayed and failed mail: ours are readable by others, and theirs by us."""

import email
import email.policy
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.outbound.replies import Reply, found_out
from postroom.core.outbound.reports import DeliveryReport, FeedbackReport, Original, read_report
from postroom.core.outbound.strikes import is_strike
from postroom.outbound.queue.dsn import ReportedMail, ReportedRecipient, delivery_report, wants_report
from support.bounce_letters import BOUNCES, LETTERS, MESSAGE_ID, NO_BOUNCES, BounceLetter

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
ID, MAIL_ID = UUID(int=7), UUID(int=9)
HEAD = (
    b"From: mara@sender.example\r\nSubject: =?utf-8?q?=C3=BC?= \xff\r\nMessage-ID: <1@sender.example>\r\n"
    b"X-Postroom-Delivery: " + str(MAIL_ID).encode()
)
MAIL = ReportedMail(MAIL_ID, "mara@sender.example", HEAD + b"\r\n\r\nbody\r\n", NOW)
FAILED = Reply(550, "5.1.1", "No such user", "mx.example.org[192.0.2.1]", "rcpt")
LOST = found_out("4.4.2", "the connection was lost", "mail")


def report(*recipients: ReportedRecipient, mail: ReportedMail = MAIL) -> bytes:
    return delivery_report(ID, "out.sender.example", mail, recipients, NOW)


def parsed(raw: bytes) -> Any:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert (message.get_content_type(), message.get_param("report-type")) == ("multipart/report", "delivery-status")
    assert message["Auto-Submitted"] == "auto-replied"
    parts: Any = message.get_payload()
    assert [each.get_content_type() for each in parts] == [
        "text/plain",
        "message/delivery-status",
        "text/rfc822-headers",
    ]
    return parts


def test_a_report_has_the_form_of_the_standard():
    raw = report(
        ReportedRecipient("ada@example.org", "failed", FAILED), ReportedRecipient("b@x.example", "delayed", LOST, NOW)
    )
    _, status, original = parsed(raw)
    about_mail, ada, bob = status.get_payload()
    assert about_mail["Reporting-MTA"] == "dns; out.sender.example"
    assert (ada["Final-Recipient"], ada["Action"], ada["Status"]) == ("rfc822; ada@example.org", "failed", "5.1.1")
    assert (ada["Remote-MTA"], ada["Diagnostic-Code"]) == ("dns; mx.example.org", "smtp; 550 5.1.1 No such user")
    assert (bob["Action"], bob["Status"], bob["Will-Retry-Until"]) == (
        "delayed",
        "4.4.2",
        "Sun, 15 Nov 2026 08:00:00 +0000",
    )
    assert b"body" not in raw
    assert "Message-ID: <1@sender.example>" in original.get_payload()


def test_mail_that_failed_in_the_end_has_a_status_that_says_so():
    _, status, _ = parsed(report(ReportedRecipient("ada@example.org", "failed", LOST)))
    assert status.get_payload()[1]["Status"] == "5.4.2"


def test_we_read_what_we_write():
    raw = report(
        ReportedRecipient("ada@example.org", "failed", FAILED), ReportedRecipient("ädä@x.example", "delayed", LOST)
    )
    found = read_report(raw)
    assert isinstance(found, DeliveryReport)
    assert found.original == Original("<1@sender.example>", MAIL_ID)
    ada, other = found.recipients
    assert (ada.address, ada.action, ada.bounce_class) == ("ada@example.org", "failed", "hard")
    assert (ada.reply.code, ada.reply.enhanced, ada.reply.text) == (550, "5.1.1", "No such user")
    assert (other.address, other.action, other.bounce_class) == ("ädä@x.example", "delayed", "soft")


@given(st.text(max_size=60), st.text(max_size=60), st.binary(max_size=200))
def test_no_text_of_a_stranger_leaves_its_place(reply: str, address: str, head: bytes):
    recipient = ReportedRecipient(address, "failed", Reply(550, "5.0.0", reply, reply or None, "rcpt"))
    raw = report(recipient, mail=MAIL._replace(content=head + b"\r\n\r\n"))
    assert raw.isascii()
    assert raw.count(b"\r\n") == raw.count(b"\n") == raw.count(b"\r")
    assert max(map(len, raw.split(b"\r\n"))) < 998
    _, status, _ = parsed(raw)
    assert len(status.get_payload()) == 2
    assert [each["Action"] for each in status.get_payload()[1:]] == ["failed"]


def test_nobody_is_told_about_a_report():
    with pytest.raises(BadInput):
        report(ReportedRecipient("ada@example.org", "failed", FAILED), mail=MAIL._replace(envelope_sender=""))


def test_reports_are_sent_as_they_were_asked_for():
    assert [wants_report((), action) for action in ("failed", "delayed", "relayed")] == [True, True, False]
    assert [wants_report(("never",), action) for action in ("failed", "delayed", "relayed")] == [False] * 3
    assert wants_report(("success", "failure"), "relayed")
    assert not wants_report(("failure",), "delayed")


GOOGLE = b"""\
From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>
Content-Type: multipart/report; boundary="0000"; report-type=delivery-status

--0000
Content-Type: multipart/related; boundary="1111"

--1111
Content-Type: text/plain

** Address not found **
--1111--
--0000
Content-Type: message/delivery-status

Reporting-MTA: dns; googlemail.com
Arrival-Date: Sun, 15 Nov 2026 00:00:00 -0800 (PST)
X-Original-Message-ID: <1@sender.example>

Final-Recipient: rfc822; Ada@Example.org
Action: failed
Status: 5.1.1
Remote-MTA: dns; gmail-smtp-in.l.google.com. (2607::1a, the server for the domain.)
Diagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist. Please try
 550-5.1.1 double-checking the recipient's email address for typos
Last-Attempt-Date: Sun, 15 Nov 2026 00:00:01 -0800 (PST)

--0000
Content-Type: message/rfc822

Message-ID: <1@sender.example>
From: mara@sender.example

body
--0000--
"""
EXCHANGE = b"""\
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/html; charset=utf-8

<p>Your message couldn't be delivered</p>
--b
Content-Type: message/delivery-status
Content-Transfer-Encoding: base64

UmVwb3J0aW5nLU1UQTogZG5zO0RCLmV4YW1wbGUKCkZpbmFsLXJlY2lwaWVudDogUkZDODIyOyBhZGFAZXhhbXBsZS5vcmcKQWN0aW9uOiBmYWlsZWQK
U3RhdHVzOiA1LjIuMgo=
--b--
"""
STATUS = b"Content-Type: message/delivery-status\r\n\r\n"
ARF = b"""\
From: <abuse@provider.example>
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

This is an email abuse report.
--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: SomeGenerator/1.0
Version: 1
Original-Mail-From: <mara@sender.example>
Original-Rcpt-To: <Ada@example.org>
Source-IP: 192.0.2.1

--b
Content-Type: message/rfc822

Message-ID: <1@sender.example>
X-Postroom-Delivery: 00000000-0000-0000-0000-000000000009

body
--b--
"""


def test_the_report_of_a_large_provider():
    found = read_report(GOOGLE.replace(b"\n", b"\r\n"))
    assert isinstance(found, DeliveryReport)
    [ada] = found.recipients
    assert (ada.address, ada.action, ada.reply.code, ada.bounce_class) == ("ada@example.org", "failed", 550, "hard")
    assert found.original.message_id == "<1@sender.example>"


def test_a_report_with_a_status_only():
    found = read_report(EXCHANGE)
    assert isinstance(found, DeliveryReport)
    [ada] = found.recipients
    assert (ada.reply.code, ada.reply.enhanced, ada.bounce_class) == (None, "5.2.2", "full")
    assert found.original == Original()


def test_a_complaint():
    found = read_report(ARF)
    assert found == FeedbackReport(Original("<1@sender.example>", MAIL_ID), "abuse", ("ada@example.org",))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"Subject: failed\r\n\r\nmail to ada@example.org failed\r\n",
        STATUS + b"Reporting-MTA: dns; x\r\n",
        STATUS + b"A: b\r\n\r\nFinal-Recipient: rfc822; x@y.example\r\nAction: eaten\r\n",
        STATUS + b"A: b\r\n\r\nFinal-Recipient: rfc822; nobody\r\nAction: failed\r\n",
        b"Content-Type: message/feedback-report\r\n\r\nVersion: 1\r\n",
    ],
)
def test_what_is_no_report(raw: bytes):
    assert read_report(raw) is None


@given(st.binary(max_size=400), st.sampled_from([GOOGLE, EXCHANGE, ARF]), st.integers(0, 900))
def test_damaged_reports_are_read_without_an_error(rubbish: bytes, raw: bytes, at: int):
    found = read_report(raw[:at] + rubbish + raw[at + len(rubbish) :])
    assert found is None or isinstance(found, DeliveryReport | FeedbackReport)


@pytest.mark.parametrize("bounce", BOUNCES, ids=lambda bounce: bounce.name)
def test_a_bounce_that_is_a_letter_is_read(bounce: BounceLetter):
    found = read_report(bounce.raw)
    assert isinstance(found, DeliveryReport)
    assert [(each.address, each.action, each.bounce_class) for each in found.recipients] == bounce.said
    assert found.original.message_id == MESSAGE_ID


@pytest.mark.parametrize("letter", NO_BOUNCES, ids=lambda letter: letter.name)
def test_a_letter_of_another_kind_is_no_bounce(letter: BounceLetter):
    assert read_report(letter.raw) is None


def test_the_mark_of_our_own_mail_is_found_in_a_letter():
    (exim,) = [each for each in BOUNCES if each.name == "exim, unknown user"]
    found = read_report(
        exim.raw.replace(b"Message-ID: <1@", b"X-Postroom-Delivery: %s\r\nX: <1@" % str(MAIL_ID).encode())
    )
    assert isinstance(found, DeliveryReport)
    assert found.original == Original(None, MAIL_ID)


def test_a_status_group_with_another_word_for_failed_or_without_an_action_is_read():
    for action in (b"Action: failure", b"Action: Failed (bad address)", b"X-Other: yes"):
        raw = STATUS + b"A: b\r\n\r\nFinal-Recipient: rfc822; x@y.example\r\n" + action + b"\r\nStatus: 5.1.1\r\n"
        found = read_report(raw)
        assert isinstance(found, DeliveryReport)
        assert [(each.action, each.bounce_class) for each in found.recipients] == [("failed", "hard")]


@pytest.mark.parametrize(
    ("said", "bounce_class"),
    [("550 Access denied", "unexplained"), ("550 No such user", "hard"), ("550", "hard"), ("550 Mailbox full", "full")],
)
def test_a_status_that_the_reporter_made_up_is_no_proof(said: str, bounce_class: str):
    """Sendmail writes 5.1.1 for every 550 in reply to RCPT."""
    raw = "A: b\r\n\r\nFinal-Recipient: rfc822; x@y.example\r\nAction: failed\r\nStatus: 5.1.1\r\n"
    found = read_report(STATUS + raw.encode() + f"Diagnostic-Code: smtp; {said}\r\n".encode())
    assert isinstance(found, DeliveryReport)
    assert [each.bounce_class for each in found.recipients] == [bounce_class]


def test_what_was_said_after_the_content_is_not_about_the_address():
    said = b"Diagnostic-Code: smtp; 554 Transaction failed (in reply to end of DATA command)\r\n"
    found = read_report(STATUS + b"A: b\r\n\r\nFinal-Recipient: rfc822; x@y.example\r\nAction: failed\r\n" + said)
    assert isinstance(found, DeliveryReport)
    (recipient,) = found.recipients
    assert (recipient.reply.phase, recipient.bounce_class) == ("content", "unexplained")
    assert not is_strike(recipient.reply, recipient.bounce_class)


@given(st.sampled_from([each.raw for each in LETTERS]), st.integers(0, 900), st.binary(max_size=300))
def test_damaged_letters_are_read_without_an_error(raw: bytes, at: int, rubbish: bytes):
    found = read_report(raw[:at] + rubbish + raw[at + len(rubbish) :])
    assert found is None or isinstance(found, DeliveryReport | FeedbackReport)


@pytest.mark.parametrize(
    "body",
    [
        "could not be delivered " + "a@b.example " * 100_000,
        "could not be delivered\n" + "<a@b.example>:\n" * 50_000,
        "could not " + "be " * 300_000,
        "delivery failed\n" + "a." * 300_000 + "@",
        "delivery failed\n" + " >" * 300_000,
        "delivery failed\nsaid: " + "550-" * 100_000,
        "delivery failed" + "\n" * 30_000,
        "deliver" * 9_000,
    ],
    ids=lambda body: body[:20],
)
def test_a_letter_that_is_made_to_be_slow_is_read_within_bounds(body: str):
    """By the processor time of this thread, beside reading a large honest one: no machine is too busy for it."""
    head = "From: mailer-daemon@example.org\r\nX-Failed-Recipients: a@b.example, c@d.example, e@f.example\r\n\r\n"
    honest = head + "could not be delivered\n<ada@example.org>:\n550 no such user\n" + "x " * 300_000

    def cost(raw: str) -> float:
        started = time.thread_time()
        read_report(raw.encode())
        return time.thread_time() - started

    assert cost(head + body) < 100 * max(cost(honest), 0.01)
