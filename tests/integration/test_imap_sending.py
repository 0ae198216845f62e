"""Mail leaves an IMAP mailbox: a real Dovecot, a submission server that follows a script, and a second client that sees
what is in the folders.
"""

import asyncio
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from typing import Any
from uuid import uuid4

import pytest

from postroom.core.errors import BadInput, MailboxError, MailboxLater, NeedsPerson, RequestRefused, SafetyRefused
from postroom.mailboxes.imap.answers import Fetched
from postroom.mailboxes.imap.errors import Busy, ImapSignInRefused, NotOffered, NotSecure, ServerFailed, Unreachable
from postroom.mailboxes.imap.sending import LOOKS
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.submission import MailNotTaken, NoReply, Submission
from postroom.mailboxes.imap.wire import Endpoint, Security
from postroom_sandbox.smtp_server import EXTENSIONS, Answer, Drop, Silence
from support.gates import OpenGate
from support.imap_mailbox import OpenedMailbox
from support.imap_sending import (
    OWNER,
    SendingMailbox,
    letter,
    sending_mailbox,
    submission_server,
    submission_to,
)
from support.imap_server import ImapServer
from support.scripted_imap import Meddler

_EVER = datetime(2020, 1, 1, tzinfo=UTC)


def folder(opened: OpenedMailbox, name: str) -> list[Fetched]:
    """The messages that a mail program shows: without those marked as deleted."""
    return [each for each in opened.beside.messages(name) if "\\Deleted" not in each.flags]


async def counts(opened: OpenedMailbox) -> tuple[int, int]:
    """How many drafts there are, and how many sent mails."""
    return len(await asyncio.to_thread(folder, opened, "Drafts")), len(await asyncio.to_thread(folder, opened, "Sent"))


class Heard(dict[str, Answer]):
    """Answers that tell when the one to a command was asked for."""

    def __init__(self, command: str, answer: Answer) -> None:
        super().__init__({command: answer})
        self.asked = asyncio.Event()

    def __getitem__(self, key: str) -> Answer:
        self.asked.set()
        return super().__getitem__(key)


async def drafted(made: SendingMailbox, **headers: str) -> str:
    return (await made.carrier.create_draft(letter(uuid4(), **headers), None)).id


# what arrives


async def test_what_is_sent_is_what_is_filed_read_and_with_a_message_id(dovecot: ImapServer) -> None:
    async with sending_mailbox(dovecot) as made:
        mark = uuid4()
        content = letter(mark, to="ada@example.com, ben@example.com", Cc="Cleo@example.com", text=".\n..dots\n")
        draft = await made.carrier.create_draft(content, None)
        sent = await made.carrier.send_draft(draft.id)
        assert sent is not None
        filed = await made.opened.reader.raw(sent)
        flags = await asyncio.to_thread(made.opened.beside.flags, "Sent")
        assert await counts(made.opened) == (0, 1)
    [mail] = made.smtp.received
    assert (mail.sender, mail.recipients) == (OWNER, ("ada@example.com", "ben@example.com", "Cleo@example.com"))
    assert (mail.encrypted, mail.username) == (True, "mara")
    assert mail.content == filed == f"Message-ID: <{mark}@lindqvist.example>\r\n".encode() + content
    assert message_from_bytes(filed)["Message-ID"] == draft.message_id
    assert flags == [{"\\Seen"}]


@pytest.mark.parametrize("profile", ["no_uidplus", "bare"])
async def test_without_extensions_the_draft_is_marked_as_deleted(dovecot: ImapServer, profile: str) -> None:
    async with sending_mailbox(dovecot, profile) as made:
        for count in (1, 2):
            assert await made.carrier.send_draft(await drafted(made)) is not None
            assert await counts(made.opened) == (0, count)
    assert len(made.smtp.received) == 2


# the connection


@pytest.mark.parametrize("kind", ["password", "xoauth2", "oauthbearer"])
@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_every_sign_in_comes_after_tls(kind: Any, security: Security) -> None:
    async with submission_server(implicit=security == "tls") as smtp:
        submission = submission_to(smtp.port, security, credentials=Credentials("m=ra,x", "sésame", kind))
        await submitted(submission)
    [mail] = smtp.received
    assert mail.encrypted
    words = [each.split(" ")[0] for each in smtp.commands]
    assert "AUTH" not in words[: words.index("STARTTLS")] if security == "starttls" else "AUTH" in words


