"""Fills a mailbox with mail from files: an mbox, a Maildir, or a folder of messages.

Malformed mail is loaded too. Messages that cannot be read at all, or are too large for Gmail, are reported and skipped.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parseaddr
from pathlib import Path
from typing import Protocol

from postroom_sandbox.header_dates import moment_in
from postroom_sandbox.mailbox import ARRIVING, Mailbox
from postroom_sandbox.mime import Mail
from postroom_sandbox.outgoing import LARGEST_MESSAGE
from postroom_sandbox.refusal import Refusal

_FLAGS = re.compile(r"[:;!]2,([A-Z]*)$")

# Google's export (Takeout) writes a message's labels into a header, under their display names.
_TAKEOUT = {
    "inbox": "INBOX", "unread": "UNREAD", "opened": "", "archived": "", "sent": "SENT", "drafts": "DRAFT",
    "draft": "DRAFT", "starred": "STARRED", "important": "IMPORTANT", "spam": "SPAM", "trash": "TRASH", "chat": "CHAT",
    "category personal": "CATEGORY_PERSONAL", "category social": "CATEGORY_SOCIAL",
    "category promotions": "CATEGORY_PROMOTIONS", "category updates": "CATEGORY_UPDATES",
    "category forums": "CATEGORY_FORUMS",
}  # fmt: skip
_FOLDERS = {"sent": "SENT", "trash": "TRASH", "junk": "SPAM", "spam": "SPAM", "drafts": "DRAFT"}


class MailFile(Protocol):
    """One message in a file: its path, its bytes, and why it could not be read, if so."""

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
    """Add mail from files to the mailbox, each message with its own time."""
    number = 0
    problems: list[Problem] = []
    for found in files:
        if found.problem:
            problems.append(Problem(found.path, found.problem))
        elif len(found.raw) > LARGEST_MESSAGE:
            problems.append(Problem(found.path, f"more than the {LARGEST_MESSAGE} bytes that Gmail accepts"))
        elif found.raw:
            mail = Mail(found.raw)
            mailbox.deliver(found.raw, _labels(mailbox, mail, Path(found.path)), came_at(mail, mailbox.clock()))
            number += 1
    return Loaded(number, tuple(problems))


def _labels(mailbox: Mailbox, mail: Mail, where: Path) -> frozenset[str]:
    """The labels of a message: from Google's export, from its place in a Maildir, else sent or inbox."""
    if written := mail.header("X-Gmail-Labels"):
        return frozenset(filter(None, (_label(mailbox, name.strip()) for name in written.split(","))))
    sent = parseaddr(mail.header("From"))[1].lower() == mailbox.owner.lower()
    if where.parent.name in ("cur", "new"):
        return _maildir_labels(mailbox, where, sent)
    return frozenset({"SENT"}) if sent else ARRIVING


def _maildir_labels(mailbox: Mailbox, where: Path, sent: bool) -> frozenset[str]:
    """Labels from a Maildir: its folders begin with a dot, and flags are at the end of file names."""
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
    """The id of the label with this name, created if missing; empty if Gmail has no such label."""
    if name.lower() in _TAKEOUT:
        return _TAKEOUT[name.lower()]
    known = mailbox.labels.named(name)
    try:
        return known.id if known else mailbox.labels.create(name, {}).id
    except Refusal:
        return ""


def came_at(mail: Mail, now: datetime) -> datetime:
    """When a message was received: by its newest Received header, else its Date; never in the future."""
    for text in (mail.header("Received").rpartition(";")[2], mail.header("Date")):
        moment = moment_in(text)
        if moment is not None and moment <= now:
            return moment
    return now
