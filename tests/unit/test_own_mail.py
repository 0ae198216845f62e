"""The user's own mail: nothing is decided about it, wherever it is found and however it came back."""

import pytest

from postroom.core.mail.headers import Headers
from postroom.core.mail.own_mail import is_own_mail
from postroom.core.mail.tiers import Known

ME = "mara@lindqvist.example"
KNOWN = Known(frozenset({ME, "m@work.example"}), own_hosts=frozenset({"mx.google.com"}))
INBOX = frozenset({"INBOX", "UNREAD"})
LIST = ("To", "Friends <friends@lists.example>")
FAILED = ("Authentication-Results", "mx.google.com; dmarc=fail header.from=lindqvist.example")


@pytest.mark.parametrize(
    ("headers", "labels"),
    [
        ((("From", ME), LIST), INBOX),
        ((("From", f"Mara <{ME.upper()}>"), LIST, ("List-Id", "<friends.lists.example>")), INBOX),
        ((("From", "m@work.example"), LIST), INBOX),
        ((("From", ME), LIST), frozenset({"SENT"})),
        ((("From", ME), LIST), frozenset({"SENT", "INBOX"})),
        ((("From", "alias@other.example"), LIST), frozenset({"SENT"})),
        ((("From", ME),), frozenset[str]()),
    ],
)
def test_mail_from_the_user_to_others_is_their_own(headers: Headers, labels: frozenset[str]) -> None:
    assert is_own_mail(headers, labels, KNOWN)


@pytest.mark.parametrize(
    ("headers", "labels"),
    [
        ((("From", ME), ("To", ME)), frozenset({"SENT", "INBOX"})),
        ((("From", ME), LIST, ("Cc", f"Me <{ME}>")), INBOX),
        ((("From", ME), LIST, ("Bcc", "m@work.example")), INBOX),
        ((("From", "ida@lindqvist.example"), LIST), INBOX),
        ((("From", f'"{ME}" <evil@evil.example>'), LIST), INBOX),
        ((FAILED, ("From", ME), LIST), INBOX),
        ((("From", ME), ("From", "evil@evil.example"), LIST), INBOX),
        ((("From", f"{ME}, evil@evil.example"), LIST), INBOX),
        ((LIST,), INBOX),
    ],
)
def test_mail_to_oneself_from_others_or_forged_is_received(headers: Headers, labels: frozenset[str]) -> None:
    assert not is_own_mail(headers, labels, KNOWN)