async def _nothing() -> None: ...


async def submitted(submission: Submission) -> None:
    goodbye = await submission.submit(letter(uuid4()), _nothing)
    await goodbye()


async def test_auth_login_is_used_where_plain_is_not_offered() -> None:
    async with submission_server(extensions=("AUTH LOGIN",)) as smtp:
        await submitted(submission_to(smtp.port))
    assert smtp.received[0].username == "mara"


async def test_a_server_without_starttls_gets_neither_password_nor_mail() -> None:
    async with submission_server() as smtp:
        smtp.tls = None
        with pytest.raises(NotSecure, match="no encryption"):
            await submitted(submission_to(smtp.port))
    assert [each.split(" ")[0] for each in smtp.commands] == ["EHLO"]


async def test_a_certificate_of_somebody_else_gets_nothing() -> None:
    async with submission_server(implicit=True) as smtp:
        submission = submission_to(smtp.port, "tls")
        object.__setattr__(submission, "context", ssl.create_default_context())
        with pytest.raises(NotSecure, match=r"self-signed|unable to get local issuer"):
            await submitted(submission)
    assert smtp.commands == []


async def test_plain_is_for_this_machine_only() -> None:
    async with submission_server() as smtp:
        smtp.tls = None
        await submitted(submission_to(smtp.port, "plain"))
    assert smtp.received[0].username == "mara"
    with pytest.raises(BadInput, match="plain is not allowed"):
        Endpoint("mail.example.org", 587, "plain")


# refusals

CASES: list[tuple[str, Answer, type[Exception], str]] = [
    ("AUTH", "535 5.7.8 Error: secret-words", ImapSignInRefused, r"535 5.7.8.*app password"),
    ("AUTH", "454 4.7.0 Temporary", ServerFailed, "454 4.7.0"),
    ("connect", "421 4.3.2 busy", ServerFailed, "421 4.3.2"),
    ("connect", Drop(), Unreachable, "it may work later"),
    ("MAIL", "550 5.7.60 secret-words", MailNotTaken, "does not let this account send under its address.*550 5.7.60"),
    ("MAIL", "552 5.3.4 secret-words", MailNotTaken, "too large"),
    ("MAIL", "530 5.7.0 secret-words", ImapSignInRefused, "530 5.7.0"),
    ("RCPT", "550 5.1.1 secret-words", MailNotTaken, "a recipient .550 5.1.1"),
    ("RCPT", "451 4.3.0 secret-words", ServerFailed, "451 4.3.0"),
    ("DATA", "451 4.7.1 too many mails", Busy, "451 4.7.1"),
    (".", "554 5.6.0 secret-words", MailNotTaken, "the mail .554 5.6.0"),
    (".", "452 4.3.1 secret-words", ServerFailed, "452 4.3.1"),
]


@pytest.mark.parametrize(("command", "answer", "error", "says"), CASES, ids=[f"{c[0]} {c[1]}"[:20] for c in CASES])
async def test_a_refusal_says_why(command: str, answer: Answer, error: type[Exception], says: str) -> None:
    async with submission_server({command: answer}) as smtp:
        with pytest.raises(error, match=says) as raised:
            await submitted(submission_to(smtp.port))
    assert "secret" not in str(raised.value)
    assert smtp.received == []
    # For good, or for now: the sender of the product tells by these.
    assert isinstance(raised.value, RequestRefused if error is MailNotTaken else MailboxLater | NeedsPerson)


@pytest.mark.parametrize(
    ("command", "answer"), [("MAIL", "550 5.7.60 no"), (".", "554 5.6.0 no"), (".", "452 4.3.1 no")]
)
async def test_after_a_refusal_the_draft_is_a_draft_again(dovecot: ImapServer, command: str, answer: str) -> None:
    async with sending_mailbox(dovecot, answers={command: answer}) as made:
        draft = await drafted(made)
        with pytest.raises(MailboxError):
            await made.carrier.send_draft(draft)
        assert await made.carrier.has_draft(draft)
        assert await counts(made.opened) == (1, 0)
        made.smtp.answers = {}
        assert await made.carrier.send_draft(draft) is not None
        assert await counts(made.opened) == (0, 1)
    assert len(made.smtp.received) == 1


