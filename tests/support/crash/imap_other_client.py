"""Another program at the same mailbox: the standard library's client, which delivers, moves, copies, marks and deletes
at random, and remembers how it left each message.
"""

import imaplib
from dataclasses import dataclass, field
from random import Random
from typing import cast

from support.imap_server import ImapServer

VISIBLE = ("INBOX", "Archive", "Work")
HIDDEN = ("Trash", "Spam")
COPIES = "Copies"
KINDS = ("archive", "star", "trash", "file")
"""The actions of ours; those messages the other program only stars."""


def kind_of(number: int) -> str | None:
    """What we do with the message of this number; None for those that belong to the other program."""
    return KINDS[number // 2 % len(KINDS)] if number % 2 else None


@dataclass
class Left:
    """How a message was left: its folder and UID, its flags, and whether it has a copy."""

    folder: str
    uid: int
    flags: set[str] = field(default_factory=set[str])
    has_copy: bool = False
    was_hidden: bool = False
    """It was in the trash or in spam, deleted or marked for a time, so it need not have been seen."""


class OtherClient:
    """Signed in on a server with all extensions."""

    def __init__(self, server: ImapServer, user: str, owner: str, rng: Random) -> None:
        self.client = server.second_client(user)
        self._owner, self._rng = owner, rng
        self.messages: dict[int, Left] = {}
        self.deleted: set[int] = set()
        self.count = 0
        for each in ("Work", COPIES):
            self._ok(self.client.create(each))

    def deliver(self, many: int) -> None:
        for _ in range(many):
            number, self.count = self.count, self.count + 1
            named = f"Message-ID: <m{number}@x.example>\r\n" if self._rng.random() < 0.8 else ""
            head = f"From: a{number}@x.example\r\nTo: {self._owner}\r\nSubject: number {number}\r\n{named}"
            self._ok(self.client.append("INBOX", "", "", f"{head}\r\nHello {number}\r\n".encode()))
            self.messages[number] = Left("INBOX", self._code("APPENDUID")[1])

    def meddle(self) -> None:
        """Do something to one message."""
        number = self._rng.choice([*self.messages])
        left = self.messages[number]
        if kind_of(number) is not None:
            # Where it is now, we decide.
            self._store(Left("INBOX", left.uid), "+", "\\Flagged")
            return
        match self._rng.randint(0, 5):
            case 0 | 1:
                self._move(left, self._rng.choice([*VISIBLE, *HIDDEN]))
            case 2:
                self._store(left, *self._rng.choice([("+", "\\Seen"), ("+", "\\Flagged"), ("-", "\\Flagged")]))
            case 3 if not left.has_copy:
                self._select(left.folder)
                self._ok(self.client.uid("COPY", str(left.uid), COPIES))
                left.has_copy = True
            case 4:
                self._store(left, "+", "\\Deleted")
                left.was_hidden = True
            case 5 if "\\Deleted" in left.flags and not left.has_copy:
                self._ok(self.client.uid("EXPUNGE", str(left.uid)) if self._select(left.folder) else ("NO", []))
                del self.messages[number]
                self.deleted.add(number)
            case _:
                self._store(left, "+", "$Other")

    def close(self) -> None:
        self.client.logout()

    def _move(self, left: Left, target: str) -> None:
        if target == left.folder:
            return
        self._select(left.folder)
        self._ok(self.client.uid("MOVE", str(left.uid), target))
        left.folder, left.uid = target, self._code("COPYUID")[2]
        left.was_hidden |= target in HIDDEN

    def _store(self, left: Left, sign: str, flag: str) -> None:
        self._select(left.folder)
        self._ok(self.client.uid("STORE", str(left.uid), f"{sign}FLAGS", f"({flag})"))
        (left.flags.add if sign == "+" else left.flags.discard)(flag)

    def _select(self, folder: str) -> bool:
        self._ok(self.client.select(folder))
        return True

    def _code(self, name: str) -> list[int]:
        _, found = self.client.response(name)
        return [int(each) for each in cast("list[bytes]", found)[-1].split()]

    def _ok(self, answer: tuple[str, object]) -> None:
        if answer[0] != "OK":
            raise imaplib.IMAP4.error(str(answer))
