"""Reports about our own mail that come to a connected mailbox: believed where their writer is proven, and once."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.errors import MailboxUnreachable, SwitchboardUnavailable
from postroom.core.metrics import OUTBOUND_REPORT
from postroom.core.outbound.replies import Reply
from postroom.core.submission.envelope import Recipient
from postroom.outbound.queue.dsn import Action, ReportedMail, ReportedRecipient, delivery_report
from postroom.store.accounts.accounts import account_at
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound, sender_counts, suppressions
from postroom.store.outbound.outbound import MailSender, NewMail
from postroom_sandbox.faults import Fault
from postroom_sandbox.smtp_server import Drop, SmtpServer
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER, raw_mail
from support.smtp import CONTENT, smtp_transport, zone_of
from support.smtp_sending import SmtpSending, queue_mail

ADA, BEN = "ada@example.org", "ben@example.org"
SENDER = MailSender.of_mailbox(OWNER)
MESSAGE = b"Message-ID: <one@lindqvist.example>\r\n" + CONTENT
GONE = Reply(550, "5.1.1", "User unknown", "mx.example.org", "rcpt")
PROVEN = "mx.google.com; spf=pass (google.com: designates 192.0.2.1) smtp.helo={0}; dmarc=none header.from={0}"


@pytest.fixture
async def setup(database: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        await found.connector().sync()
        yield found


async def sent(sending: SmtpSending, *, sender: MailSender = SENDER, lost: bool = False) -> UUID:
    """A mail to Ada and Ben that was sent by SMTP; if `lost`, its answer was."""
    id = await sending.put(ADA, BEN, content=MESSAGE, sender=sender)
    async with SmtpServer({".": Drop()} if lost else {}) as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.attempt(transport)
    return id


def report(action: Action, *to: str, content: bytes = MESSAGE) -> bytes:
    about = ReportedMail(new_id(), OWNER, content, datetime(2026, 11, 15).astimezone())
    told = [ReportedRecipient(each, action, GONE) for each in to]
    return delivery_report(new_id(), "mx.example.org", about, told, about.accepted_at)


def arrived(raw: bytes, host: str = "mx.example.org", results: str = PROVEN, path: str = "<>") -> bytes:
    """The message as Gmail's servers have it."""
    added = f"Return-Path: {path}\r\nAuthentication-Results: {results.format(host)}\r\n".encode()
    return added + raw.replace(b"mailer-daemon@mx.example.org", f"mailer-daemon@{host}".encode())


COMPLAINT = arrived(
    b"From: feedback@example.org\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\n"
    b"Original-Rcpt-To: ada@example.org\r\n\r\n"
    b"--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <one@lindqvist.example>\r\n\r\n--b--\r\n",
    "example.org",
    path="<feedback@example.org>",
)


UNPROVEN_LETTER = (
    b"From: Mail Delivery System <mailer-daemon@mx.example.org>\r\nX-Failed-Recipients: ada@example.org\r\n"
    b"Subject: Mail delivery failed: returning message to sender\r\n\r\n"
    b"A message that you sent could not be delivered to one or more of its\r\nrecipients. This is a permanent error. "
    b"The following address(es) failed:\r\n\r\n  ada@example.org\r\n    host mx.example.org [192.0.2.1]: 550 5.1.1 "
    b"User unknown\r\n\r\n------ This is a copy of the message, including all the headers. ------\r\n\r\n" + MESSAGE
)
LETTER = arrived(UNPROVEN_LETTER)


async def counts(setup: GmailSetup) -> tuple[int, int, int]:
    now = setup.clock()
    (found,) = await setup.services.database.run(sender_counts.scored_senders(now, 0, 9, now))
    return found.delivered, found.bounced, found.rejected


