"""Our connector and our actions beside another program that moves, copies, marks and deletes at random, over
connections that break: every message is handed in once, every action is done once, and nothing else is touched.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest

from postroom.core.errors import MailboxLater
from postroom.mailboxes.imap.mailbox import ImapMailbox
from support.clocks import ManualClock
from support.gates import BY_HAND, OpenGate
from support.imap_server import ImapServer, address_of
from support.imap_setup import OWNER, ImapSetup, imap_setup
from support.scale import SOAK
from support.scripted_imap import Meddler
from support.sqlite import new_sqlite

SEEDS = range(1, 21) if SOAK else (1,)
MESSAGES, ROUNDS = 24, 14
FOLDERS = ("INBOX", "Archive", "Trash", "Spam")
OURS = ("archive", "trash", "inbox", "star", "unstar")


class Breaking(Meddler):
    """Breaks each connection at a random answer, or cancels what we are doing; sometimes not at all."""

    def __init__(self, rng: Random) -> None:
        super().__init__(answers=self._answer)
        self._rng = rng
        self._left = 0
        self.running: asyncio.Task[object] | None = None
        self.breaks = 0

    def again(self) -> None:
        # How many answers there are depends on how they are cut; the first one always comes.
        self._left = self._rng.choice((0, 1, self._rng.randint(1, 40))) if self.breaks else 1

    def calm(self) -> None:
        self._left = 0

    def _answer(self, chunk: bytes) -> bytes:
        self._left -= 1
        if self._left != 0:
            return chunk
        self.breaks += 1
        if self.running is not None and self._rng.random() < 0.5:
            self.running.cancel()
            return chunk
        self.cut()
        return chunk[: self._rng.randint(0, len(chunk))]

    async def over(self, work: asyncio.Task[object]) -> bool:
        """Whether it got through."""
        self.running = work
        try:
            await work
        except (MailboxLater, asyncio.CancelledError):
            return False
        finally:
            self.running = None
        return True


class Expected:
    """Where each message has to be, and with which flags."""

    def __init__(self, setup: ImapSetup, rng: Random) -> None:
        self.setup, self.rng = setup, rng
        self.at: dict[str, tuple[str, frozenset[str]]] = {}
        self.incoming: set[str] = set()

    def put(self, number: int) -> None:
        named = f"Message-ID: <m{number}@x.example>\r\n" if self.rng.random() < 0.7 else ""
        head = f"From: a{number}@x.example\r\nTo: {OWNER}\r\nSubject: number {number}\r\n{named}"
        id = self.setup.beside.put(f"{head}\r\nHello {number}\r\n".encode())
        self.at[id] = ("INBOX", frozenset())
        self.incoming.add(id)

    def meddle(self) -> None:
        """The other program: move one, mark one, delete one that was handed in."""
        beside = self.setup.beside
        id = self.rng.choice(sorted(self.at))
        folder, flags = self.at[id]
        uid = next(uid for found, uid in self._uids(folder) if found == id)
        beside.client.select(folder)
        match self.rng.randint(0, 3):
            case 0:
                target = self.rng.choice([each for each in FOLDERS if each != folder])
                beside.client.uid("MOVE", str(uid), target)
                self.at[id] = (target, flags)
            case 1:
                beside.client.uid("STORE", str(uid), "+FLAGS", "(\\Seen)")
                self.at[id] = (folder, flags | {"\\Seen"})
            case 2:
                beside.client.uid("STORE", str(uid), "-FLAGS", "(\\Flagged)")
                self.at[id] = (folder, flags - {"\\Flagged"})
            case _ if id not in self.incoming and len(self.at) > MESSAGES // 2:
                beside.client.uid("STORE", str(uid), "+FLAGS", "(\\Deleted)")
                beside.client.uid("EXPUNGE", str(uid))
                del self.at[id]
            case _:
                pass

    def _uids(self, folder: str) -> list[tuple[str, int]]:
        """Without those that a move without MOVE has left behind, marked as deleted."""
        found = self.setup.beside.messages(folder)
        both = zip(self.setup.beside.ids(folder), found, strict=True)
        return [(id, each.uid) for id, each in both if "\\Deleted" not in each.flags]

    async def act(self, mailbox: ImapMailbox, breaking: Breaking) -> None:
        """One of our actions, repeated until its end was seen."""
        id, kind = self.rng.choice(sorted(self.at)), self.rng.choice(OURS)
        folder, flags = self.at[id]
        add = {"star": ["STARRED"], "inbox": ["INBOX"]}.get(kind, [])
        remove = {"unstar": ["STARRED"], "archive": ["INBOX"]}.get(kind, [])
        for _ in range(200):
            breaking.again()
            work = mailbox.trash(id) if kind == "trash" else mailbox.modify(id, add, remove)
            if await breaking.over(asyncio.create_task(work)):
                break
        target = {"trash": "Trash", "inbox": "INBOX", "archive": "Archive" if folder == "INBOX" else folder}
        changed = {"star": flags | {"\\Flagged"}, "unstar": flags - {"\\Flagged"}}
        self.at[id] = (target.get(kind, folder), changed.get(kind, flags))

    def seen(self) -> dict[str, tuple[str, frozenset[str]]]:
        found: dict[str, tuple[str, frozenset[str]]] = {}
        for folder in (*FOLDERS, "Sent", "Drafts"):
            for id, flags in self.setup.beside.flags_by_id(folder):
                if "\\Deleted" not in flags:
                    assert id not in found, "it is in two places"
                    found[id] = (folder, flags)
        return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("profile", ["all", "no_move"])
async def test_every_message_is_handed_in_once_and_nothing_else_is_touched(
    dovecot: ImapServer, migrated_sqlite: Path, clock: ManualClock, tmp_path: Path, seed: int, profile: str
) -> None:
    print(f"seed {seed}")
    rng = Random(seed)
    breaking, database = Breaking(rng), await new_sqlite(tmp_path, migrated_sqlite)
    async with (
        breaking.before(dovecot.port, address_of(profile)) as port,
        imap_setup(dovecot, database, clock, tmp_path, profile, port) as setup,
    ):
        expected, account = Expected(setup, rng), setup.account()
        mailbox = ImapMailbox(account, OpenGate()).under(BY_HAND)
        arrived: set[str] = set()
        for number in range(ROUNDS):
            for each in range(MESSAGES // ROUNDS + 1):
                expected.put(number * 10 + each)
            for _ in range(3):
                expected.meddle()
                await expected.act(mailbox, breaking)
            breaking.again()
            await breaking.over(asyncio.create_task(setup.connector().sync()))
            arrived = set(await setup.waiting())
            expected.incoming -= arrived
            assert expected.seen() == expected.at
        everything = arrived | expected.incoming
        for _ in range(3):
            breaking.again()
            await breaking.over(asyncio.create_task(setup.connector().sync()))
        breaking.calm()
        # Mail that went to the trash or to spam before it was seen is not incoming.
        hidden = {id for id, (folder, _) in expected.at.items() if folder in ("Trash", "Spam")}
        for id in hidden:
            await mailbox.modify(id, add=["INBOX"])
        await setup.connector().sync()
        assert set(await setup.waiting()) == everything
        assert breaking.breaks > 0
        await account.log_out()
    await database.close()
