"""A message of which others have put copies elsewhere: an action and its undo change one of them, the same one, also if
the process was started anew between; and the folder it was put into may have another name by then.
"""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.mailboxes.imap.mailbox import LabelsAs
from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite_connection import connect
from support.imap_actions import SNOOZED, ImapActions, View, imap_actions
from support.imap_server import PROFILES, ImapServer, address_of
from support.scale import SOAK
from support.scripted_imap import Meddler

Open = Callable[..., Any]
SNOOZE = {"amount": 2, "units": "hours"}
MOVES: list[tuple[str, dict[str, Any], str]] = [
    ("trash", {}, "Trash"),
    ("archive", {}, "Archive"),
    ("apply_label", {"label": "Receipts"}, "Receipts"),
    ("snooze", SNOOZE, SNOOZED),
]
EVERYWHERE = ("INBOX", "Archive", "Receipts", "Kept", "Trash", SNOOZED)


@pytest.fixture
def opened(tmp_path: Path, migrated_sqlite: Path) -> Open:
    def open_mailbox(server: ImapServer, profile: str = "all", labels_as: LabelsAs = "folders", **more: Any) -> Any:
        return imap_actions(server, tmp_path / "data", migrated_sqlite, profile, labels_as, **more)

    return open_mailbox


def make_folders(acting: ImapActions) -> None:
    for folder in ("Receipts", "Kept", SNOOZED):
        acting.opened.beside.client.create(f'"{folder}"')


def count(view: View, subject: str) -> dict[str, int]:
    found = {folder: sum(each.subject == subject for each in messages) for folder, messages in view.items()}
    return {folder: number for folder, number in found.items() if number}


async def test_undo_after_a_restart_takes_back_what_the_action_did_and_no_copy_moves(
    imap_server: ImapServer, opened: Open
) -> None:
    async with opened(imap_server) as acting:
        make_folders(acting)
        for kind, parameters, there in MOVES:
            id = await acting.receive(kind, flags="\\Seen")
            acting.copy_to(*EVERYWHERE, subject=kind)
            before = acting.view()
            done = await acting.ask(id, kind, **parameters)
            assert (done.state, done.error) == ("completed", None)
            assert count(acting.view(), kind) == count(before, kind) | {"INBOX": 1, there: 2}
            acting.restart()
            assert (await acting.undo(done)).undone == "completed"
            assert acting.view() == before, kind


@pytest.mark.parametrize("profile", list(PROFILES) if SOAK else ["bare"])
async def test_undo_after_a_restart_on_servers_without_extensions(
    dovecot: ImapServer, opened: Open, profile: str
) -> None:
    async with opened(dovecot, profile) as acting:
        make_folders(acting)
        for kind, parameters, _ in MOVES:
            id = await acting.receive(kind, flags="\\Seen")
            acting.copy_to(*EVERYWHERE, subject=kind)
            before = acting.view()
            done = await acting.ask(id, kind, **parameters)
            assert (done.state, done.error) == ("completed", None)
            acting.restart()
            assert (await acting.undo(done)).undone == "completed"
            assert acting.view() == before, kind


async def test_several_actions_on_one_message_are_undone_one_after_the_other(dovecot: ImapServer, opened: Open) -> None:
    async with opened(dovecot) as acting:
        make_folders(acting)
        id = await acting.receive("one")
        acting.copy_to(*EVERYWHERE, subject="one")
        before = acting.view()
        done: list[Any] = []
        for kind, parameters in (("archive", {}), ("apply_label", {"label": "Receipts"}), ("trash", {})):
            done.append(await acting.ask(id, kind, **parameters))
        for each in reversed(done):
            acting.restart()
            assert (await acting.undo(each)).undone == "completed"
        assert acting.view() == before


async def test_an_action_means_the_copy_that_is_where_it_shall_not_be(dovecot: ImapServer, opened: Open) -> None:
    async with opened(dovecot) as acting:
        make_folders(acting)
        id = await acting.receive("restore")
        acting.copy_to("Trash", "Receipts", subject="restore")
        assert (await acting.ask(id, "restore")).state == "completed"
        assert count(acting.view(), "restore") == {"INBOX": 1, "Archive": 1, "Receipts": 1}
        assert (await acting.ask(id, "remove_label", label="Receipts")).state == "completed"
        assert count(acting.view(), "restore") == {"INBOX": 1, "Archive": 2}


