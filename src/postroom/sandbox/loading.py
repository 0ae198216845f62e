"""Reads mail that lies on a disk: an mbox, a Maildir, or a folder of messages, one in each file.

Nothing in the mail stops it. What cannot be read at all, or is larger than Gmail takes, is told and passed over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parseaddr, parsedate_to_datetime
from pathlib import Path

from postroom.core.errors import BadInput
from postroom.sandbox.mailbox import ARRIVING, Mailbox
from postroom.sandbox.mime import Mail
from postroom.sandbox.outgoing import LARGEST_MESSAGE
from postroom.sandbox.refusal import Refusal

_ESCAPED_FROM = re.compile(rb"(?m)^>(>*From )")
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


@dataclass(frozen=True)
class Found:
    """One message as it lay there. `flags` are a Maildir's, `folder` the subfolder of one."""

    raw: bytes
    where: str
    flags: str | None = None
    folder: str = ""


@dataclass(frozen=True)
class Problem:
    where: str
    why: str


@dataclass(frozen=True)
class Loaded:
    messages: int
    problems: tuple[Problem, ...]


def load(mailbox: Mailbox, path: Path) -> Loaded:
    """Puts all mail at a path into the mailbox, each at the time it came."""
    number = 0
    problems: list[Problem] = []
    for found in read(path):
        if isinstance(found, Problem):
            problems.append(found)
        elif len(found.raw) > LARGEST_MESSAGE:
            problems.append(Problem(found.where, f"{len(found.raw)} bytes are more than Gmail takes"))
        else:
            mail = Mail(found.raw)
            mailbox.deliver(found.raw, _labels(mailbox, mail, found), came_at(mail, mailbox.clock()))
            number += 1
    return Loaded(number, tuple(problems))


def read(path: Path) -> Iterator[Found | Problem]:
    """Every message at a path, in the order of the files' names."""
    if path.is_file():
        yield from _read_file(path)
    elif (path / "cur").is_dir() or (path / "new").is_dir():
        yield from _read_maildir(path)
    elif path.is_dir():
        for file in sorted(each for each in path.rglob("*") if _is_mail(each, path)):
            yield from _read_file(file)
    else:
        raise BadInput(
            "mail", f"{path} is neither a file nor a folder", "give an mbox, a Maildir or a folder of messages"
        )


def _is_mail(file: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
    return file.is_file() and not hidden


def _read_file(file: Path) -> Iterator[Found | Problem]:
    """An mbox if it begins like one, else one message."""
    try:
        content = file.read_bytes()
    except OSError as error:
        yield Problem(str(file), error.strerror or "cannot be read")
        return
    if content.startswith(b"From ") and file.suffix.lower() != ".eml":
        for number, raw in enumerate(_messages_in(content), 1):
            yield Found(raw, f"{file}, message {number}")
    elif content:
        yield Found(content, str(file))


def _messages_in(content: bytes) -> Iterator[bytes]:
    """The messages of an mbox: each begins after a blank line with `From `; lines of a text that do are escaped."""
    for piece in re.split(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))(?=From )", content):
        _, _, raw = piece.partition(b"\n")
        if raw.strip():
            yield _ESCAPED_FROM.sub(rb"\1", raw)


def _read_maildir(root: Path) -> Iterator[Found | Problem]:
    """The messages of a Maildir and of the folders in it, which begin with a dot."""
    folders = [("", root), *((each.name.lstrip("."), each) for each in sorted(root.glob(".*")) if each.is_dir())]
    for name, folder in folders:
        for place in ("new", "cur"):
            for file in sorted((folder / place).glob("*")):
                flags = _FLAGS.search(file.name)
                try:
                    yield Found(file.read_bytes(), str(file), flags[1] if flags else "", name)
                except OSError as error:
                    yield Problem(str(file), error.strerror or "cannot be read")


def _labels(mailbox: Mailbox, mail: Mail, found: Found) -> frozenset[str]:
    """Where a message belongs: as Google's export says, as a Maildir's flags say, else sent or new."""
    if written := mail.header("X-Gmail-Labels"):
        return frozenset(filter(None, (_label(mailbox, name.strip()) for name in written.split(","))))
    place = _FOLDERS.get(found.folder.rpartition(".")[2].lower(), "")
    sender = parseaddr(mail.header("From"))[1].lower()
    labels = {place} if place else {"SENT"} if sender == mailbox.owner.lower() else {"INBOX"}
    if found.folder and not place:
        labels = {_label(mailbox, found.folder.replace(".", "/"))}
    flags = found.flags
    if flags is None:
        return ARRIVING if labels == {"INBOX"} else frozenset(labels)
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