async def test_a_mail_too_large_for_the_server_is_not_even_begun(dovecot: ImapServer) -> None:
    async with sending_mailbox(dovecot) as made:
        made.smtp.extensions = ("AUTH PLAIN", "SIZE 100")
        with pytest.raises(MailNotTaken, match="too large"):
            await made.carrier.send_draft(await drafted(made))
    assert not any(each.startswith("MAIL") for each in made.smtp.commands)


async def test_if_one_recipient_is_refused_nobody_gets_it(dovecot: ImapServer) -> None:
    async with sending_mailbox(dovecot, answers={"RCPT TO:<ben@": "550 5.1.1 no"}) as made:
        draft = await drafted(made, Cc="ben@example.com")
        with pytest.raises(MailNotTaken, match="a recipient"):
            await made.carrier.send_draft(draft)
        assert await made.carrier.has_draft(draft)
    assert made.smtp.received == []


async def test_a_server_without_a_sign_in_of_this_kind() -> None:
    async with submission_server(extensions=EXTENSIONS) as smtp:
        with pytest.raises(NotOffered, match="cannot be signed in to"):
            await submitted(submission_to(smtp.port))
    assert smtp.received == []


class RefusesOnce(OpenGate):
    """Refuses the request of this number."""

    def __init__(self, number: int) -> None:
        self.left = number

    async def clear(self, permits: Any, labels: Any, listed: Any) -> Any:
        cleared = await super().clear(permits, labels, listed)
        self.left -= 1
        return replace(cleared, refused={0: SafetyRefused("paused")}) if self.left == 0 else cleared


async def test_the_gate_is_asked_about_the_content_too_after_the_draft_was_marked(dovecot: ImapServer) -> None:
    # The draft is made, and marked; then its content would leave.
    async with sending_mailbox(dovecot, gate=RefusesOnce(3)) as made:
        draft = await drafted(made)
        with pytest.raises(SafetyRefused, match="paused"):
            await made.carrier.send_draft(draft)
        assert await made.carrier.has_draft(draft)
    assert made.smtp.received == []


# doubt


@pytest.mark.parametrize("files_copies", [False, True], ids=["no copy", "the server files a copy"])
async def test_mail_without_a_reply_is_not_sent_again_and_is_found_only_by_its_copy(
    dovecot: ImapServer, files_copies: bool
) -> None:
    async with sending_mailbox(dovecot, answers={".": Drop()}, files_copies=files_copies) as made:
        mark = uuid4()
        draft = await made.carrier.create_draft(letter(mark), None)
        with pytest.raises(NoReply):
            await made.carrier.send_draft(draft.id)
        if files_copies:
            await asyncio.to_thread(made.opened.beside.put, letter(mark), "Sent")
        made.smtp.answers = {}
        assert not await made.carrier.has_draft(draft.id)
        assert await made.carrier.drafts_of(mark) == []
        assert await made.carrier.send_draft(draft.id) is None
        found = await made.carrier.find_sent(mark, (), _EVER)
        assert (found is not None) == files_copies
        assert await counts(made.opened) == ((0, 1) if files_copies else (1, 0))
        if not files_copies:
            # A person has looked, and says that it was not sent.
            again = await made.carrier.create_draft(letter(mark), None)
            assert await counts(made.opened) == (1, 0)
            assert await made.carrier.send_draft(again.id) is not None
            assert await counts(made.opened) == (0, 1)
    assert len(made.smtp.received) == (0 if files_copies else 1)


