"""The message and the envelope of a submitted mail, for any input: refused with a reason, or kept as it was."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import SubmissionRefused
from postroom.core.submission.envelope import Recipient, read_mail, read_rcpt
from postroom.core.submission.message import MOST_HOPS, Trace, check_message
from postroom.core.submission.rates import Rates
from postroom.store.engine.ids import new_id

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
TRACE = Trace("unknown", "mail.example", "ESMTPSA", NOW)
OWN = ("ada@example.com", "*@own.example")
HEAD = b"From: ada@example.com\r\nDate: x\r\nMessage-ID: <x>\r\n"


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_a_reason_or_kept_at_the_end(content: bytes) -> None:
    for message in (content, HEAD + content, HEAD + b"\r\n" + content):
        try:
            checked = check_message(new_id(), message, OWN, TRACE, smtputf8=True)
        except SubmissionRefused:
            continue
        assert checked.content.count(b"\n") == checked.content.count(b"\r\n") == checked.content.count(b"\r")
        if message is not content and b"bcc" not in content.lower() and b"return-path" not in content.lower():
            assert checked.content.endswith(message)


@given(st.text(max_size=80))
def test_no_text_in_from_brings_in_an_address_that_is_not_the_senders(text: str) -> None:
    line = f"From: {text} <ceo@bank.example>\r\n".encode(errors="replace")
    with pytest.raises(SubmissionRefused):
        check_message(new_id(), line + b"\r\nHello.\r\n", OWN, TRACE, smtputf8=True)


def test_mail_that_goes_around_in_a_loop_is_refused() -> None:
    message = b"From: ada@example.com\r\n\r\nHello.\r\n"
    hop = b"Received: from a.example by b.example; Mon, 16 Nov 2026 08:00:00 +0000\r\n"
    assert check_message(new_id(), hop * MOST_HOPS + message, OWN, TRACE)
    with pytest.raises(SubmissionRefused) as refused:
        check_message(new_id(), hop * (MOST_HOPS + 1) + message, OWN, TRACE)
    assert (refused.value.field, refused.value.status) == ("Received", "5.4.6")


@given(st.text(max_size=120))
def test_any_text_after_rcpt_is_an_address_without_control_characters_or_refused(text: str) -> None:
    try:
        found = read_rcpt(f"TO:<{text}>", smtputf8=True)
    except SubmissionRefused:
        return
    assert found.address.isprintable()
    assert "@" in found.address


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("TO:<@relay.example,@b.example:c@d.example>", "c@d.example"),
        ("to:<C@D.Example>", "C@d.example"),
        ('TO:<"a>b"@d.example>', '"a>b"@d.example'),
    ],
)
def test_routes_are_dropped_and_local_parts_stay(written: str, read: str) -> None:
    assert read_rcpt(written, smtputf8=False) == Recipient(read)


@pytest.mark.parametrize(
    "arguments",
    [
        "NOTIFY=NEVER,DELAY",
        "NOTIFY=",
        "NOTIFY=SUCCESS,SUCCESS",
        "ORCPT=x",
        "ORCPT=rfc822;a b",
        "ORCPT=;a",
        "ORCPT=rfc822;a+0D+0AQUIT",
        "ORCPT=rfc822;a+FF",
    ],
)
def test_malformed_reports_are_refused(arguments: str) -> None:
    with pytest.raises(SubmissionRefused):
        read_rcpt(f"TO:<a@b.example> {arguments}", smtputf8=False)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("rfc822;Ben+2Bshop@d.example", "rfc822;Ben+shop@d.example"),
        ("rfc822;b+C3+B6@d.example", "rfc822;bö@d.example"),
        ("utf-8;bö\\x{2B}@d.example", "utf-8;b\\x{F6}\\x{2B}@d.example"),
    ],
)
def test_the_original_recipient_is_kept_decoded(given: str, kept: str) -> None:
    assert read_rcpt(f"TO:<a@b.example> ORCPT={given}", smtputf8=True).original == kept


def test_a_mail_may_be_held_for_thirty_days_and_not_longer() -> None:
    most = 30 * 86_400
    assert read_mail(f"FROM:<> HOLDFOR={most}", NOW).not_before == NOW + timedelta(days=30)
    assert read_mail("FROM:<> HOLDUNTIL=2026-11-15T07:00:00Z", NOW).not_before is None
    for wrong in (f"HOLDFOR={most + 1}", "HOLDFOR=x", "HOLDUNTIL=tomorrow", "HOLDUNTIL=2026-11-16T08:00:00"):
        with pytest.raises(SubmissionRefused):
            read_mail(f"FROM:<> {wrong}", NOW)


def test_a_sender_may_submit_a_minutes_worth_at_once_and_then_at_that_pace() -> None:
    rates = Rates(60)
    assert [rates.take(1, 0.0) for _ in range(60)] == [0.0] * 60
    assert rates.take(1, 0.0) == 1.0
    assert rates.take(2, 0.0) == 0.0
    assert rates.take(1, 1.0) == 0.0
    assert rates.take(1, 1.5) == 0.5
