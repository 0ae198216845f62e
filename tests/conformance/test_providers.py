"""What every provider's mailbox does: Gmail's over HTTP against the emulator, IMAP's on Dovecot and Cyrus, with labels
as keywords and as folders, and one in memory that keeps folders.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from random import Random
from typing import Protocol
from uuid import uuid4

import httpx2
import pytest

from postroom.core.actions.label_changes import PLACES
from postroom.core.errors import Fatal, LabelMissing, MailboxRefused, MessageGone, NotInMailbox, SafetyRefused
from postroom.core.mail.carrier import MARK, SOURCE, Carrier, SentMailbox
from postroom.core.mail.mailbox import Mailbox, job_error_of
from postroom.mailboxes.gmail.carrier import GmailCarrier
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.mailboxes.imap.mailbox import LabelsAs
from postroom.mailboxes.imap.sending import ImapCarrier
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox as Gmail
from postroom_sandbox.server import running_emulator
from support.folder_mailbox import FolderCarrier, FolderMailbox, Folders
from support.gates import BY_HAND, ProtectingGate
from support.gmail_imap import GmailOverImap, opened_gmail
from support.imap_mailbox import opened_mailbox
from support.imap_sending import at_once, sending_mailbox, submission_server, submission_to
from support.imap_server import ImapServer
from support.patience import PATIENCE_S

OWNER, AUTHOR = "mara@lindqvist.example", "ada@example.com"
TOKEN = "token-of-the-sandbox"
ARRIVED = frozenset({"INBOX", "UNREAD"})


class Outbound(Carrier, SentMailbox, Protocol):
    """Both halves of the way out."""


@dataclass
class Provider:
    """One mailbox: for changes, for reading only, the way out of it, its gate, and how mail comes into it."""

    mailbox: Mailbox
    reader: Mailbox
    gate: ProtectingGate
    deliver: Callable[[bytes], str]


@dataclass
class SendingProvider(Provider):
    outbound: Outbound


@asynccontextmanager
async def at_gmail() -> AsyncGenerator[SendingProvider]:
    async def token() -> str:
        return TOKEN

    gmail, gate = Gmail(OWNER, Random(1)), ProtectingGate()
    async with running_emulator(Emulator(gmail, TOKEN)) as url, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        client = GmailClient(http, url, token, gate=gate)
        reader = GmailMailbox(client)
        outbound = GmailCarrier(client.under(BY_HAND))
        yield SendingProvider(
            reader.under(BY_HAND), reader, gate, lambda mail: gmail.deliver(mail, ARRIVED).id, outbound
        )


@asynccontextmanager
async def in_folders() -> AsyncGenerator[SendingProvider]:
    folders, gate = Folders(), ProtectingGate()
    reader = FolderMailbox(folders, gate)
    yield SendingProvider(reader.under(BY_HAND), reader, gate, folders.put, FolderCarrier(folders, gate, BY_HAND))


@asynccontextmanager
async def on_imap(server: ImapServer, profile: str, labels_as: LabelsAs) -> AsyncGenerator[Provider]:
    gate = ProtectingGate()
    async with opened_mailbox(server, profile, labels_as, gate) as opened:
        yield Provider(opened.mailbox, opened.reader, gate, opened.beside.put)


@asynccontextmanager
async def at_gmail_over_imap() -> AsyncGenerator[Provider]:
    gmail, gate = GmailOverImap(), ProtectingGate()
    async with gmail.serving() as port, opened_gmail(port, gate) as reader:
        yield Provider(reader.under(BY_HAND), reader, gate, gmail.deliver)


SENDING: dict[str, Callable[[], AbstractAsyncContextManager[SendingProvider]]] = {
    "gmail": at_gmail,
    "folders": in_folders,
}
ON_IMAP: dict[str, tuple[str, str, LabelsAs]] = {
    "dovecot": ("dovecot", "all", "keywords"),
    "dovecot without MOVE": ("dovecot", "no_move", "folders"),
    "cyrus": ("cyrus", "all", "folders"),
}


@pytest.fixture(params=[*SENDING, *ON_IMAP, "gmail over IMAP"])
async def provider(request: pytest.FixtureRequest) -> AsyncGenerator[Provider]:
    opened: AbstractAsyncContextManager[Provider]
    if request.param in SENDING:
        opened = SENDING[request.param]()
    elif request.param == "gmail over IMAP":
        opened = at_gmail_over_imap()
    else:
        server, profile, labels_as = ON_IMAP[request.param]
        opened = on_imap(request.getfixturevalue(server), profile, labels_as)
    async with opened as made:
        yield made


@asynccontextmanager
async def sending_on_imap(server: ImapServer, profile: str) -> AsyncGenerator[SendingProvider]:
    gate = ProtectingGate()
    async with sending_mailbox(server, profile, gate=gate, address=AUTHOR) as made:
        opened = made.opened
        yield SendingProvider(opened.mailbox, opened.reader, gate, opened.beside.put, made.carrier)


@asynccontextmanager
async def sending_at_gmail_over_imap() -> AsyncGenerator[SendingProvider]:
    gmail, gate = GmailOverImap(), ProtectingGate()
    async with gmail.serving() as port, opened_gmail(port, gate) as reader, submission_server() as smtp:
        mailbox = reader.under(BY_HAND)
        carrier = ImapCarrier(mailbox, submission_to(smtp.port), AUTHOR, at_once)
        yield SendingProvider(mailbox, reader, gate, gmail.deliver, carrier)


@pytest.fixture(params=[*SENDING, *ON_IMAP, "gmail over IMAP"])
async def sending(request: pytest.FixtureRequest) -> AsyncGenerator[SendingProvider]:
    if request.param in SENDING:
        opened = SENDING[request.param]()
    elif request.param == "gmail over IMAP":
        opened = sending_at_gmail_over_imap()
    else:
        server, profile, _ = ON_IMAP[request.param]
        opened = sending_on_imap(request.getfixturevalue(server), profile)
    async with opened as made:
        yield made


def mail(subject: str = "The harvest", **headers: str) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = AUTHOR, OWNER, subject
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content("It is in.")
    return message.as_bytes()


async def test_new_mail_is_unread_in_the_inbox(provider: Provider) -> None:
    id = provider.deliver(mail())
    assert await provider.reader.labels_of(id) == ARRIVED
    assert (await provider.reader.look_at(id)).labels == ARRIVED


async def test_the_raw_message_is_what_came(provider: Provider) -> None:
    content = mail("The harvest")
    found = await provider.reader.raw(provider.deliver(content))
    assert found.replace(b"\r\n", b"\n") == content.replace(b"\r\n", b"\n")


async def test_a_change_tells_where_the_message_is_and_what_labels_it_has(provider: Provider) -> None:
    placed = await provider.mailbox.modify(provider.deliver(mail()), remove=["INBOX"])
    assert placed.labels == {"UNREAD"}
    placed = await provider.mailbox.modify(placed.provider_message_id, add=["STARRED"], remove=["UNREAD"])
    assert placed.labels == {"STARRED"}
    placed = await provider.mailbox.modify(placed.provider_message_id, add=["INBOX"])
    assert placed.labels == {"INBOX", "STARRED"} == await provider.reader.labels_of(placed.provider_message_id)


async def test_a_change_of_nothing_tells_the_same(provider: Provider) -> None:
    id = provider.deliver(mail())
    assert await provider.mailbox.modify(id) == (id, ARRIVED)


async def test_a_changed_message_is_the_same_message(provider: Provider) -> None:
    placed = await provider.mailbox.trash(provider.deliver(mail("The one")))
    assert b"The one" in await provider.reader.raw(placed.provider_message_id)


async def test_what_comes_out_of_the_trash_is_in_no_place(provider: Provider) -> None:
    placed = await provider.mailbox.trash(provider.deliver(mail()))
    assert placed.labels & PLACES == {"TRASH"}
    placed = await provider.mailbox.untrash(placed.provider_message_id)
    assert not placed.labels & PLACES


async def test_a_label_is_found_by_its_name_and_created_once(provider: Provider) -> None:
    made = await provider.mailbox.label_id("Receipts")
    assert await provider.mailbox.label_id("receipts") == made == await provider.mailbox.create_label("Receipts")
    (found,) = [each for each in await provider.reader.labels() if not each.is_system]
    assert (found.id, found.name) == (made, "Receipts")


async def test_a_label_that_is_not_there_is_missing(provider: Provider) -> None:
    assert any(each.is_system for each in await provider.reader.labels())
    with pytest.raises(LabelMissing, match="Receipts"):
        await provider.reader.label_id("Receipts", create=False)


async def test_messages_are_found_under_a_label(provider: Provider) -> None:
    label = await provider.mailbox.label_id("Receipts")
    others = provider.deliver(mail("Another"))
    placed = await provider.mailbox.modify(provider.deliver(mail()), add=[label], remove=["INBOX"])
    assert label in placed.labels
    assert await provider.reader.find(label_ids=[label]) == [placed.provider_message_id]
    assert await provider.reader.find(label_ids=["INBOX"]) == [others]


async def test_messages_are_found_by_a_word_newest_first(provider: Provider) -> None:
    first, _, last = (provider.deliver(mail(each)) for each in ("A harvest", "Another matter", "The last harvest"))
    assert await provider.reader.find("harvest") == [last, first]
    assert await provider.reader.find("harvest", ["STARRED"]) == []


async def test_the_mailbox_remembers_who_came_back_to_the_inbox(provider: Provider) -> None:
    hidden = (await provider.mailbox.modify(provider.deliver(mail()), remove=["INBOX"])).provider_message_id
    before = (await provider.reader.look_at(hidden)).history_id
    assert not await provider.reader.entered_inbox_since(hidden, before)
    back = (await provider.mailbox.modify(hidden, add=["INBOX"])).provider_message_id
    assert await provider.reader.entered_inbox_since(back, before)
    assert not await provider.reader.entered_inbox_since(back, (await provider.reader.look_at(back)).history_id)


USES: dict[str, Callable[[Mailbox, str], Awaitable[object]]] = {
    "labels_of": lambda mailbox, id: mailbox.labels_of(id),
    "look_at": lambda mailbox, id: mailbox.look_at(id),
    "raw": lambda mailbox, id: mailbox.raw(id),
    "modify": lambda mailbox, id: mailbox.modify(id, add=["STARRED"]),
    "trash": lambda mailbox, id: mailbox.trash(id),
    "untrash": lambda mailbox, id: mailbox.untrash(id),
    "delete": lambda mailbox, id: mailbox.delete(id),
}


@pytest.mark.parametrize("use", USES)
async def test_what_is_deleted_is_gone_for_every_use_and_ends_the_job(provider: Provider, use: str) -> None:
    id = provider.deliver(mail())
    await provider.mailbox.delete(id)
    with pytest.raises(MessageGone) as gone:
        await USES[use](provider.mailbox, id)
    assert isinstance(gone.value, NotInMailbox)
    assert isinstance(job_error_of(gone.value, use), Fatal)


@pytest.mark.parametrize("use", ["modify", "trash", "untrash", "delete"])
async def test_nothing_is_changed_without_a_permit(provider: Provider, use: str) -> None:
    id = provider.deliver(mail())
    with pytest.raises(MailboxRefused, match="without a permit"):
        await USES[use](provider.reader, id)
    assert await provider.reader.labels_of(id) == ARRIVED


@pytest.mark.parametrize("use", ["modify", "trash", "untrash", "delete", "create_label"])
async def test_nothing_is_changed_that_the_gate_refuses(provider: Provider, use: str) -> None:
    id = provider.deliver(mail())
    labels = await provider.reader.labels()
    provider.gate.closed = SafetyRefused("paused")
    with pytest.raises(SafetyRefused, match="paused"):
        await (provider.mailbox.create_label("Receipts") if use == "create_label" else USES[use](provider.mailbox, id))
    assert await provider.reader.labels_of(id) == ARRIVED
    assert await provider.reader.labels() == labels


async def test_the_gate_judges_by_the_labels_that_the_message_has_now(provider: Provider) -> None:
    id = provider.deliver(mail())
    id = (await provider.mailbox.modify(id, add=["STARRED"])).provider_message_id
    provider.gate.protects = (id, "STARRED")
    with pytest.raises(SafetyRefused, match="protected"):
        await provider.mailbox.trash(id)
    provider.gate.protects = (id, "SPAM")
    assert "TRASH" in (await provider.mailbox.trash(id)).labels


async def test_a_name_that_the_mailbox_does_not_tell_is_empty(provider: Provider) -> None:
    assert await provider.reader.display_name("somebody@else.example") == ""


# the way out


async def test_a_draft_is_sent_once_and_found_by_its_mark(sending: SendingProvider) -> None:
    outbound, mark, began = sending.outbound, uuid4(), datetime.now(UTC) - timedelta(minutes=5)
    draft = await outbound.create_draft(mail(**{MARK: str(mark), SOURCE: "here-1"}), None)
    assert await outbound.has_draft(draft.id)
    assert [each.id for each in await outbound.drafts_of(mark)] == [draft.id]
    assert [(each.id, each.delivery_id) for each in await outbound.marked_drafts()] == [(draft.id, mark)]
    assert await outbound.find_sent(mark, (), began) is None

    sent = await outbound.send_draft(draft.id)
    assert sent is not None
    assert await outbound.send_draft(draft.id) is None
    assert not await outbound.has_draft(draft.id)
    assert await outbound.marked_drafts() == []
    assert await outbound.find_sent(mark, (), began) == sent
    for listed in (await outbound.newest_sent(), await outbound.sent_since(began)):
        assert [(each.id, each.delivery_id, each.source_key) for each in listed] == [(sent, mark, "here-1")]
    assert await outbound.find_sent(uuid4(), (), began) is None


async def test_nothing_leaves_that_the_gate_refuses(sending: SendingProvider) -> None:
    content = mail(**{MARK: str(uuid4())})
    draft = await sending.outbound.create_draft(content, None)
    sending.gate.closed = SafetyRefused("paused")
    for refused in (
        sending.outbound.create_draft(content, None),
        sending.outbound.send_draft(draft.id),
        sending.outbound.delete_draft(draft.id),
    ):
        with pytest.raises(SafetyRefused, match="paused"):
            await refused
    assert [each.id for each in await sending.outbound.marked_drafts()] == [draft.id]
    assert await sending.outbound.newest_sent() == []


async def test_a_draft_that_is_gone_is_as_good_as_deleted(sending: SendingProvider) -> None:
    draft = await sending.outbound.create_draft(mail(**{MARK: str(uuid4())}), None)
    for _ in range(2):
        await sending.outbound.delete_draft(draft.id)
    assert not await sending.outbound.has_draft(draft.id)
