"""An IMAP mailbox on Dovecot and Cyrus as a second client sees it; other clients beside ours; servers on a bad day.
All actions and their undos are in `test_imap_actions.py`.
"""

import contextlib
import re
from collections.abc import Callable

import pytest

from postroom.core.errors import (
    LabelMissing,
    MailboxLater,
    MailboxRefused,
    MailboxUnreachable,
    MessageGone,
    NeedsPerson,
    NotSent,
    Parked,
)
from postroom.core.mail.gate import ClearanceExpired
from postroom.core.mail.mailbox import job_error_of
from postroom.mailboxes.imap import places
from postroom.mailboxes.imap.errors import FolderForbidden, NotOffered
from postroom.mailboxes.imap.mailbox import ImapMailbox, LabelsAs
from support.gates import OpenGate
from support.imap_mailbox import OpenedMailbox, opened_mailbox
from support.imap_server import ImapServer, address_of
from support.scripted_imap import Meddler

SNOOZED = "Postroom/Snoozed"
FOLDERS = ("INBOX", "Archive", "Trash", "Spam", "Sent", "Drafts")


def mail(subject: str, message_id: str | None = None) -> bytes:
    head = f"From: ada@example.com\r\nTo: mara@example.org\r\nSubject: {subject}\r\n"
    named = f"Message-ID: <{message_id}>\r\n" if message_id else ""
    return f"{head}{named}Date: Tue, 17 Nov 2026 09:30:00 +0000\r\n\r\nHello {subject}\r\n".encode()


def view(opened: OpenedMailbox, *more: str) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """What the second client sees: in each folder, the id and the flags of each message that is not marked as deleted,
    and of each that is marked as deleted whether it is ours or not.
    """
    found: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for folder in (*FOLDERS, *more):
        there = opened.beside.flags_by_id(folder)
        found[folder] = sorted(
            each for each in there if each[0] == OTHERS.get(opened.user) or "\\Deleted" not in each[1]
        )
    return found


OTHERS: dict[str, str] = {}
"""By the user: the id of a message that somebody else has marked as deleted, which must stay."""


def put_others(opened: OpenedMailbox) -> None:
    OTHERS[opened.user] = opened.beside.put(mail("others", "others@x.example"), flags="\\Deleted")


async def test_a_copy_that_was_left_behind_comes_back_with_the_flags_of_now(dovecot: ImapServer) -> None:
    async with opened_mailbox(dovecot, "neither") as opened:
        id = opened.beside.put(mail("one"), flags="\\Flagged")
        await opened.mailbox.modify(id, remove=["INBOX"])
        await opened.mailbox.modify(id, add=["keyword:later"], remove=["STARRED", "UNREAD"])
        placed = await opened.mailbox.modify(id, add=["INBOX"])
        assert placed.labels == {"INBOX", "keyword:later"} == await opened.reader.labels_of(id)
        assert len(opened.beside.messages()) == 1


@pytest.mark.parametrize("profile", ["no_uidplus", "neither"])
async def test_without_uidplus_what_is_deleted_stays_in_the_trash_and_is_said_to(
    imap_server: ImapServer, profile: str
) -> None:
    async with opened_mailbox(imap_server, profile) as opened:
        put_others(opened)
        id = opened.beside.put(mail("one"))
        with pytest.raises(NotOffered, match="put into the trash") as refused:
            await opened.mailbox.delete(id)
        assert isinstance(refused.value, MailboxRefused)
        assert "TRASH" in await opened.reader.labels_of(id)
        seen = view(opened)
        assert [each[0] for each in seen["Trash"]] == [id]
        assert [each[0] for each in seen["INBOX"]] == [OTHERS[opened.user]]


async def test_only_the_message_is_deleted_and_all_its_copies(imap_server: ImapServer) -> None:
    async with opened_mailbox(imap_server) as opened:
        put_others(opened)
        id = opened.beside.put(mail("one", "one@x.example"))
        assert opened.beside.put(mail("one", "one@x.example"), "Archive") == id
        await opened.mailbox.delete(id)
        with pytest.raises(MessageGone):
            await opened.reader.labels_of(id)
        assert {folder: len(each) for folder, each in view(opened).items() if each} == {"INBOX": 1}


async def test_reading_marks_nothing_as_read(imap_server: ImapServer) -> None:
    async with opened_mailbox(imap_server) as opened:
        id = opened.beside.put(mail("one", "one@x.example"))
        assert await opened.reader.raw(id) == mail("one", "one@x.example")
        await opened.reader.look_at(id)
        assert await opened.reader.find("Hello") == [id]
        assert opened.beside.flags() == [set()]


async def test_a_message_keeps_its_id_when_others_move_it(imap_server: ImapServer) -> None:
    async with opened_mailbox(imap_server) as opened:
        for content in (mail("one", "one@x.example"), mail("nameless")):
            id = opened.beside.put(content)
            assert "INBOX" in await opened.reader.labels_of(id)
            opened.beside.client.select("INBOX")
            opened.beside.client.uid("MOVE", "1:*", "Archive")
            assert await opened.reader.labels_of(id) == {"UNREAD"}
            assert opened.beside.ids("Archive")[-1] == id


