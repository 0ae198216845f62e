"""The folders of a mailbox: which is the trash, the archive and so on, and which are labels. Pure.

The server says what a folder is for (SPECIAL-USE); where it does not, the usual names in many languages do.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from postroom.core.actions.label_changes import FOLDER
from postroom.core.mail.mailbox import MailboxLabel
from postroom.mailboxes.imap.answers import Listed, Namespace
from postroom.mailboxes.imap.folder_names import decoded, encoded

Role = Literal["INBOX", "TRASH", "SPAM", "SENT", "DRAFT", "ARCHIVE"]
ROLES: tuple[Role, ...] = ("INBOX", "ARCHIVE", "SENT", "DRAFT", "SPAM", "TRASH")
LABELLED: frozenset[str] = frozenset({"INBOX", "TRASH", "SPAM", "SENT", "DRAFT"})
"""The roles that are labels of core; what is in the archive has none."""
LABEL = "label:"
"""Begins the labels of the user at Gmail, of which a message can have several."""
_AT_GMAIL: frozenset[Role] = frozenset({"ARCHIVE", "SPAM", "TRASH"})
_VIEWS = frozenset({"\\important", "\\flagged"})
CREATED: Mapping[Role, str] = {
    "TRASH": "Trash",
    "SPAM": "Junk",
    "SENT": "Sent",
    "DRAFT": "Drafts",
    "ARCHIVE": "Archive",
}
"""The name of a folder that has to be made, since the mailbox has none for this."""
_USES: Mapping[str, Role] = {
    "\\trash": "TRASH",
    "\\junk": "SPAM",
    "\\sent": "SENT",
    "\\drafts": "DRAFT",
    "\\archive": "ARCHIVE",
}
_NAMES: Mapping[Role, str] = {
    "TRASH": "trash|bin|deleted|deleted items|deleted messages|papierkorb|gelöscht|gelöschte elemente|"
    "gelöschte objekte|corbeille|éléments supprimés|papelera|elementos eliminados|cestino|posta eliminata|"
    "lixeira|itens excluídos|prullenbak|verwijderde items|kosz|elementy usunięte|papperskorg|borttagna objekt|"
    "papirkurv|roskakori|koš|корзина|удаленные|çöp kutusu|ゴミ箱|ごみ箱|已删除邮件|已删除|垃圾桶|휴지통",
    "SPAM": "junk|spam|junk e-mail|junk email|bulk mail|unerwünscht|junk-e-mail|indésirables|courrier indésirable|"
    "correo no deseado|posta indesiderata|lixo eletrônico|ongewenste e-mail|wiadomości-śmieci|skräppost|спам|"
    "迷惑メール|垃圾邮件|스팸메일함",
    "SENT": "sent|sent items|sent mail|sent messages|gesendet|gesendete elemente|gesendete objekte|envoyés|"
    "éléments envoyés|messages envoyés|enviados|elementos enviados|posta inviata|inviati|itens enviados|verzonden|"
    "verzonden items|wysłane|elementy wysłane|skickat|отправленные|送信済み|送信済みアイテム|"
    "已发送|已发送邮件|보낸편지함",
    "DRAFT": "drafts|draft|entwürfe|brouillons|borradores|bozze|rascunhos|concepten|kopie robocze|utkast|черновики|"
    "下書き|草稿|草稿箱|임시보관함",
    "ARCHIVE": "archive|archives|archiv|archivio|archivo|arquivo|archief|archiwum|arkiv|архив|アーカイブ|归档|보관함",
}
_ROLE_OF_NAME: Mapping[str, Role] = {name: role for role, names in _NAMES.items() for name in names.split("|")}
_HIDDEN = frozenset({"\\noselect", "\\nonexistent"})


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that can be opened. `name` is for people, with `/` between its parts."""

    wire: bytes
    name: str
    role: Role | None = None
    is_label: bool = False
    """Whether it only shows the messages with a label, as at Gmail."""

    @property
    def label(self) -> str | None:
        """The label of the messages in it; None for the archive."""
        if self.role is None:
            return (LABEL if self.is_label else FOLDER) + self.name
        return self.role if self.role in LABELLED else None