async def test_a_server_that_files_copies_is_given_time_and_no_second_copy(dovecot: ImapServer) -> None:
    waits: list[float] = []

    async def files_late(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            await asyncio.to_thread(made.opened.beside.put, made.smtp.received[0].content, "Sent")

    async with sending_mailbox(dovecot, files_copies=True, sleep=files_late) as made:
        assert await made.carrier.send_draft(await drafted(made)) is not None
        assert await counts(made.opened) == (0, 1)
        assert waits == list(LOOKS[:2])
        # One that files nothing after all gets ours.
        await made.carrier.send_draft(await drafted(made))
        assert await counts(made.opened) == (0, 2)


async def test_a_copy_that_cannot_be_filed_changes_nothing_and_is_filed_with_the_next_mail(dovecot: ImapServer) -> None:
    async with sending_mailbox(dovecot) as made:
        await made.carrier.send_draft(await drafted(made))
        incoming, mark = dovecot.folder / "mail" / made.opened.user / "Sent" / "tmp", uuid4()
        incoming.chmod(0o500)
        draft = await made.carrier.create_draft(letter(mark), None)
        assert await made.carrier.send_draft(draft.id) == draft.message_id
        assert not await made.carrier.has_draft(draft.id)
        assert (await made.carrier.newest_sent())[0].delivery_id == mark
        incoming.chmod(0o700)
        await made.carrier.send_draft(await drafted(made))
        assert await counts(made.opened) == (0, 3)
    assert len(made.smtp.received) == 3


async def test_a_connection_that_is_lost_before_the_mail_is_marked_as_taken_is_opened_again(
    dovecot: ImapServer,
) -> None:
    cuts: list[bytes] = []

    def cut(line: bytes) -> bytes | None:
        if b"+FLAGS (\\Flagged)" not in line or cuts:
            return line
        cuts.append(line)
        meddler.cut()
        return None

    meddler = Meddler(ask=cut)
    async with meddler.before(dovecot.port) as port, sending_mailbox(dovecot, port=port) as made:
        assert await made.carrier.send_draft(await drafted(made)) is not None
        assert cuts
        assert await counts(made.opened) == (0, 1)
    assert len(made.smtp.received) == 1


async def test_mail_that_was_sent_is_found_wherever_its_owner_has_put_it(dovecot: ImapServer) -> None:
    async with sending_mailbox(dovecot) as made:
        mark = uuid4()
        sent = await made.carrier.send_draft((await made.carrier.create_draft(letter(mark), None)).id)
        assert sent is not None
        await made.opened.mailbox.trash(sent)
        assert await made.carrier.find_sent(mark, (), _EVER) == sent
        assert [each.delivery_id for each in await made.carrier.sent_since(_EVER)] == [mark]


async def test_a_process_that_stops_waits_for_the_reply_to_what_has_left(dovecot: ImapServer) -> None:
    answers = Heard(".", "250 2.0.0 Ok")
    async with sending_mailbox(dovecot, answers=answers) as made:
        draft = await made.carrier.create_draft(letter(mark := uuid4()), None)
        sending = asyncio.create_task(made.carrier.send_draft(draft.id))
        await answers.asked.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert [each.delivery_id for each in await made.carrier.newest_sent()] == [mark]
        assert await counts(made.opened) == (0, 1)


async def test_mail_that_was_taken_is_so_however_the_server_says_goodbye(dovecot: ImapServer) -> None:
    answers = Heard("QUIT", Silence())
    async with sending_mailbox(dovecot, answers=answers) as made:
        carrier = made.carrier_by(submission_to(made.smtp.port), grace_s=0.01)
        draft = await carrier.create_draft(letter(mark := uuid4()), None)
        sending = asyncio.create_task(carrier.send_draft(draft.id))
        await answers.asked.wait()
        assert await counts(made.opened) == (0, 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert not await carrier.has_draft(draft.id)
        assert [each.delivery_id for each in await carrier.newest_sent()] == [mark]
    assert len(made.smtp.received) == 1


async def test_a_process_that_stops_in_vain_for_a_reply_leaves_it_in_doubt(dovecot: ImapServer) -> None:
    answers = Heard(".", Silence())
    async with sending_mailbox(dovecot, answers=answers) as made:
        carrier = made.carrier_by(submission_to(made.smtp.port), grace_s=0.01)
        draft = await carrier.create_draft(letter(mark := uuid4()), None)
        sending = asyncio.create_task(carrier.send_draft(draft.id))
        await answers.asked.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert not await carrier.has_draft(draft.id)
        assert await carrier.find_sent(mark, (), _EVER) is None


@pytest.mark.parametrize("command", ["MAIL", "DATA"])
async def test_a_process_that_stops_before_anything_has_left_keeps_the_draft(dovecot: ImapServer, command: str) -> None:
    answers = Heard(command, Silence())
    async with sending_mailbox(dovecot, answers=answers) as made:
        draft = await drafted(made)
        sending = asyncio.create_task(made.carrier.send_draft(draft))
        await answers.asked.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert await made.carrier.has_draft(draft)
    assert made.smtp.received == []
