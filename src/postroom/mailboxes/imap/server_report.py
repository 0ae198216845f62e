"""The abilities of an IMAP server, and their meaning for the owner of a mailbox, in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from postroom.core.mail.servers import LabelsAs
from postroom.mailboxes.imap.errors import ImapError
from postroom.mailboxes.imap.folder_cache import CachedFolders
from postroom.mailboxes.imap.folders import CREATED, ROLES, Role
from postroom.mailboxes.imap.session import ImapSession

_SHOWN: Mapping[Role, str] = {"ARCHIVE": "archive", "SENT": "sent mail", "TRASH": "trash", "SPAM": "spam"}


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The findings after signing in. `messages` are those in the inbox."""

    deletes_for_good: bool
    reports_at_once: bool
    moves: bool
    takes_keywords: bool
    has_gmail_labels: bool
    folders: Mapping[Role, str]
    other_folders: int
    messages: int

    @property
    def labels_as(self) -> LabelsAs:
        """How labels are best kept there."""
        return "keywords" if self.takes_keywords else "folders"


async def look_at_server(session: ImapSession) -> ServerReport:
    """Ask a server that was signed in to. Nothing is changed in the mailbox."""
    found = await CachedFolders().read(session)
    inbox = found.of_role("INBOX")
    # Opened for writing, since only then a server says which flags it keeps.
    selected = await session.select(b"INBOX" if inbox is None else inbox.wire)
    report = ServerReport(
        deletes_for_good=session.offers("UIDPLUS"),
        reports_at_once=session.offers("IDLE"),
        moves=session.offers("MOVE"),
        takes_keywords=selected.takes_keywords,
        has_gmail_labels=session.offers("X-GM-EXT-1"),
        folders={role: folder.name for role in ROLES if (folder := found.of_role(role)) is not None},
        other_folders=sum(each.role is None for each in found.folders),
        messages=selected.exists,
    )
    try:
        await session.unselect()
    except ImapError:
        session.connection.close()
    return report


def in_words(report: ServerReport, labels_as: LabelsAs) -> list[str]:
    """One line for each thing that the owner may want to know."""
    named = [f"{word}: {report.folders[role]}" for role, word in _SHOWN.items() if role in report.folders]
    missing = [
        f"{CREATED[role]} ({word})" for role, word in _SHOWN.items() if role not in report.folders and role != "SPAM"
    ]
    lines = [
        f"The inbox has {report.messages:,} messages; there are {report.other_folders:,} folders of your own.",
        f"Folders found: {'; '.join(named) or 'none but the inbox'}.",
    ]
    if missing:
        lines.append(f"These folders are made when they are first needed: {', '.join(missing)}.")
    lines.append(
        "New mail is noticed at once."
        if report.reports_at_once
        else "The server does not announce new mail (no IDLE): the mailbox is looked at every half minute."
    )
    lines.append(
        "Mail can be deleted for good, when you approve it."
        if report.deletes_for_good
        else "Mail cannot be deleted for good here (no UIDPLUS): a delete puts it into the trash and says so."
    )
    lines.append(_labels_in_words(report, labels_as))
    return lines


def _labels_in_words(report: ServerReport, labels_as: LabelsAs) -> str:
    if report.has_gmail_labels:
        return "Labels are Gmail's own labels."
    if labels_as == "keywords":
        return "Labels are keywords: a message can have several, and most mail programs show them as tags."
    why = "" if report.takes_keywords else " (the server keeps no keywords)"
    return f"Labels are folders{why}: applying one moves the message there."