class FolderMap:
    """The folders of one mailbox, by what they are for and by their labels.

    At Gmail a message is in one of all mail, spam and trash, and every other folder shows those with a label. If its
    owner hides all mail or the trash from IMAP, the folders are taken for folders.
    """

    def __init__(self, listed: Sequence[Listed], namespace: Namespace | None, *, is_gmail: bool = False) -> None:
        uses = {each for folder in listed for each in folder.attributes}
        self.is_gmail = is_gmail and {"\\all", "\\trash"} <= uses
        hidden = _HIDDEN | _VIEWS if self.is_gmail else _HIDDEN
        shown = [each for each in listed if not each.attributes & hidden]
        own = _separator(listed, namespace)
        self._separator, self._prefix = own, _prefix(listed, namespace, own)
        roles = _roles(shown, self._prefix, own)
        names = _names(shown, self._prefix, own)
        self.folders: tuple[Folder, ...] = tuple(
            Folder(each.name, names[each.name], roles.get(each.name), self.is_gmail and each.name not in roles)
            for each in shown
        )
        self.stores: tuple[Folder, ...] = (
            tuple(each for each in self.folders if each.role in _AT_GMAIL) if self.is_gmail else self.folders
        )
        """The folders that together have every message."""
        self._by_label = {each.label: each for each in self.folders if each.label is not None}
        self._by_role = {each.role: each for each in self.folders if each.role is not None}

    def of_role(self, role: Role) -> Folder | None:
        return self._by_role.get(role)

    def of_label(self, label: str) -> Folder | None:
        """The folder whose messages bear this label."""
        return self._by_label.get(label)

    def with_labels(self, labels: Collection[str]) -> Folder | None:
        """The folder of a message with these labels: what has none of a folder is in the archive."""
        found = (self.of_label(each) for each in sorted(labels))
        return next((each for each in found if each is not None and each in self.stores), self.of_role("ARCHIVE"))

    def at(self, wire: bytes) -> Folder | None:
        return next((each for each in self.folders if each.wire == wire), None)

    def to_create(self, name: str) -> bytes:
        """How a new folder of the user is named on the wire: in their namespace, with the server's separator."""
        inner = name.replace("/", self._separator) if self._separator and self._separator != "/" else name
        return self._prefix + encoded(inner)

    def search_order(self, first: Collection[str] = ()) -> list[Folder]:
        """The folders in which a message is looked for, the likely ones first; the trash and spam last. Of the user's
        own folders, those named `first`, in lower case.
        """

        def rank(folder: Folder) -> float:
            if folder.role is None and folder.name.casefold() in first:
                return 0.5
            return {"INBOX": 0, "ARCHIVE": 1, None: 2, "SENT": 3, "DRAFT": 4, "SPAM": 5, "TRASH": 6}[folder.role]

        return sorted(self.stores, key=rank)

    def labels(self) -> Iterable[MailboxLabel]:
        """The labels of core that every mailbox has, and one for each folder of the user."""
        for each in ("INBOX", "SPAM", "TRASH", "SENT", "DRAFT", "UNREAD", "STARRED"):
            yield MailboxLabel(each, each, is_system=True)
        for folder in self.folders:
            if folder.role is None and folder.label is not None:
                yield MailboxLabel(folder.label, folder.name, is_system=False)


def _separator(listed: Sequence[Listed], namespace: Namespace | None) -> str:
    if namespace is not None and namespace.separator:
        return namespace.separator
    return next((each.separator for each in listed if each.separator), "/")


def _prefix(listed: Sequence[Listed], namespace: Namespace | None, separator: str) -> bytes:
    """The prefix of the names of all folders of the user. A server that does not say shows it by what it lists."""
    if namespace is not None:
        return namespace.prefix
    below = b"INBOX" + separator.encode()
    others = [each.name for each in listed if each.name.upper() != b"INBOX"]
    return below if others and separator and all(each.startswith(below) for each in others) else b""


def _names(listed: Sequence[Listed], prefix: bytes, separator: str) -> dict[bytes, str]:
    """As the user names them: without what the server puts before all of their folders. No two have the same name: a
    label would otherwise lead to the wrong folder.
    """
    found: dict[bytes, str] = {}
    for each in sorted(listed, key=lambda one: not one.name.startswith(prefix)):
        name = _readable(each.name.removeprefix(prefix) or each.name, each.separator or separator)
        found[each.name] = name if name not in found.values() else decoded(each.name)
    return found


def _readable(wire: bytes, separator: str) -> str:
    """With `/` between the parts. One that is part of a name is shown as another stroke that looks like it."""
    name = decoded(wire)
    return name if separator in ("", "/") else name.replace("/", "\u2215").replace(separator, "/")


def _roles(listed: Sequence[Listed], prefix: bytes, separator: str) -> dict[bytes, Role]:
    """One folder for each role: the first that the server says is for it, or else the first with a usual name."""
    found: dict[Role, bytes] = {}
    for each in listed:
        if each.name.upper() == b"INBOX":
            found.setdefault("INBOX", each.name)
    for each in listed:
        for use in each.attributes & _USES.keys():
            if each.name not in found.values():
                found.setdefault(_USES[use], each.name)
    # Gmail has no archive of its own: all mail is.
    if "ARCHIVE" not in found and (everything := next((e for e in listed if "\\all" in e.attributes), None)):
        found["ARCHIVE"] = everything.name
    for each in listed:
        plain = decoded(each.name.removeprefix(prefix) if prefix else each.name)
        for top in ("INBOX", "[Gmail]", "[Google Mail]"):
            plain = plain.removeprefix(f"{top}{each.separator or separator}")
        role = _ROLE_OF_NAME.get(plain.casefold())
        if role is not None and role not in found and each.name not in found.values():
            found[role] = each.name
    return {name: role for role, name in found.items()}
