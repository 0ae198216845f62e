"""Fills a mailbox with mail from files: an mbox, a Maildir, or a folder of messages, as whoever read them found it.

Nothing in the mail stops it. What cannot be read at all, or is larger than Gmail takes, is told and passed over.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parseaddr, parsedate_to_datetime
from pathlib import Path
from typing import Protocol

from postroom_sandbox.mailbox import ARRIVING, Mailbox
from postroom_sandbox.mime import Mail
from postroom_sandbox.outgoing import LARGEST_MESSAGE
from postroom_sandbox.refusal import Refusal

_FLAGS = re.compile(r"[:;!]2,([A-Z]*)$")

# Google's own export writes a message's labels into a header, under the names that people see.
_TAKEOUT = {
    "inbox": "INBOX", "unread": "UNREAD", "opened": "", "archived": "", "sent": "SENT", "drafts": "DRAFT",
    "draft": "DRAFT", "starred": "STARRED", "important": "IMPORTANT", "spam": "SPAM", "trash": "TRASH", "chat": "CHAT",
    "category personal": "CATEGORY_PERSONAL", "category social": "CATEGORY_SOCIAL",
    "category promotions": "CATEGORY_PROMOTIONS", "category updates": "CATEGORY_UPDATES",
    "category forums": "CATEGORY_FORUMS",
}  # fmt: skip
_FOLDERS = {"sent": "SENT", "trash": "TRASH", "junk": "SPAM", "spam": "SPAM", "drafts": "DRAFT"}


class MailFile(Protocol):
    """One message in a file: where it is, its bytes, and why there are none."""

    @property
    def path(self) -> str: ...
    @property
    def raw(self) -> bytes: ...
    @property
    def problem(self) -> str | None: ...


@dataclass(frozen=True)
class Problem:
    where: str
    why: str


@dataclass(frozen=True)
class Loaded:
    messages: int
    problems: tuple[Problem, ...]


def load(mailbox: Mailbox, files: Iterable[MailFile]) -> Loaded:
    """Puts mail from files into the mailbox, each message at the time it came."""
    number = 0
    problems: list[Problem] = []
    for found in files:
        if found.problem:
            problems.append(Problem(found.path, found.problem))
        elif len(found.raw) > LARGEST_MESSAGE:
            problems.append(Problem(found.path, f"more than the {LARGEST_MESSAGE} bytes that Gmail takes"))
        elif found.raw:
            mail = Mail(found.raw)
            mailbox.deliver(found.raw, _labels(mailbox, mail, Path(found.path)), came_at(mail, mailbox.clock()))
            number += 1
    return Loaded(number, tuple(problems))


def _labels(mailbox: Mailbox, mail: Mail, where: Path) -> frozenset[str]:
    """Where a message belongs: as Google's export says, as its place in a Maildir says, else sent or new."""
    if written := mail.header("X-Gmail-Labels"):
        return frozenset(filter(None, (_label(mailbox, name.strip()) for name in written.split(","))))
    sent = parseaddr(mail.header("From"))[1].lower() == mailbox.owner.lower()
    if where.parent.name in ("cur", "new"):
        return _maildir_labels(mailbox, where, sent)
    return frozenset({"SENT"}) if sent else ARRIVING


def _maildir_labels(mailbox: Mailbox, where: Path, sent: bool) -> frozenset[str]:
    """A Maildir's folders begin with a dot, and its flags are the end of a file's name."""
    name = where.parent.parent.name
    folder = name[1:] if name.startswith(".") else ""
    place = _FOLDERS.get(folder.rpartition(".")[2].lower(), "")
    if folder and not place:
        place = _label(mailbox, folder.replace(".", "/"))
    labels = {place or ("SENT" if sent else "INBOX")}
    found = _FLAGS.search(where.name)
    flags = found[1] if found else ""
    labels |= {label for flag, label in (("F", "STARRED"), ("T", "TRASH"), ("D", "DRAFT")) if flag in flags}
    if "S" not in flags and "SENT" not in labels:
        labels.add("UNREAD")
    return frozenset(labels - {"INBOX"} if "TRASH" in labels else labels)


def _label(mailbox: Mailbox, name: str) -> str:
    """The id of a label of this name, which is made if there is none; empty for what is no label at Gmail."""
    if name.lower() in _TAKEOUT:
        return _TAKEOUT[name.lower()]
    known = mailbox.labels.named(name)
    try:
        return known.id if known else mailbox.labels.create(name, {}).id
    except Refusal:
        return ""


def came_at(mail: Mail, now: datetime) -> datetime:
    """When a message came: its newest Received line says so, or else its Date; never in the future."""
    for text in (mail.header("Received").rpartition(";")[2], mail.header("Date")):
        try:
            moment = parsedate_to_datetime(text.strip())
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if moment.year > 1970 and moment <= now:
            return moment
    return now