async def test_a_folder_that_others_delete_is_a_missing_label(imap_server: ImapServer) -> None:
    async with opened_mailbox(imap_server, labels_as="folders") as opened:
        id = opened.beside.put(mail("one"))
        label = await opened.mailbox.label_id("Receipts")
        opened.beside.client.delete("Receipts")
        with pytest.raises(LabelMissing):
            await opened.mailbox.modify(id, add=[label])
        assert await opened.reader.labels_of(id) == {"INBOX", "UNREAD"}


async def test_odd_names_are_labels(imap_server: ImapServer) -> None:
    """Cyrus allows no quotes and ampersands in the names of folders."""
    names = ["Größe/Ä 😀"] if imap_server.kind == "cyrus" else ["Größe/Ä 😀", 'A "b" & c', "a\\b"]
    modes: tuple[LabelsAs, ...] = ("keywords", "folders")
    for labels_as in modes:
        async with opened_mailbox(imap_server, labels_as=labels_as) as opened:
            id = opened.beside.put(mail("one"))
            for name in names:
                label = await opened.mailbox.label_id(name)
                placed = await opened.mailbox.modify(id, add=[label])
                assert label in placed.labels
                assert name in {each.name for each in await opened.reader.labels() if each.id == label}
                await opened.mailbox.modify(id, add=["INBOX"], remove=[label])


# bad days


class Cut(Meddler):
    """Lets a command reach the server, and ends the connection instead of passing on the answer."""

    def __init__(self, command: bytes) -> None:
        super().__init__(answers=self._answer)
        self.command = command
        self.done = False

    def _answer(self, chunk: bytes) -> bytes:
        if not self.done and self.heard and self.command in self.heard[-1]:
            self.done = True
            self.cut()
            return b""
        return chunk


@pytest.mark.parametrize(
    ("profile", "command"),
    [
        ("all", b"UID MOVE"),
        ("no_move", b"UID COPY"),
        ("no_move", b"UID STORE"),
        ("no_move", b"UID EXPUNGE"),
        ("no_uidplus", b"UID MOVE"),
        ("neither", b"UID COPY"),
        ("neither", b"UID STORE"),
    ],
)
@pytest.mark.parametrize("message_id", ["one@x.example", None], ids=["named", "nameless"])
async def test_a_move_whose_answer_is_lost_is_recognised_and_not_made_twice(
    dovecot: ImapServer, profile: str, command: bytes, message_id: str | None
) -> None:
    cut = Cut(command)
    async with (
        cut.before(dovecot.port, address_of(profile)) as port,
        opened_mailbox(dovecot, profile, port=port) as opened,
    ):
        put_others(opened)
        id = opened.beside.put(mail("one", message_id))
        with pytest.raises(MailboxUnreachable):
            await opened.mailbox.modify(id, remove=["INBOX"])
        assert cut.done
        placed = await opened.mailbox.modify(id, remove=["INBOX"])
        assert placed == (id, {"UNREAD"})
        seen = view(opened)
        assert [each[0] for each in seen["Archive"]] == [id]
        assert [each[0] for each in seen["INBOX"]] == [OTHERS[opened.user]]


async def test_a_message_that_others_move_at_that_moment_is_moved_from_there(dovecot: ImapServer) -> None:
    moved: list[bytes] = []

    def meddle(line: bytes) -> bytes:
        if b"UID MOVE" in line and not moved:
            moved.append(line)
            opened.beside.client.select("INBOX")
            opened.beside.client.uid("MOVE", "1:*", "Spam")
        return line

    meddler = Meddler(ask=meddle)
    async with meddler.before(dovecot.port) as port, opened_mailbox(dovecot, port=port) as opened:
        id = opened.beside.put(mail("one", "one@x.example"))
        placed = await opened.mailbox.trash(id)
        assert moved
        assert "TRASH" in placed.labels
        assert {folder: len(each) for folder, each in view(opened).items() if each} == {"Trash": 1}


async def test_a_folder_that_was_made_anew_is_looked_through_again(dovecot: ImapServer) -> None:
    validity = {"now": b"111"}
    meddler = Meddler(answers=lambda chunk: re.sub(rb"UIDVALIDITY \d+", b"UIDVALIDITY " + validity["now"], chunk))
    async with meddler.before(dovecot.port) as port, opened_mailbox(dovecot, port=port) as opened:
        id = opened.beside.put(mail("one", "one@x.example"))
        await opened.mailbox.modify(id, add=["STARRED"])
        validity["now"] = b"222"
        await opened.reader.labels()
        meddler.heard.clear()
        assert (await opened.mailbox.modify(id, remove=["INBOX"])).labels == {"UNREAD", "STARRED"}
        assert any(b"SEARCH" in each for each in meddler.heard)


