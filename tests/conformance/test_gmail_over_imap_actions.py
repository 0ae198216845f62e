"""All thirteen actions and their undos on Gmail over IMAP, emulated: asked for, carried out and taken back by the
product's own jobs, and the whole mailbox compared before and after.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from postroom.compose.gate import MailboxGate
from postroom.core.actions.action import ACTION_TYPES, ActionType
from postroom.mailboxes.imap.mailbox import ImapMailbox
from postroom_sandbox.smtp_server import SmtpServer
from support.clocks import ManualClock
from support.gmail_imap import ALL, SPAM, TRASH, GmailOverImap, gmail_account
from support.imap_actions import SENDER, SNOOZED, MailboxActions
from support.imap_sending import submission_server
from support.sqlite import new_sqlite


class Seen(NamedTuple):
    """A message as Gmail has it."""

    store: str
    labels: frozenset[str]
    flags: frozenset[str]
    content: bytes


View = dict[int, Seen]
HAD = ("\\Inbox", "\\Important", "Old")


@dataclass(frozen=True)
class Case:
    """An action on a message that is there with these labels and flags, and what Gmail has of it then."""

    kind: ActionType
    store: str = ALL
    labels: tuple[str, ...] = HAD
    flags: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    had_flags: tuple[str, ...] = ()
    had_store: str = ALL


CASES = [
    Case("archive", labels=("\\Important", "Old")),
    Case("apply_label", labels=(*HAD, "Receipts"), parameters=(("label", "Receipts"),)),
    Case("remove_label", labels=("\\Inbox", "\\Important"), parameters=(("label", "Old"),)),
    Case("mark_read", flags=("\\Seen",)),
    Case("mark_unread", had_flags=("\\Seen",)),
    Case("star", flags=("\\Flagged",)),
    Case("unstar", had_flags=("\\Flagged",)),
    Case("trash", TRASH, ("\\Important", "Old")),
    Case("restore", labels=("\\Important", "Old"), had_store=TRASH),
    Case("snooze", labels=("\\Important", "Old", SNOOZED), parameters=(("amount", 2), ("units", "hours"))),
]


class GmailActions(MailboxActions):
    """The product's jobs, and the mailbox."""

    def __init__(self, gmail: GmailOverImap, reader: ImapMailbox, database: Any, clock: ManualClock, smtp: SmtpServer):
        super().__init__(reader, database, clock, smtp)
        self.gmail = gmail

    def view(self) -> View:
        return {
            id: Seen(each.store, frozenset(each.labels), frozenset(each.flags), each.raw)
            for id, each in self.gmail.messages.items()
        }

    async def receive(self, subject: str, *flags: str, store: str = ALL) -> tuple[UUID, int]:
        """Our id, and Gmail's."""
        id = self.gmail.deliver(self.written(subject), *HAD)
        kept = self.gmail.kept(id)
        kept.flags |= set(flags)
        self.gmail.move(kept, store)
        self.gmail.settle()
        return await self.store(id, subject), kept.msgid


@pytest.fixture
async def acting(tmp_path: Path, migrated_sqlite: Path) -> AsyncGenerator[GmailActions]:
    gmail, clock, database = GmailOverImap(), ManualClock(), await new_sqlite(tmp_path, migrated_sqlite)
    gmail.labels.append("Old")
    gmail.deliver(b"From: a@b.example\r\nSubject: others\r\n\r\n")
    async with gmail.serving() as port, submission_server() as smtp:
        account = gmail_account(port)
        try:
            reader = ImapMailbox(account, MailboxGate(database, clock), always_folders=[SNOOZED])
            yield GmailActions(gmail, reader, database, clock, smtp)
        finally:
            await account.log_out()
            await database.close()


def test_every_action_has_its_case() -> None:
    assert {each.kind for each in CASES} | {"delete", "forward", "auto_reply"} == set(ACTION_TYPES)


async def test_every_action_does_what_it_says_and_undo_takes_it_back(acting: GmailActions) -> None:
    for case in CASES:
        id, msgid = await acting.receive(case.kind, *case.had_flags, store=case.had_store)
        before = acting.view()
        done = await acting.ask(id, case.kind, **dict(case.parameters))
        assert (done.state, done.error) == ("completed", None), case
        changed = before[msgid]._replace(store=case.store, labels=frozenset(case.labels), flags=frozenset(case.flags))
        assert acting.view() == {**before, msgid: changed}, case
        assert (await acting.undo(done)).undone == "completed", case
        assert acting.view() == before, case


async def test_snoozed_mail_comes_back_to_the_inbox_as_it_was(acting: GmailActions) -> None:
    id, _ = await acting.receive("woken")
    before = acting.view()
    assert (await acting.ask(id, "snooze", amount=2, units="hours")).state == "completed"
    assert acting.view() != before
    await acting.wake(timedelta(hours=1))
    assert acting.view() != before
    await acting.wake(timedelta(hours=2))
    assert acting.view() == before


async def test_snoozed_mail_that_its_owner_has_moved_meanwhile_stays_there(acting: GmailActions) -> None:
    id, msgid = await acting.receive("snoozed")
    await acting.ask(id, "snooze", amount=2, units="hours")
    kept = acting.gmail.messages[msgid]
    acting.gmail.move(kept, TRASH)
    acting.gmail.settle()
    before = acting.view()
    await acting.wake(timedelta(hours=3))
    assert acting.view()[msgid].store == TRASH
    assert {id: each for id, each in acting.view().items() if id != msgid} == {
        id: each for id, each in before.items() if id != msgid
    }


@pytest.mark.parametrize("store", [ALL, TRASH, SPAM])
async def test_mail_is_deleted_for_good_wherever_it_is_and_nothing_else(acting: GmailActions, store: str) -> None:
    before = acting.view()
    id, _ = await acting.receive("delete", store=store)
    done = await acting.ask(id, "delete")
    assert (done.state, done.error) == ("completed", None)
    assert acting.view() == before
    assert (await acting.undo(done)).undone is None


@pytest.mark.parametrize(
    ("kind", "parameters", "to"),
    [
        ("forward", {"to": "ada@example.com", "note": "See below."}, "ada@example.com"),
        ("auto_reply", {"text": "I am away."}, SENDER),
    ],
)
async def test_mail_is_sent_once_with_one_copy_in_sent_mail(
    acting: GmailActions, kind: str, parameters: dict[str, Any], to: str
) -> None:
    id, _ = await acting.receive(kind)
    before = acting.view()
    done = await acting.ask(id, kind, **parameters)
    assert (done.state, done.error) == ("completed", None)
    (mail,) = acting.smtp.received
    assert (mail.recipients, len([each for each in acting.smtp.received if each.recipients])) == ((to,), 1)
    added = [each for id, each in acting.view().items() if id not in before]
    # A draft is put into the trash: an expunge would only take its label away.
    assert sorted(each.store for each in added) == sorted([ALL, TRASH])
    (copy,) = [each for each in added if each.store == ALL]
    assert (copy.labels, copy.flags, copy.content) == ({"\\Sent"}, {"\\Seen"}, mail.content)
    assert {id: each for id, each in acting.view().items() if id in before} == before
    assert (await acting.undo(done)).undone is None
