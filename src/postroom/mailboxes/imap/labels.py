"""IMAP's folders, flags and keywords as labels, and the changes of labels as commands. Pure.

A message is in one folder at a time: a folder of the user is a place, like the inbox and the trash, so putting it into
one takes it out of the other. Keywords are labels that it can have several of.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from postroom.core.actions.label_changes import FOLDER
from postroom.core.mail.mailbox import MailboxLabel
from postroom.mailboxes.imap.answers import GMAIL_LABEL
from postroom.mailboxes.imap.commands import is_keyword
from postroom.mailboxes.imap.errors import NoSuchFolder
from postroom.mailboxes.imap.folders import LABEL, Folder, FolderMap

KEYWORD = "keyword:"
SEEN, FLAGGED, DELETED = "\\Seen", "\\Flagged", "\\Deleted"
# Marks of mail programs about the message, which are nobody's label.
_MARKS = frozenset({"junk", "nonjunk", "notjunk", "forwarded", "redirected", "hasattachment", "hasnoattachment"})
# Gmail's own labels. Important is its guess, and may be changed like a label.
_SYSTEM = {"\\inbox": "INBOX", "\\sent": "SENT", "\\draft": "DRAFT", "\\drafts": "DRAFT", "\\important": "IMPORTANT"}
_CHANGEABLE = {"INBOX": b"\\Inbox", "IMPORTANT": b"\\Important"}
_ESCAPE = re.compile(r"=([0-9A-Fa-f]{2})")
_PLAIN = re.compile(r"[A-Za-z0-9._/-]")


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of labels in IMAP's terms. `folder` is where the message goes, None if it stays; `to_archive`
    if it leaves its folder for the archive.
    """

    add_flags: frozenset[str]
    remove_flags: frozenset[str]
    folder: Folder | None
    to_archive: bool
    add_labels: frozenset[bytes] = frozenset()
    remove_labels: frozenset[bytes] = frozenset()
    """Gmail's labels, as they are written on the wire."""


def labels_of(folder: Folder, flags: Collection[str]) -> frozenset[str]:
    """The labels of a message in this folder, with these flags."""
    found = {KEYWORD + each.lower() for each in flags if is_label(each)}
    lower = {each.lower() for each in flags}
    if "\\seen" not in lower:
        found.add("UNREAD")
    if "\\flagged" in lower:
        found.add("STARRED")
    found |= {label for each in flags if (label := _gmail_label(each)) is not None}
    if folder.role in ("TRASH", "SPAM"):
        found.discard("INBOX")
    if folder.label is not None:
        found.add(folder.label)
    return frozenset(found)


def _gmail_label(flag: str) -> str | None:
    """The label of core for one of Gmail's; its own starred, which is a flag too, has none here."""
    if not flag.startswith(GMAIL_LABEL):
        return None
    name = flag.removeprefix(GMAIL_LABEL)
    return _SYSTEM.get(name.lower()) if name.startswith("\\") else LABEL + name


def is_label(flag: str) -> bool:
    """Whether a flag is a label of the user."""
    return not flag.startswith(("\\", "$")) and flag.lower() not in _MARKS


def written_keyword(name: str) -> str:
    """The keyword for a label of this name: letters that keywords cannot have are escaped."""
    return "".join(each if _PLAIN.fullmatch(each) else "".join(f"={b:02X}" for b in each.encode()) for each in name)


def name_of_keyword(keyword: str) -> str:
    """The name for people."""
    raw = _ESCAPE.sub(lambda found: chr(int(found.group(1), 16)), keyword)
    try:
        return raw.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return keyword


class Keywords:
    """The keywords that are labels of the user, as far as seen. Servers ignore their case."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}

    def learn(self, flags: Collection[str]) -> None:
        for each in sorted(flags):
            if is_label(each):
                self._written.setdefault(each.lower(), each)

    def labels(self) -> list[MailboxLabel]:
        return [
            MailboxLabel(KEYWORD + lower, name_of_keyword(written), is_system=False)
            for lower, written in sorted(self._written.items())
        ]

    def keyword_of(self, label: str) -> str:
        """How the keyword of this label is written. Raises NoSuchFolder if there can be none."""
        lower = label.removeprefix(KEYWORD)
        if not is_keyword(lower) or not is_label(lower):
            raise NoSuchFolder(lower)
        return self._written.get(lower, lower)


def plan_of(
    folders: FolderMap, keywords: Keywords, here: Folder, add: Collection[str], remove: Collection[str]
) -> Plan:
    """The commands for this change of labels on a message in this folder. Raises NoSuchFolder for an unknown label."""
    if folders.is_gmail:
        return _gmail_plan(folders, keywords, here, add, remove)
    add_flags, remove_flags = set[str](), set[str]()
    target: Folder | None = None
    for label in sorted(add):
        match label:
            case "UNREAD":
                remove_flags.add(SEEN)
            case "STARRED":
                add_flags.add(FLAGGED)
            case _ if label.startswith(KEYWORD):
                add_flags.add(keywords.keyword_of(label))
            case _:
                target = folders.of_label(label)
                if target is None:
                    raise NoSuchFolder(label.removeprefix(FOLDER))
    leaves = False
    for label in sorted(remove):
        match label:
            case "UNREAD":
                add_flags.add(SEEN)
            case "STARRED":
                remove_flags.add(FLAGGED)
            case _ if label.startswith(KEYWORD):
                remove_flags.add(keywords.keyword_of(label))
            case _:
                leaves = leaves or label == here.label
                if folders.of_label(label) is None and not label.startswith(FOLDER):
                    raise NoSuchFolder(label)
    moves = target is not None and target != here
    return Plan(frozenset(add_flags), frozenset(remove_flags), target if moves else None, leaves and target is None)


def _gmail_plan(
    folders: FolderMap, keywords: Keywords, here: Folder, add: Collection[str], remove: Collection[str]
) -> Plan:
    """The same at Gmail, where only the trash and spam are places."""
    flags = _plan_flags(keywords, add, remove)
    target = next((folders.of_role(each) for each in ("TRASH", "SPAM") if each in add), None)
    leaves = here.role in ("TRASH", "SPAM") and (here.label in remove or "INBOX" in add)
    moves = target is not None and target != here
    return Plan(
        *flags,
        target if moves else None,
        leaves and target is None,
        frozenset(_wire_name(folders, each) for each in add if not _is_flag_or_place(each)),
        frozenset(_wire_name(folders, each) for each in remove if not _is_flag_or_place(each)),
    )


def _is_flag_or_place(label: str) -> bool:
    return label in ("UNREAD", "STARRED", "TRASH", "SPAM") or label.startswith(KEYWORD)


def _wire_name(folders: FolderMap, label: str) -> bytes:
    if label in _CHANGEABLE:
        return _CHANGEABLE[label]
    folder = folders.of_label(label)
    if folder is None or not folder.is_label:
        raise NoSuchFolder(label.removeprefix(LABEL))
    return folder.wire


def _plan_flags(
    keywords: Keywords, add: Collection[str], remove: Collection[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The flags to add and to remove for this change. Unread is the opposite of a flag."""

    def of(labels: Collection[str], opposite: Collection[str]) -> frozenset[str]:
        found = {keywords.keyword_of(each) for each in labels if each.startswith(KEYWORD)}
        found |= {FLAGGED} if "STARRED" in labels else set()
        return frozenset(found | ({SEEN} if "UNREAD" in opposite else set()))

    return of(add, remove), of(remove, add)
