"""A folder with very many messages on Dovecot, written as a delivery agent writes them, straight into its Maildir.

What fills it up are links to one file for each day: 200,000 messages are made in seconds and take no room. They are
there for whoever counts or lists, and their content is the same for a day.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.imap_server import ImapServer

DAYS = 2_000


def mail(subject: str, number: int) -> bytes:
    return (
        f"From: Shop <shop@example.org>\r\nTo: mara@lindqvist.example\r\nSubject: {subject} {number}\r\n"
        f"Message-ID: <{subject.replace(' ', '-')}-{number}@x.example>\r\n\r\nHello {subject} {number}.\r\n"
    ).encode()


class LargeFolder:
    """The inbox of a user."""

    def __init__(self, server: ImapServer, user: str) -> None:
        self._cur = server.folder / "mail" / user / "cur"
        self._count = 0

    def deliver(self, contents: Iterable[bytes], first: datetime, apart: timedelta = timedelta(minutes=1)) -> None:
        for number, content in enumerate(contents):
            self._write(content, first + number * apart)

    def fill(self, count: int, last: datetime) -> None:
        """As many messages as this, evenly over the days before."""
        days = min(DAYS, count)
        for day in range(days):
            one = self._write(mail("old", day), last - timedelta(days=day + 1))
            for _ in range(count // days - 1):
                os.link(one, self._next())

    def _write(self, content: bytes, arrived: datetime) -> Path:
        file = self._next()
        file.write_bytes(content)
        owner, at = self._cur.stat(), arrived.timestamp()
        os.chown(file, owner.st_uid, owner.st_gid)
        # Dovecot takes the time of arrival from here.
        os.utime(file, (at, at))
        return file

    def _next(self) -> Path:
        self._count += 1
        return self._cur / f"{self._count:010d}.M{self._count}P1.test:2,"


def long_ago(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)
