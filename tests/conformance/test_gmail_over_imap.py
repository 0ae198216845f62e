"""Gmail over IMAP, against an emulator of its extensions: labels are Gmail's, actions and their undo leave all else as
it was, and one message in many folders is one message.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from postroom.core.actions.action import ActionType, label_change
from postroom.core.actions.label_changes import joint_change
from postroom.core.actions.undo import inverse_change, undo_hint
from postroom.core.errors import LabelMissing
from postroom.core.mail.accounts import endpoint_of
from postroom.core.mail.categories import chosen_categories, queries_of
from postroom.core.mail.mailbox import Mailbox, Placed
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.following.knowledge import Knowledge, SentIdsInMemory
from postroom.mailboxes.imap.errors import QueryRefused
from postroom.mailboxes.imap.following.live import ImapConnector
from postroom.mailboxes.imap.following.place_index import PlaceIndex
from postroom.operations.jobs.queues import peek
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.label_changes import make_change
from support.clocks import ManualClock
from support.gates import BY_HAND, OpenGate
from support.gmail_imap import ALL, SPAM, TRASH, GmailOverImap, gmail_account, opened_gmail
from support.gmail_setup import ListeningSwitchboard
from support.sqlite import new_sqlite
from support.switchboard import services_on

OWNER = "mara@gmail.example"
SNOOZED = "Postroom/Snoozed"


def mail(subject: str) -> bytes:
    return f"From: ada@example.com\r\nTo: {OWNER}\r\nSubject: {subject}\r\n\r\nHello {subject}\r\n".encode()


@dataclass
class Opened:
    gmail: GmailOverImap
    mailbox: Mailbox

    def state(self) -> dict[int, tuple[str, frozenset[str], frozenset[str]]]:
        """Where each message is, its labels and its flags."""
        kept = self.gmail.messages.items()
        return {id: (each.store, frozenset(each.labels), frozenset(each.flags)) for id, each in kept}


@pytest.fixture
async def opened() -> AsyncGenerator[Opened]:
    gmail = GmailOverImap()
    async with gmail.serving() as port, opened_gmail(port, OpenGate()) as reader:
        yield Opened(gmail, reader.under(BY_HAND))


async def act(mailbox: Mailbox, id: str, kind: ActionType, label: str | None) -> dict[str, object]:
    """Do it as the executor does; the hint for its undo."""
    before = await mailbox.labels_of(id)
    wanted = joint_change([label_change(kind, label)], before)
    placed = await make_change(mailbox, Placed(id, before), wanted)
    assert placed.labels == wanted.applied_to(before) == await mailbox.labels_of(id)
    return undo_hint(kind, before, wanted)


async def test_every_action_and_its_undo(opened: Opened) -> None:
    opened.gmail.deliver(mail("others"))
    id = opened.gmail.deliver(mail("one"), "Old", "\\Important")
    opened.gmail.labels.append("Old")
    opened.gmail.settle()
    receipts = await opened.mailbox.label_id("Receipts")
    snooze = await opened.mailbox.label_id(SNOOZED)
    old = await opened.mailbox.label_id("Old", create=False)
    assert (receipts, snooze, old) == ("label:Receipts", f"label:{SNOOZED}", "label:Old")
    steps: dict[ActionType, tuple[str | None, str, str]] = {
        "archive": (None, ALL, "\\Important Old"),
        "apply_label": (receipts, ALL, "\\Important \\Inbox Old Receipts"),
        "remove_label": (old, ALL, "\\Important \\Inbox"),
        "mark_read": (None, ALL, "\\Important \\Inbox Old"),
        "star": (None, ALL, "\\Important \\Inbox Old"),
        "trash": (None, TRASH, "\\Important Old"),
        "snooze": (snooze, ALL, f"\\Important Old {SNOOZED}"),
    }
    for kind, (label, store, labels) in steps.items():
        before = opened.state()
        hint = await act(opened.mailbox, id, kind, label)
        kept = opened.gmail.kept(id)
        assert (kept.store, kept.labels) == (store, set(labels.split())), kind
        assert opened.state() != before, kind
        now = await opened.mailbox.labels_of(id)
        await make_change(opened.mailbox, Placed(id, now), inverse_change(hint, now))
        assert opened.state() == before, kind


async def test_spam_is_left_and_entered_as_a_place(opened: Opened) -> None:
    id = opened.gmail.deliver(mail("one"))
    assert (await opened.mailbox.modify(id, add=["SPAM"])).labels == {"SPAM", "UNREAD"}
    assert opened.gmail.kept(id).store == SPAM
    assert (await opened.mailbox.modify(id, add=["INBOX"], remove=["SPAM"])).labels == {"INBOX", "UNREAD"}
    assert opened.gmail.kept(id).store == ALL


@pytest.mark.parametrize(
    "name", ["Rechnungen/März", 'With "quotes" & back\\slash', "(brackets) {5}", "日本語", "Two words"]
)
async def test_labels_of_any_name_are_made_put_on_found_and_taken_off(opened: Opened, name: str) -> None:
    id, other = opened.gmail.deliver(mail("one")), opened.gmail.deliver(mail("two"))
    label = await opened.mailbox.create_label(name)
    assert label == f"label:{name}"
    assert await opened.mailbox.label_id(name.upper()) == label
    assert (await opened.mailbox.modify(id, add=[label], remove=["INBOX"])).labels == {label, "UNREAD"}
    assert await opened.mailbox.find(label_ids=[label]) == [id]
    assert await opened.mailbox.find(label_ids=["INBOX"]) == [other]
    assert (await opened.mailbox.modify(id, remove=[label])).labels == {"UNREAD"}
    assert len(opened.gmail.labels) == 1


async def test_a_message_has_several_labels_and_is_found_under_all_of_them(opened: Opened) -> None:
    id, other = opened.gmail.deliver(mail("one")), opened.gmail.deliver(mail("two"))
    first, second = [await opened.mailbox.create_label(each) for each in ("First", "Second")]
    await opened.mailbox.modify(id, add=[first, second])
    await opened.mailbox.modify(other, add=[second])
    assert await opened.mailbox.find(label_ids=[first, second]) == [id]
    assert await opened.mailbox.find("one", [second, "UNREAD"]) == [id]
    assert await opened.mailbox.labels_of(id) == {"INBOX", "UNREAD", first, second}


async def test_a_label_that_is_not_there_and_gmails_own_are_not_put_on(opened: Opened) -> None:
    id = opened.gmail.deliver(mail("one"))
    before = opened.state()
    for label in ("label:Nowhere", "SENT", "folder:Work"):
        with pytest.raises(LabelMissing):
            await opened.mailbox.modify(id, add=[label])
    assert opened.state() == before


async def test_gmail_reads_searches_itself(opened: Opened) -> None:
    id = opened.gmail.deliver(mail("harvest"))
    assert await opened.mailbox.find('harvest "') == []
    assert await opened.mailbox.find("harvest") == [id]
    assert any(b'X-GM-RAW "harvest \\""' in each for each in opened.gmail.heard)
    with pytest.raises(QueryRefused):
        await opened.mailbox.find("harvest\r\nA1 LOGOUT")


async def test_following_hands_in_once_what_many_folders_show_and_reports_what_others_do(
    migrated_sqlite: Path, tmp_path: Path, clock: ManualClock
) -> None:
    gmail, endpoint = GmailOverImap(), endpoint_of("imap", OWNER)
    database = await new_sqlite(tmp_path, migrated_sqlite)
    await database.run(keep_account(new_id(), "imap", endpoint, OWNER, clock()))
    services = services_on(database, clock)
    plain = switchboard_within(build_server(services, Principal(Role.CONNECTOR, endpoint)))
    board = ListeningSwitchboard(plain._connect)  # pyright: ignore[reportPrivateUsage]
    board.reports, board.people, board.ingested, board.before = [], [], 0, lambda _count: None
    index = PlaceIndex(tmp_path / "places.db")
    gmail.labels.append("Work")
    ids = [gmail.deliver(mail(each), "Work", "\\Important") for each in ("one", "two", "three")]
    gmail.deliver(mail("mine"), "\\Sent")
    async with gmail.serving() as port:
        account = gmail_account(port)
        try:
            connector = ImapConnector(
                account,
                board,
                index,
                email=OWNER,
                endpoint_identity=endpoint,
                clock=wall_clock,
                knowledge=Knowledge([OWNER], sent=SentIdsInMemory()),
                folder=tmp_path,
            )
            assert await connector.sync() == 4
            found = await peek(database, services.queues, "email", 100)
            arrived = {each.envelope["event"]["external_event_id"]: each.envelope for each in found}
            assert len(found) == 4
            assert set(ids) < set(arrived)
            labels = {"INBOX", "UNREAD", "IMPORTANT", "label:Work"}
            assert set(arrived[ids[0]]["payload"]["raw"]["labels"]) == labels
            gmail.kept(ids[0]).labels -= {"\\Inbox", "Work"}
            gmail.touch(gmail.kept(ids[0]))
            gmail.move(gmail.kept(ids[1]), TRASH)
            del gmail.messages[int(ids[2].removeprefix("g-"))]
            gmail.settle()
            for _ in range(2):
                assert await connector.sync() == 0
            reports = {each["message_id"]: each for each in board.reports}
            assert set(reports[ids[0]]["labels_removed"]) == {"INBOX", "label:Work"}
            assert reports[ids[1]]["labels_added"] == ["TRASH"]
            assert reports[ids[2]]["deleted"]
            opened = {line.split(b'"')[1].decode() for line in gmail.heard if b" SELECT " in line}
            assert opened <= {ALL, TRASH, SPAM}, "only these have messages of their own"
            finance = chosen_categories(["finance"])
            assert await connector.source.category_queries(finance, OWNER) == queries_of(finance, OWNER)
            assert not any("\\Seen" in each.flags for each in gmail.messages.values())
        finally:
            await account.log_out()
            index.close()
            await database.close()
