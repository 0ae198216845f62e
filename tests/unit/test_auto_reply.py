"""Automatic answers: only to people who wrote to the user."""

import pytest

from postroom.core.mail.auto_reply import why_not_answered

OWN = {"mara@lindqvist.example"}
TO = ("To", "Mara <mara@lindqvist.example>")


def test_a_person_who_wrote_to_the_user_is_answered() -> None:
    assert why_not_answered("ann@shop.example", (TO, ("Subject", "Hello")), OWN) is None
    assert why_not_answered("ann@shop.example", (TO, ("Auto-Submitted", "no")), OWN) is None


def test_copied_to_the_user_counts_as_written_to_him() -> None:
    assert why_not_answered("ann@shop.example", (("To", "x@y.example"), ("Cc", "MARA@lindqvist.example")), OWN) is None


@pytest.mark.parametrize(
    "header",
    [
        ("Auto-Submitted", "auto-replied"),
        ("auto-submitted", "Auto-Generated; owner=x"),
        ("Precedence", "bulk"),
        ("Precedence", " List "),
        ("Precedence", "junk"),
        ("List-Id", "<dev.lists.example>"),
        ("List-Unsubscribe", "<mailto:leave@lists.example>"),
        ("X-Auto-Response-Suppress", "All"),
        ("Return-Path", "<>"),
        ("Content-Type", 'multipart/report; report-type=delivery-status; boundary="x"'),
        ("X-Loop", "mara@lindqvist.example"),
        ("Feedback-ID", "1:2:3"),
    ],
)
def test_what_programs_write_is_never_answered(header: tuple[str, str]) -> None:
    assert why_not_answered("ann@shop.example", (TO, header), OWN) is not None


@pytest.mark.parametrize(
    "sender",
    [
        "",
        "@shop.example",
        "mailer-daemon@shop.example",
        "MAILER-DAEMON@shop.example",
        "postmaster@shop.example",
        "no-reply@shop.example",
        "noreply+123@shop.example",
        "do-not-reply@shop.example",
        "donotreply@shop.example",
        "owner-dev@lists.example",
        "dev-request@lists.example",
        "dev-bounces@lists.example",
        "bounce+abc@shop.example",
        "notifications@hub.example",
        "mara@lindqvist.example",
    ],
)
def test_senders_that_are_no_people_are_never_answered(sender: str) -> None:
    assert why_not_answered(sender, (TO,), OWN) is not None


@pytest.mark.parametrize("sender", ["nora@shop.example", "norbert.reply@shop.example", "rooter@shop.example"])
def test_people_whose_names_look_a_little_like_it_are_answered(sender: str) -> None:
    assert why_not_answered(sender, (TO,), OWN) is None


def test_mail_that_does_not_name_the_user_is_not_answered() -> None:
    assert why_not_answered("ann@shop.example", (("To", "undisclosed-recipients:;"),), OWN) is not None
    assert why_not_answered("ann@shop.example", (), OWN) is not None