@pytest.mark.parametrize("lie", [b"1:2", b""], ids=["others", "nothing"])
async def test_a_search_that_lies_touches_no_other_message(dovecot: ImapServer, lie: bytes) -> None:
    def answer(line: bytes) -> bytes | None:
        if b"UID SEARCH" not in line:
            return None
        tag = line.split()[0]
        found = b" ALL " + lie if lie else b""
        return b'* ESEARCH (TAG "' + tag + b'") UID' + found + b"\r\n" + tag + b" OK done\r\n"

    async with (
        Meddler(replies=answer).before(dovecot.port) as port,
        opened_mailbox(dovecot, port=port) as opened,
    ):
        others = [opened.beside.put(mail(each, f"{each}@x.example")) for each in ("a", "b", "c")]
        with pytest.raises(MessageGone):
            await opened.mailbox.trash(others[2])
        assert opened.beside.ids() == others


async def test_of_several_copies_the_snoozed_one_is_found_first(dovecot: ImapServer) -> None:
    async with opened_mailbox(dovecot, always_folders=[SNOOZED]) as opened:
        id = opened.beside.put(mail("one"))
        others = ("A", "Projects", "Postroom/A", "Zoo")
        for name in others:
            opened.beside.client.create(name)
            opened.beside.client.select("INBOX")
            opened.beside.client.uid("COPY", "1:*", name)
        label = await opened.mailbox.create_label(SNOOZED)
        await opened.mailbox.modify(id, add=[label], remove=["INBOX"])
        # As after a start: nothing is known about where it was put.
        later = ImapMailbox(opened.account, OpenGate(), always_folders=[SNOOZED])
        assert label in await later.labels_of(id)


async def test_many_messages_with_the_same_message_id_hide_no_other(
    dovecot: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "CANDIDATES", 2)
    async with opened_mailbox(dovecot) as opened:
        id = opened.beside.put(mail("real", "m1@example.com"))
        for number in range(5):
            opened.beside.put(mail(f"spoofed {number}", "m1@example.com"))
        assert "STARRED" in (await opened.mailbox.modify(id, add=["STARRED"])).labels
        assert opened.beside.flags() == [{"\\Flagged"}, *[set[str]()] * 5]


async def test_flags_that_do_not_stick_are_an_error(dovecot: ImapServer) -> None:
    def answer(line: bytes) -> bytes | None:
        return line.split()[0] + b" OK done\r\n" if b"UID STORE" in line else None

    async with Meddler(replies=answer).before(dovecot.port) as port, opened_mailbox(dovecot, port=port) as opened:
        id = opened.beside.put(mail("one"))
        with pytest.raises(FolderForbidden, match="stick"):
            await opened.mailbox.modify(id, add=["STARRED"])


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"NO [OVERQUOTA] full", NeedsPerson),
        (b"NO [LIMIT] slow", MailboxLater),
        (b"NO [NOPERM] no", MailboxRefused),
        (b"BAD what", MailboxRefused),
        (b"NO [UNAVAILABLE] later", MailboxLater),
    ],
)
async def test_a_refused_move_is_an_error_of_its_kind_and_changes_nothing(
    dovecot: ImapServer, reply: bytes, error: type[Exception]
) -> None:
    def answer(line: bytes) -> bytes | None:
        return line.split()[0] + b" " + reply + b"\r\n" if b"UID MOVE" in line else None

    async with Meddler(replies=answer).before(dovecot.port) as port, opened_mailbox(dovecot, port=port) as opened:
        id = opened.beside.put(mail("one"))
        with pytest.raises(error):
            await opened.mailbox.trash(id)
        assert await opened.reader.labels_of(id) == {"INBOX", "UNREAD"}


async def test_a_clearance_that_expires_is_asked_for_again(dovecot: ImapServer) -> None:
    class Expiring(OpenGate):
        asked = 0

        async def clear(self, *given: object) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
            self.asked += 1
            return _Expired() if self.asked == 1 else await super().clear([], {}, frozenset())

    gate = Expiring()
    async with opened_mailbox(dovecot, gate=gate) as opened:  # pyright: ignore[reportArgumentType]
        id = opened.beside.put(mail("one"))
        assert "STARRED" in (await opened.mailbox.modify(id, add=["STARRED"])).labels
    assert gate.asked == 2


async def test_a_machine_too_busy_for_its_own_gate_is_no_failure_of_the_server(dovecot: ImapServer) -> None:
    class AlwaysLate(OpenGate):
        async def clear(self, *_given: object) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
            return _Expired()

    async with opened_mailbox(dovecot, gate=AlwaysLate()) as opened:  # pyright: ignore[reportArgumentType]
        id = opened.beside.put(mail("one"))
        with pytest.raises(NotSent, match="this machine is too busy") as waits:
            await opened.mailbox.modify(id, add=["STARRED"])
        assert isinstance(job_error_of(waits.value, "star"), Parked), "no attempt is used"
        assert "STARRED" not in await opened.reader.labels_of(id)


class _Expired:
    refused: dict[int, Exception] = {}  # noqa: RUF012
    wants_labels: dict[int, str] = {}  # noqa: RUF012
    wants_names = False
    on_the_wire: Callable[[], contextlib.AbstractContextManager[None]] = staticmethod(contextlib.nullcontext)

    def check(self) -> None:
        raise ClearanceExpired