@pytest.mark.parametrize(("kind", "parameters", "there"), MOVES, ids=[each[0] for each in MOVES])
async def test_an_action_that_was_interrupted_after_its_move_moves_no_copy_when_it_is_repeated(
    dovecot: ImapServer, opened: Open, kind: str, parameters: dict[str, Any], there: str
) -> None:
    moves: list[bytes] = []

    def loses(line: bytes) -> bytes | None:
        moves.extend([line] if b"UID MOVE" in line else [])
        return line

    def cuts(answer: bytes) -> bytes:
        if len(moves) == 1 and b"OK" in answer and moves[0].split()[0] in answer:
            moves.append(b"cut")
            meddler.cut()
            return b""
        return answer

    meddler = Meddler(ask=loses, answers=cuts)
    async with meddler.before(dovecot.port, address_of("all")) as port, opened(dovecot, port=port) as acting:
        make_folders(acting)
        id = await acting.receive(kind)
        acting.copy_to("INBOX", "Kept", "Archive", subject=kind)
        before = acting.view()
        first = await acting.ask(id, kind, **parameters)
        assert (first.state, moves[1:]) == ("executing", [b"cut"])
        acting.restart()
        await acting.wake(timedelta(minutes=30))
        done = await acting.action(first.id)
        assert (done.state, done.error) == ("completed", None)
        expected = count(before, kind) | {"INBOX": 1, there: count(before, kind).get(there, 0) + 1}
        assert count(acting.view(), kind) == expected
        acting.restart()
        assert (await acting.undo(done)).undone == "completed"
        assert acting.view() == before


# renamed folders


async def test_snoozed_mail_wakes_from_a_folder_that_was_renamed(imap_server: ImapServer, opened: Open) -> None:
    async with opened(imap_server) as acting:
        id = await acting.receive("one")
        before = acting.view()
        assert (await acting.ask(id, "snooze", **SNOOZE)).state == "completed"
        assert acting.opened.beside.client.rename(f'"{SNOOZED}"', '"Later"')[0] == "OK"
        assert count(acting.view(), "one") == {"Later": 1}
        # Another one is put to sleep in a new folder of the old name.
        await acting.ask(await acting.receive("two"), "snooze", **SNOOZE)
        acting.restart()
        await acting.wake(timedelta(hours=3))
        view = acting.view()
        assert (view["INBOX"][0], set(view)) == (before["INBOX"][0], {"INBOX"})


async def test_snoozed_mail_that_its_owner_has_filed_stays_there(imap_server: ImapServer, opened: Open) -> None:
    async with opened(imap_server) as acting:
        make_folders(acting)
        id = await acting.receive("one")
        assert (await acting.ask(id, "snooze", **SNOOZE)).state == "completed"
        acting.opened.beside.client.select(f'"{SNOOZED}"')
        acting.opened.beside.client.uid("MOVE", "1:*", "Kept")
        await acting.wake(timedelta(hours=3))
        assert count(acting.view(), "one") == {"Kept": 1}


@pytest.mark.parametrize("kind", ["apply_label", "snooze"])
async def test_undo_finds_the_message_in_a_folder_that_was_renamed(
    dovecot: ImapServer, opened: Open, kind: str
) -> None:
    (_, parameters, there) = next(each for each in MOVES if each[0] == kind)
    async with opened(dovecot) as acting:
        id = await acting.receive("one")
        before = acting.view()
        done = await acting.ask(id, kind, **parameters)
        acting.opened.beside.client.rename(f'"{there}"', '"Renamed"')
        acting.restart()
        assert (await acting.undo(done)).undone == "completed"
        assert acting.view() == before


async def test_snoozed_mail_wakes_if_its_folder_is_gone_wherever_it_is_now(dovecot: ImapServer, opened: Open) -> None:
    """A server may give a renamed folder new UIDs: then nobody can tell, and mail must not sleep forever."""
    async with opened(dovecot) as acting:
        make_folders(acting)
        ids = [await acting.receive(each) for each in ("one", "two")]
        for id in ids:
            assert (await acting.ask(id, "snooze", **SNOOZE)).state == "completed"
        client = acting.opened.beside.client
        client.select(f'"{SNOOZED}"')
        client.uid("MOVE", "1", "Kept")
        client.uid("MOVE", "2", "Trash")
        client.close()
        assert client.delete(f'"{SNOOZED}"')[0] == "OK"
        acting.restart()
        await acting.wake(timedelta(hours=3))
        # What somebody has thrown away stays in the trash.
        assert count(acting.view(), "one") == {"INBOX": 1}
        assert count(acting.view(), "two") == {"Trash": 1}


async def test_undo_of_an_action_whose_place_was_not_stored_looks_where_it_put_the_message(
    dovecot: ImapServer, opened: Open, tmp_path: Path
) -> None:
    """As of actions from before places were stored, or in a folder that was made anew since."""
    async with opened(dovecot) as acting:
        make_folders(acting)
        id = await acting.receive("one")
        acting.copy_to("Archive", "Kept", subject="one")
        before = acting.view()
        done = await acting.ask(id, "trash")
        with closing(connect(tmp_path / "data" / FILE)) as connection:
            forgetting = "UPDATE actions SET undo_hint_json = json_remove(undo_hint_json, '$.place') RETURNING id"
            assert len(connection.execute(forgetting).fetchall()) == 1
        acting.restart()
        assert (await acting.undo(done)).undone == "completed"
        assert acting.view() == before
