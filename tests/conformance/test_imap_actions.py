"""All thirteen actions and their undos on Dovecot and Cyrus, with and without extensions: asked for, carried out and
taken back by the product's own jobs, and the whole mailbox compared by another program before and after.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.actions.action import ACTION_TYPES, ActionType
from postroom.mailboxes.imap.folder_names import encoded
from postroom.mailboxes.imap.mailbox import LabelsAs
from postroom.store.jobs import jobs
from support.dovecot import running_dovecot
from support.imap_actions import SENDER, SNOOZED, ImapActions, View, imap_actions
from support.imap_server import PROFILES, ImapServer, address_of
from support.scale import SOAK
from support.scripted_imap import Meddler

OTHERS = "others"
FLAGS = "\\Answered $Forwarded Later"
ALL_WAYS: list[tuple[str, str, LabelsAs]] = [
    (server, profile, labels_as)
    for server in ("dovecot", "cyrus")
    for profile in PROFILES
    for labels_as in ("keywords", "folders")
]
SOME_WAYS: list[tuple[str, str, LabelsAs]] = [("dovecot", "bare", "folders"), ("cyrus", "all", "keywords")]
WAYS = ALL_WAYS if SOAK else SOME_WAYS


@dataclass(frozen=True)
class Case:
    """An action on a message that is in this folder with these flags, and where it is then with which flags. `there`
    names a folder by what it is for.
    """

    kind: ActionType
    there: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    here: str = "INBOX"
    flags: str = FLAGS


@dataclass(frozen=True)
class Names:
    """How the folders of a server are called."""

    archive: str = "Archive"
    trash: str = "Trash"
    sent: str = "Sent"
    drafts: str = "Drafts"
    prefix: str = ""
    separator: str = "/"

    def own(self, name: str) -> str:
        return self.prefix + name.replace("/", self.separator)


def cases(names: Names, label: str, labels_as: LabelsAs) -> list[Case]:
    filed = names.own(label)
    labelled = ("INBOX", (label,)) if labels_as == "keywords" else (filed, ())
    had = (label, "INBOX", f"{FLAGS} {label}") if labels_as == "keywords" else (None, filed, FLAGS)
    return [
        Case("archive", names.archive),
        Case("apply_label", labelled[0], labelled[1]),
        Case(
            "remove_label",
            "INBOX" if labels_as == "keywords" else names.archive,
            removed=(label,) if labels_as == "keywords" else (),
            here=had[1],
            flags=had[2],
        ),
        Case("mark_read", "INBOX", ("\\Seen",)),
        Case("mark_unread", "INBOX", removed=("\\Seen",), flags=f"{FLAGS} \\Seen"),
        Case("star", "INBOX", ("\\Flagged",)),
        Case("unstar", "INBOX", removed=("\\Flagged",), flags=f"{FLAGS} \\Flagged"),
        Case("trash", names.trash),
        Case("restore", names.archive, here=names.trash),
        Case("snooze", names.own(SNOOZED)),
    ]


PARAMETERS: dict[str, dict[str, Any]] = {"snooze": {"amount": 2, "units": "hours"}}


def moved(before: View, case: Case) -> View:
    """The mailbox as it must be after the action: nothing else has changed."""
    after = {folder: list(messages) for folder, messages in before.items()}
    (message,) = [each for each in after[case.here] if each.subject == case.kind]
    after[case.here].remove(message)
    flags = (message.flags | set(case.added)) - set(case.removed)
    after.setdefault(case.there, []).append(message._replace(flags=frozenset(flags)))
    return {folder: tuple(sorted(messages)) for folder, messages in after.items() if messages}


async def check_all(acting: ImapActions, names: Names, label: str, labels_as: LabelsAs) -> None:
    """Every action that can be undone, and its undo, each on a message of its own."""
    acting.opened.beside.put(f"From: a@b.example\r\nSubject: {OTHERS}\r\n\r\n".encode(), flags="\\Deleted")
    if labels_as == "folders":
        acting.opened.beside.client.create(f'"{_spelled(names.own(label))}"')
    for case in cases(names, label, labels_as):
        id = await acting.receive(case.kind, _spelled(case.here), case.flags)
        named = {"label": label} if case.kind in ("apply_label", "remove_label") else PARAMETERS.get(case.kind, {})
        before = acting.view()
        done = await acting.ask(id, case.kind, **named)
        assert (done.state, done.error) == ("completed", None), case
        assert acting.view() == moved(before, case), case
        undone = await acting.undo(done)
        assert undone.undone == "completed", case
        assert acting.view() == before, case
    await check_waking(acting)
    await check_deletion(acting, names)
    await check_sending(acting, names)


def _spelled(folder: str) -> str:
    """As another program writes it in quotes."""
    return encoded(folder).decode().replace("\\", "\\\\").replace('"', '\\"')


async def check_waking(acting: ImapActions) -> None:
    id = await acting.receive("woken", flags=FLAGS)
    before = acting.view()
    done = await acting.ask(id, "snooze", **PARAMETERS["snooze"])
    assert done.state == "completed"
    assert acting.view() != before
    await acting.wake(timedelta(hours=3))
    assert acting.view() == before


async def check_deletion(acting: ImapActions, names: Names) -> None:
    """For good by UIDPLUS; without it, into the trash, and the action says so."""
    before = acting.view()
    id = await acting.receive("delete", flags=FLAGS)
    there = acting.view()
    done = await acting.ask(id, "delete")
    if acting.opened.account._session and acting.opened.account._session.offers("UIDPLUS"):
        assert (done.state, acting.view()) == ("completed", before)
    else:
        assert done.state == "failed"
        assert "put into the trash" in (done.error or "")
        assert acting.view() == moved(there, Case("delete", names.trash))


async def check_sending(acting: ImapActions, names: Names) -> None:
    """The message stays as it is; what is sent is in sent mail, read, and nothing is left among the drafts."""
    for kind, parameters, to in (
        ("forward", {"to": "ada@example.com", "note": "See below."}, "ada@example.com"),
        ("auto_reply", {"text": "I am away."}, SENDER),
    ):
        id = await acting.receive(kind, flags=FLAGS)
        before, count = acting.view(), len(acting.smtp.received)
        done = await acting.ask(id, kind, **parameters)
        assert (done.state, done.error) == ("completed", None), kind
        after = dict(acting.view())
        copies = set(after.pop(names.sent)) - set(before.get(names.sent, ()))
        (copy,) = copies
        assert after == {folder: each for folder, each in before.items() if folder != names.sent}
        assert copy.flags == {"\\Seen"}
        (mail,) = acting.smtp.received[count:]
        assert (mail.recipients, mail.content) == ((to,), copy.content)
        assert (await acting.undo(done)).undone is None


Open = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path, migrated_sqlite: Path) -> Open:
    """Opens a mailbox with a database of its own."""

    def open_mailbox(server: ImapServer, *options: Any, **more: Any) -> Any:
        return imap_actions(server, tmp_path / "data", migrated_sqlite, *options, **more)

    return open_mailbox


def test_every_action_has_its_case() -> None:
    covered = {each.kind for each in cases(Names(), "Receipts", "keywords")} | {"delete", "forward", "auto_reply"}
    assert covered == set(ACTION_TYPES)


@pytest.mark.parametrize(("server", "profile", "labels_as"), WAYS)
async def test_every_action_does_what_it_says_and_undo_takes_it_back(
    request: pytest.FixtureRequest, opened: Open, server: str, profile: str, labels_as: LabelsAs
) -> None:
    async with opened(request.getfixturevalue(server), profile, labels_as) as acting:
        await check_all(acting, Names(), "Receipts", labels_as)


# odd servers


@pytest.fixture(scope="module")
def odd_dovecot() -> Iterator[ImapServer]:
    with running_dovecot(is_odd=True) as server:
        yield server


ODD = Names("INBOX.Archiv", "INBOX.Papierkorb", "INBOX.Gesendet", "INBOX.Entwürfe", "INBOX.", ".")
ODD_NAMES = {
    "dovecot": ['A "b" & c/Ä 😀', "Größe/Ä", "a\\b %*", "rødgrød"],
    # Cyrus allows no quotes, ampersands and wildcards in the names of folders.
    "cyrus": ["Größe/Ä 😀", "rødgrød"],
}


@pytest.mark.parametrize("profile", ["all", "bare"] if SOAK else ["all"])
async def test_folders_in_another_language_under_a_prefix(odd_dovecot: ImapServer, opened: Open, profile: str) -> None:
    async with opened(odd_dovecot, profile, "folders") as acting:
        await check_all(acting, ODD, "Belege/2026", "folders")


@pytest.mark.parametrize("server", ["dovecot", "cyrus"])
async def test_folders_with_odd_names(request: pytest.FixtureRequest, opened: Open, server: str) -> None:
    async with opened(request.getfixturevalue(server), "all", "folders") as acting:
        for name in ODD_NAMES[server] if SOAK else ODD_NAMES[server][:1]:
            id = await acting.receive("apply_label", flags=FLAGS)
            before = acting.view()
            done = await acting.ask(id, "apply_label", label=name)
            assert (done.state, done.error) == ("completed", None), name
            assert acting.view() == moved(before, Case("apply_label", name)), name
            assert (await acting.undo(done)).undone == "completed"
            assert acting.view() == before
            await acting.ask(id, "delete")


async def test_a_folder_that_may_not_be_changed_keeps_its_messages_and_the_action_says_why(
    dovecot: ImapServer, opened: Open
) -> None:
    async with opened(dovecot) as acting:
        id = await acting.receive("archive", flags=FLAGS)
        acting.opened.beside.put(b"Subject: x\r\n\r\n", "Archive")
        before = acting.view()
        folder = dovecot.folder / "mail" / acting.opened.user / "Archive"
        parts = [folder, *(folder / each for each in ("cur", "new", "tmp"))]
        for each in parts:
            each.chmod(0o500)
        done = await acting.ask(id, "archive")
        assert done.state in ("queued", "executing", "failed")
        assert "archive: " in (done.error or await _last_error(acting)), done
        assert acting.view() == before
        for each in parts:
            each.chmod(0o700)


async def _last_error(acting: ImapActions) -> str:
    return " ".join(each.last_error or "" for each in await acting.database.run(jobs.list_jobs()))


async def test_a_flag_that_does_not_stick_fails_the_action_and_changes_nothing(
    dovecot: ImapServer, opened: Open
) -> None:
    def forgets(line: bytes) -> bytes | None:
        return line.split()[0] + b" OK done\r\n" if b"UID STORE" in line else None

    async with Meddler(replies=forgets).before(dovecot.port) as port, opened(dovecot, port=port) as acting:
        id = await acting.receive("star", flags=FLAGS)
        before = acting.view()
        done = await acting.ask(id, "star")
        assert done.state == "failed"
        assert "the flag does not stick" in (done.error or "")
        assert acting.view() == before
        assert acting.smtp.received == []
        # No mail leaves either: the draft could not say that it may have.
        await acting.ask(id, "forward", to="ada@example.com")
        assert acting.smtp.received == []


# interrupted


INTERRUPTED = [
    ("no_move", b"UID EXPUNGE"),
    ("neither", b"UID STORE"),
    ("no_move", b"UID COPY"),
    ("no_move", b"UID STORE"),
]


class CutBefore(Meddler):
    """Ends the connection when a command comes for the first time, before the server has it."""

    def __init__(self, command: bytes) -> None:
        super().__init__(ask=self._ask)
        self.command = command
        self.is_done = False

    def _ask(self, line: bytes) -> bytes | None:
        if self.is_done or self.command not in line:
            return line
        self.is_done = True
        self.cut()
        return None


@pytest.mark.parametrize(("profile", "command"), INTERRUPTED if SOAK else INTERRUPTED[:2])
async def test_a_move_without_move_that_is_interrupted_is_finished_and_undone_with_nothing_left_over(
    dovecot: ImapServer, opened: Open, profile: str, command: bytes
) -> None:
    cut = CutBefore(command)
    async with (
        cut.before(dovecot.port, address_of(profile)) as port,
        opened(dovecot, profile, port=port) as acting,
    ):
        id = await acting.receive("archive", flags=FLAGS)
        before = acting.view()
        first = await acting.ask(id, "archive")
        assert cut.is_done
        assert first.state == "executing"
        await acting.wake(timedelta(hours=1))
        done = await acting.action(first.id)
        assert (done.state, done.error) == ("completed", None)
        assert acting.view() == moved(before, Case("archive", "Archive"))
        assert (await acting.undo(done)).undone == "completed"
        assert acting.view() == before
        # The copy that was left, marked as deleted, is the one that has come back.
        assert len(acting.opened.beside.messages("INBOX")) == 1
        if profile == "no_move":
            assert acting.opened.beside.messages("Archive") == []
            deleted = await acting.ask(id, "delete")
            assert deleted.state == "completed"
            assert acting.opened.beside.messages("INBOX") == []


async def test_deleting_for_good_removes_the_copy_that_an_interrupted_move_has_marked(
    dovecot: ImapServer, opened: Open
) -> None:
    cut = CutBefore(b"UID EXPUNGE")
    async with (
        cut.before(dovecot.port, address_of("no_move")) as port,
        opened(dovecot, "no_move", port=port) as acting,
    ):
        id = await acting.receive("archive")
        await acting.ask(id, "archive")
        await acting.wake(timedelta(hours=1))
        assert len(acting.opened.beside.messages("INBOX")) == 1
        assert (await acting.ask(id, "delete")).state == "completed"
        assert acting.opened.beside.messages("INBOX") == acting.opened.beside.messages("Archive") == []


# what a person repairs outside of Postroom


async def test_a_full_mailbox_makes_actions_wait_without_asking_again_and_again_until_there_is_room(
    dovecot: ImapServer, opened: Open
) -> None:
    is_full = True

    def full(line: bytes) -> bytes | None:
        return line.split()[0] + b" NO [OVERQUOTA] full\r\n" if is_full and b"UID MOVE" in line else None

    async with (
        (meddler := Meddler(replies=full)).before(dovecot.port) as port,
        opened(dovecot, port=port) as acting,
    ):
        id = await acting.receive("archive", flags=FLAGS)
        before = acting.view()
        asked = await acting.ask(id, "archive")
        assert asked.state == "executing"
        assert "make room in it" in await _last_error(acting)
        # Many more times than a job is retried: nobody knows how long it takes, and it is not given up.
        for _ in range(20):
            await acting.wake(timedelta(hours=1))
        tries = sum(b"UID MOVE" in each for each in meddler.heard)
        assert tries == 21, "each time, once"
        assert (await acting.action(asked.id)).state == "executing"
        assert acting.view() == before
        is_full = False
        await acting.wake(timedelta(hours=1))
        assert (await acting.action(asked.id)).state == "completed"
        assert acting.view() == moved(before, Case("archive", "Archive"))
