"""Who may say what became of our mail: only proven mail systems, about recipients whose mail they had."""

from uuid import UUID

import pytest

from postroom.core.mail.authentication import proven_domains
from postroom.core.outbound.report_origins import ReportKind, ReportOrigin, origin_of, server_in

MINE, OTHER = UUID(int=1), UUID(int=2)
GOOGLE = (
    'mx.google.com;\r\n       dkim=pass header.i=@googlemail.com header.s=20230601 header.b="AbC/d+";\r\n'
    "       spf=pass (google.com: best guess record for domain of postmaster@mail-sor-f69.google.com designates "
    "209.85.220.69 as permitted sender) smtp.helo=mail-sor-f69.google.com;\r\n"
    "       dmarc=pass (p=QUARANTINE sp=QUARANTINE dis=NONE) header.from=googlemail.com"
)
SPF = "mx.google.com; spf={} (google.com: domain of postmaster@mx.example.org designates 192.0.2.1) smtp.helo={}"


def head(results: str | None, author: str = "mailer-daemon@googlemail.com", path: str = "<>", more: str = "") -> bytes:
    lines = [f"Return-Path: {path}", "Received: from x by mx.google.com with ESMTPS id 1"]
    lines += [] if results is None else [f"Authentication-Results: {results}"]
    return "\r\n".join([*lines, *([more] if more else []), f"From: Mail <{author}>", "", ""]).encode()


def origin(raw: bytes, kind: ReportKind = "delivery", endpoint: str = "gmail:user:me@gmail.com") -> ReportOrigin:
    return origin_of(raw, kind, MINE, endpoint, "me@gmail.com")


def test_a_report_of_the_mailbox_provider_counts_for_all_mail_that_left_through_the_mailbox():
    google = origin(head(GOOGLE))
    assert google.speaks_for("ada@example.org", None, through_mailbox=True)
    assert not google.speaks_for("ada@example.org", None, through_mailbox=False)
    assert google.speaks_for("ada@example.org", "aspmx.l.google.com", through_mailbox=False)


def test_a_server_speaks_for_its_own_domain_and_for_mail_that_it_took():
    postfix = origin(head(SPF.format("pass", "mx.example.org"), "MAILER-DAEMON@mx.example.org"))
    assert postfix.domains == {"mx.example.org"}
    assert postfix.speaks_for("ada@example.org", None, through_mailbox=False)
    assert postfix.speaks_for("ada@hosted.example", "mx.example.org", through_mailbox=False)
    assert not postfix.speaks_for("ada@hosted.example", "mx.other.example", through_mailbox=False)
    assert not postfix.speaks_for("ada@hosted.example", None, through_mailbox=True)
    assert not postfix.speaks_for("ada@notexample.org", "notexample.org", through_mailbox=False)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(head(None), id="nothing was checked"),
        pytest.param(head(GOOGLE.replace("mx.google.com;", "mx.evil.example;", 1)), id="checked by another server"),
        pytest.param(head("mx.google.com; dkim=fail header.i=@googlemail.com"), id="the signature is wrong"),
        pytest.param(
            head("mx.google.com; none", more=f"Authentication-Results: {GOOGLE}"), id="the sender wrote the results"
        ),
        pytest.param(head(GOOGLE, "eve@googlemail.com"), id="a user of the domain"),
        pytest.param(head(GOOGLE, "mailer-daemon@example.org"), id="From names another domain"),
        pytest.param(head(GOOGLE, path="<eve@googlemail.com>"), id="an envelope sender as of a person"),
        pytest.param(head(GOOGLE, more="From: mailer-daemon@googlemail.com"), id="two authors"),
        pytest.param(
            head("mx.google.com; spf=fail smtp.helo=x; dkim=pass header.i=@googlemail.com"), id="a result after SPF"
        ),
        pytest.param(
            head(
                'mx.google.com; spf=pass (domain of "x) smtp.helo=googlemail.com ("@evil.example) smtp.helo=x.example'
            ),
            id="a comment that ends early",
        ),
        pytest.param(head("mx.google.com; dkim=pass (a;b) header.i=@googlemail.com"), id="a result in no plain form"),
        pytest.param(head("mx.google.com; dkim=pass header.i=@com"), id="no domain"),
    ],
)
def test_whoever_is_not_proven_to_be_a_mail_system_speaks_for_nobody(raw: bytes):
    assert origin(raw).domains == frozenset()


def test_nothing_is_proven_by_a_provider_that_is_not_known():
    assert origin(head(GOOGLE), endpoint="imap:user:me@example.com").domains == frozenset()


def test_complaints_come_from_desks_and_have_an_envelope_sender():
    results = "mx.google.com; dkim=pass header.d=arf.example.org; spf=pass smtp.mailfrom=fbl@arf.example.org"
    for author, path, expected in (
        ("feedback@arf.example.org", "<fbl@arf.example.org>", {"arf.example.org"}),
        ("eve@arf.example.org", "<eve@arf.example.org>", set[str]()),
    ):
        assert origin(head(results, author, path), "complaint").domains == expected
    assert origin(head(results, "feedback@arf.example.org", "<>"), "delivery").domains == frozenset()


def test_reports_concern_mail_whose_failures_are_reported_to_the_mailbox():
    found = origin(head(GOOGLE))
    assert found.concerns(MINE, "anybody@example.org")
    assert not found.concerns(OTHER, "me@gmail.com")
    assert all(found.concerns(None, each) for each in ("me@gmail.com", "M.E@googlemail.com", "me+news@gmail.com"))
    assert not found.concerns(None, "you@gmail.com")
    assert not found.concerns(None, "")


def test_the_server_is_read_from_the_stored_reply():
    assert server_in("mx.Example.org[192.0.2.1]: 250 2.0.0 Ok") == "mx.example.org"
    assert server_in("mx.example.org[2001:db8::1]: 250 Ok") == "mx.example.org"
    assert server_in("it may have arrived: mx.example.org: lost") is None
    assert server_in(None) is None


def test_endless_results_are_not_read():
    long = f"Authentication-Results: mx.google.com; dkim=pass header.d=example.org{'; dkim=none' * 10_000}\r\n"
    assert proven_domains(long.encode(), "mx.google.com") == frozenset()
