"""IMAP's folders, flags and keywords as labels, and the changes of labels as commands. Pure.

A message is in one folder at a time: a folder of the user is a place, like the inbox and the trash, so putting it into
one takes it out of the other. Keywords are labels that it can have several of.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from postroom.core.actions.action import FOLDER
from postroom.core.mail.mailbox import MailboxLabel
from postroom.imap.commands import is_keyword
from postroom.imap.errors import NoSuchFolder
from postroom.imap.folders import Folder, FolderMap

KEYWORD = "keyword:"
SEEN, FLAGGED, DELETED = "\\Seen", "\\Flagged", "\\Deleted"
# Marks of mail programs about the message, which are nobody's label.
_MARKS = frozenset({"junk", "nonjunk", "notjunk", "forwarded", "redirected", "hasattachment", "hasnoattachment"})
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


def labels_of(folder: Folder, flags: Collection[str]) -> frozenset[str]:
    """The labels of a message in this folder, with these flags."""
    found = {KEYWORD + each.lower() for each in flags if is_label(each)}
    lower = {each.lower() for each in flags}
    if "\\seen" not in lower:
        found.add("UNREAD")
    if "\\flagged" in lower:
        found.add("STARRED")
    if folder.label is not None:
        found.add(folder.label)
    return frozenset(found)


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