async def test_a_bounce_that_comes_to_the_mailbox_counts_once_and_is_ingested_as_mail(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    ids = {setup.mailbox.deliver(arrived(report("failed", ADA))).id for _ in range(3)}
    await setup.connector().sync()
    ada, ben = await sending.results(id)
    assert (ada.state, ada.bounce_class, ben.state) == ("bounced", "hard", "sent")
    assert (await sending.mail(id)).state == "partially_sent"
    assert await counts(setup) == (2, 1, 0)
    (found,) = await setup.services.database.run(suppressions.list_suppressions(None, 9))
    assert (found.tenant, found.address, found.cause) == ("lindqvist.example", ADA, "bounce")
    assert set(await setup.waiting()) == ids
    assert setup.services.tally.counts_of(OUTBOUND_REPORT) == {("recorded",): 1, ("ignored",): 2}
    assert setup.health.counters["reports"] == 3


async def test_a_bounce_that_is_a_letter_counts_as_a_report_does(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    for _ in range(2):
        setup.mailbox.deliver(LETTER)
    await setup.connector().sync()
    ada, ben = await sending.results(id)
    assert (ada.state, ada.bounce_class, ben.state) == ("bounced", "hard", "sent")
    assert await counts(setup) == (2, 1, 0)
    (found,) = await setup.services.database.run(suppressions.list_suppressions(None, 9))
    assert (found.address, found.cause) == (ADA, "bounce")


async def test_mail_of_a_postmaster_that_is_no_bounce_is_ignored(setup: GmailSetup):
    raw = arrived(b"From: mailer-daemon@mx.example.org\r\nSubject: Welcome\r\n\r\nHello.\r\n")
    notice = setup.mailbox.deliver(raw)
    await setup.connector().sync()
    assert set(await setup.waiting()) == {notice.id}
    assert setup.services.tally.counts_of(OUTBOUND_REPORT) == {("ignored",): 1}


async def test_mail_that_left_through_the_mailbox_is_found_by_its_mark(setup: GmailSetup):
    database, now = setup.services.database, setup.clock()
    account, id = await database.run(account_at(ENDPOINT)), new_id()
    assert account is not None
    marked = f"X-Postroom-Delivery: {id}\r\n".encode() + CONTENT
    new = NewMail(id, account.id, None, SENDER, "forward", (Recipient(ADA),), "Hello", marked)
    await database.run(queue_mail([new], now))
    (leased,) = await database.run(outbound.lease_mail(new_id(), 9, now, now + timedelta(minutes=1)))
    await database.run(outbound.deliver(leased.hold, "18f", now))
    setup.mailbox.deliver(arrived(report("failed", ADA, content=marked), "googlemail.com"))
    await setup.connector().sync()
    assert (await database.run(outbound.load_mail(id))).state == "bounced"


async def test_a_report_says_what_became_of_mail_of_unknown_fate(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending, lost=True)
    setup.mailbox.deliver(arrived(report("relayed", ADA)))
    setup.mailbox.deliver(arrived(report("failed", BEN)))
    await setup.connector().sync()
    assert await sending.states(id) == ["sent", "bounced"]


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(report("failed", ADA), id="nothing proven"),
        pytest.param(arrived(report("failed", ADA), "evil.example"), id="proven to be a stranger"),
        pytest.param(
            arrived(report("failed", ADA), results="mx.google.com; spf=fail smtp.helo={0}"), id="proven false"
        ),
        pytest.param(arrived(report("failed", ADA), path="<ben@example.org>"), id="with an envelope sender"),
        pytest.param(
            arrived(report("failed", ADA)).replace(b"mailer-daemon@", b"ben@"), id="by a user of the same domain"
        ),
        pytest.param(arrived(report("failed", "eve@example.org")), id="about somebody else"),
        pytest.param(
            arrived(report("failed", ADA, content=MESSAGE.replace(b"one@", b"two@"))), id="about another mail"
        ),
        pytest.param(arrived(report("relayed", ADA)), id="that it has arrived"),
        pytest.param(arrived(report("delayed", ADA)), id="that it is late"),
        pytest.param(COMPLAINT.replace(b"From: feedback@", b"From: ben@"), id="a complaint by a user"),
        pytest.param(COMPLAINT.replace(b"ada@example.org", b"eve@example.org"), id="a complaint of somebody else"),
        pytest.param(arrived(report("failed", ADA))[:600], id="cut off"),
        pytest.param(UNPROVEN_LETTER, id="a letter, nothing proven"),
        pytest.param(arrived(UNPROVEN_LETTER, "evil.example"), id="a letter of a stranger"),
        pytest.param(LETTER.replace(b"mailer-daemon@", b"ben@"), id="a letter by a user of the domain"),
        pytest.param(arrived(UNPROVEN_LETTER, path="<ben@example.org>"), id="a letter with an envelope sender"),
        pytest.param(LETTER.replace(b"<one@", b"<two@"), id="a letter about another mail"),
        pytest.param(LETTER.replace(b"ada@", b"eve@"), id="a letter about somebody else"),
    ],
)
async def test_a_forged_report_changes_nothing(setup: GmailSetup, forged: bytes):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    message = setup.mailbox.deliver(forged)
    await setup.connector().sync()
    assert await sending.states(id) == ["sent", "sent"]
    assert await counts(setup) == (2, 0, 0)
    assert await setup.services.database.run(suppressions.list_suppressions(None, 9)) == []
    assert set(await setup.waiting()) == {message.id}


