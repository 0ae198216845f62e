"""Why a mail server does not let somebody in, and what the owner is told to do about it."""

import pytest

from postroom.core.mail.account_repair import repair_in
from postroom.mailboxes.imap.errors import (
    REMEDIES,
    Busy,
    ImapError,
    ImapSignInRefused,
    NotOffered,
    ServerFailed,
    sign_in_refusal,
)
from postroom.mailboxes.imap.presets import PRESETS, preset_at
from postroom.mailboxes.imap.sign_ins import refusal_reason
from postroom.telemetry.logs import without_secrets

ADA = "ada@example.com"
AGAIN = f"run `postroom account add imap --email {ADA}` and give the new one"


@pytest.mark.parametrize(
    ("code", "text", "cause"),
    [
        ("AUTHENTICATIONFAILED", "Invalid credentials (Failure)", "password"),
        (None, "LOGIN failed.", "password"),
        ("ALERT", "Application-specific password required: https://support.google.com/x (Failure)", "app_password"),
        ("AUTHENTICATIONFAILED", "Please use an app password", "app_password"),
        ("ALERT", "Please log in via your web browser: https://accounts.google.com", "web"),
        ("WEBALERT", "Web login required.", "web"),
        ("AUTHORIZATIONFAILED", "Denied.", "policy"),
        ("CONTACTADMIN", "Denied.", "policy"),
        (None, "Your account is not enabled for IMAP use. Please visit Gmail settings", "policy"),
        (None, "AUTHENTICATE failed: BasicAuthBlocked-39258197", "policy"),
        (None, "User is authenticated but not connected.", "policy"),
        ("EXPIRED", "Denied.", "expired"),
        ("PRIVACYREQUIRED", "Denied.", "insecure"),
    ],
)
def test_the_cause_is_told_by_code_or_by_words(code: str | None, text: str, cause: str) -> None:
    error = sign_in_refusal("imap.example.com", code, text)
    assert isinstance(error, ImapSignInRefused)
    assert (error.cause, error.code) == (cause, code)
    assert text not in str(error), "a server's own text may quote anything"


@pytest.mark.parametrize(("code", "kind"), [("LIMIT", Busy), ("INUSE", Busy), ("UNAVAILABLE", ServerFailed)])
def test_a_server_that_cannot_now_is_asked_later(code: str, kind: type[ImapError]) -> None:
    assert isinstance(sign_in_refusal("imap.example.com", code), kind)


def test_for_a_password_the_remedy_is_a_new_one_with_the_providers_word_on_it() -> None:
    plain = refusal_reason(ADA, ImapSignInRefused("imap.example.com", "AUTHENTICATIONFAILED"))
    assert plain.startswith("imap.example.com does not accept the user name or the password (AUTHENTICATIONFAILED): ")
    assert plain.endswith(f"; {AGAIN}")
    known = refusal_reason(ADA, ImapSignInRefused("imap.gmail.com", "ALERT", "app_password"))
    assert known.startswith("imap.gmail.com wants an app password, not the account's own (ALERT). Google wants")
    assert "https://myaccount.google.com/apppasswords" in known
    assert repair_in(known, ADA) is None


@pytest.mark.parametrize(
    "error",
    [
        ImapSignInRefused("imap.gmail.com", "AUTHORIZATIONFAILED", "policy"),
        ImapSignInRefused("imap.gmail.com", "WEBALERT", "web"),
        NotOffered("the server does not take a password", "AUTH=PLAIN"),
    ],
)
def test_where_no_password_helps_the_account_is_resumed_after_the_repair(error: ImapSignInRefused | NotOffered) -> None:
    reason = refusal_reason(ADA, error)
    assert reason.endswith(f", then run `postroom account resume {ADA}`")
    repair = repair_in(reason, ADA)
    assert repair is not None
    assert repair.problem
    assert repair.remedy
    assert "app password" not in reason


def test_nothing_in_what_owners_are_told_looks_like_a_secret() -> None:
    """Whatever follows `password: ` is hidden where errors are printed and logged."""
    told = [refusal_reason(ADA, ImapSignInRefused(each.imap.host, "X", "password")) for each in PRESETS]
    told += [str(ImapSignInRefused("imap.example.com", "X", cause)) for cause in REMEDIES]
    assert [each for each in told if without_secrets(each) != each] == []


def test_a_server_on_this_machine_is_nobody_in_particular() -> None:
    assert preset_at("127.0.0.1") is None
    assert preset_at("imap.gmail.com") is not None