async def test_reports_in_spam_are_not_looked_at(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    setup.mailbox.deliver(arrived(report("failed", ADA)), labels={"SPAM"})
    await setup.connector().sync()
    assert await sending.states(id) == ["sent", "sent"]


async def test_a_report_counts_only_for_mail_whose_failures_come_to_this_mailbox(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending, sender=MailSender.of_mailbox("grace@lindqvist.example"))
    setup.mailbox.deliver(arrived(report("failed", ADA)))
    await setup.connector().sync()
    assert await sending.states(id) == ["sent", "sent"]


async def test_a_complaint_counts_once_however_often_it_comes(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    await sent(sending)
    for _ in range(3):
        setup.mailbox.deliver(COMPLAINT)
    await setup.connector().sync()
    assert await counts(setup) == (2, 0, 1)
    (found,) = await setup.services.database.run(suppressions.list_suppressions(None, 9))
    assert (found.address, found.cause) == (ADA, "complaint")


async def test_a_report_is_passed_on_again_if_the_switchboard_was_away(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    message = setup.mailbox.deliver(arrived(report("failed", ADA)))

    async def away(_raw: bytes) -> None:
        raise SwitchboardUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(setup.board, "report", away)
        with pytest.raises(SwitchboardUnavailable):
            await setup.connector().sync()
    assert (await setup.waiting(), await sending.states(id)) == ({}, ["sent", "sent"])
    await setup.connector().sync()
    assert (set(await setup.waiting()), await sending.states(id)) == ({message.id}, ["bounced", "sent"])


async def test_a_report_is_read_again_if_the_mailbox_did_not_return_its_bytes(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    other = setup.mailbox.deliver(raw_mail("Lunch")).id
    message = setup.mailbox.deliver(arrived(report("failed", ADA))).id
    # The messages are read in a batch; only the bytes of the report are asked for by its own path.
    setup.emulator.faults.order(Fault(kind="reset", path=message, times=50))
    connector = setup.connector()
    with pytest.raises(MailboxUnreachable):
        await connector.sync()
    assert (set(await setup.waiting()), await sending.states(id)) == ({other}, ["sent", "sent"])
    setup.emulator.faults.clear()
    await connector.sync()
    assert (set(await setup.waiting()), await sending.states(id)) == ({other, message}, ["bounced", "sent"])


async def test_a_long_report_is_understood_by_its_beginning(setup: GmailSetup):
    sending = SmtpSending(setup.services.database, setup.clock)
    id = await sent(sending)
    raw = arrived(report("failed", ADA)).rpartition(b"--report-")[0] + b"x" * 70 + b"\r\n" + b"y" * 2_000_000
    setup.mailbox.deliver(raw)
    await setup.connector().sync()
    assert await sending.states(id) == ["bounced", "sent"]
