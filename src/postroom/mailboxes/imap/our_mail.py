"""Finds mail of ours in the folders of a mailbox, drafts and sent, by the headers that it carries.

Headers are read rather than searched for: not every server finds every header. Only where a mail is looked for in all
folders does a search come first, by the mark and by the Message-ID, which contains the mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.parser import BytesHeaderParser
from uuid import UUID

from postroom.core.mail.addresses import addresses
from postroom.core.mail.carrier import MARK, SOURCE, SentMail
from postroom.mailboxes.imap.answers import Fetched, written_day
from postroom.mailboxes.imap.errors import FolderForbidden, NoSuchFolder
from postroom.mailboxes.imap.folders import Folder, Role
from postroom.mailboxes.imap.identity import id_of
from postroom.mailboxes.imap.places import Finder, Place

ITEM = f"BODY.PEEK[HEADER.FIELDS ({MARK} {SOURCE} MESSAGE-ID FROM TO AUTO-SUBMITTED)]"
# How many of the newest messages of a folder are read at most.
MOST_READ = 2_000
_AT_ONCE = 250
# Days are compared in the server's time zone, and clocks differ.
EARLIER = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class OurMail:
    """A mail of ours, and where it is."""

    place: Place
    mark: UUID
    head: Message
    arrived: datetime

    def has(self, *flags: str) -> bool:
        return {each.lower() for each in flags} <= {each.lower() for each in self.place.flags}

    @property
    def message_id(self) -> str:
        return str(self.head.get("Message-ID", "")).strip()

    @property
    def senders(self) -> list[str]:
        return addresses(str(self.head.get("From", "")))

    def as_sent(self, id: str) -> SentMail:
        to = addresses(str(self.head.get("To", "")))
        answered = to[0] if to and str(self.head.get("Auto-Submitted", "")).strip() == "auto-replied" else None
        return SentMail(id, self.mark, str(self.head.get(SOURCE, "")).strip() or None, self.arrived, answered)


async def newest_in(finder: Finder, role: Role, most: int, criteria: bytes = b"UNDELETED") -> list[OurMail]:
    """Our mail among the newest messages of the folder for this, the newest first."""
    folder = finder.folders.of_role(role)
    return [] if folder is None else await _in_folder(finder, folder, [criteria], most)


async def drafts_in(finder: Finder, mark: UUID | None = None, criteria: bytes = b"UNDELETED") -> list[OurMail]:
    """Our drafts, those with this mark."""
    found = await newest_in(finder, "DRAFT", MOST_READ, criteria)
    return [each for each in found if mark is None or each.mark == mark]


async def copy_of(finder: Finder, draft: OurMail) -> OurMail | None:
    """The copy of the draft in sent mail. It may be marked as deleted: it shows all the same that it was there."""
    day = written_day(draft.arrived - EARLIER)
    sent = await newest_in(finder, "SENT", MOST_READ, b"SINCE " + day)
    return next((each for each in sent if each.mark == draft.mark), None)


async def sent_since(finder: Finder, since: datetime, address: str) -> list[OurMail]:
    """Our mail that this address has sent since then, in whatever folder it is now; each once."""
    found: dict[UUID, OurMail] = {}
    day = written_day(since - EARLIER)
    for folder in _with_sent_mail(finder):
        # Only where nearly all mail is our own, all headers are read.
        own = [b"SINCE", day] if folder.role == "SENT" else [b"SINCE", day, b"HEADER", MARK.encode(), b'""']
        for each in await _in_folder(finder, folder, own, None):
            if address.lower() in each.senders and not each.has("\\Draft"):
                found.setdefault(each.mark, each)
    return list(found.values())


async def find_sent(finder: Finder, mark: UUID, since: datetime) -> OurMail | None:
    """The mail with this mark, in any folder but the drafts: in sent mail by its headers, elsewhere by a search."""
    day = written_day(since - EARLIER)
    for folder in _with_sent_mail(finder):
        searches: list[list[bytes]] = [[b"SINCE", day]]
        if folder.role != "SENT":
            text = str(mark).encode()
            searches = [[b"HEADER MESSAGE-ID", text], [b"SINCE", day, b"HEADER", MARK.encode(), text]]
        for criteria in searches:
            for each in await _in_folder(finder, folder, criteria, MOST_READ):
                if each.mark == mark and not each.has("\\Draft"):
                    return each
    return None


async def id_in_mailbox(finder: Finder, mail: OurMail) -> str:
    """The id of the message, as the mailbox knows it."""
    await finder.open(mail.place.folder, is_fresh=True)
    for each in await finder.session.fetch_identified([mail.place.uid], "UID", finder.scheme):
        if (id := id_of(each, finder.scheme)) is not None:
            return id
    return mail.message_id


def _with_sent_mail(finder: Finder) -> list[Folder]:
    """Sent mail first, then where its owner may have put it."""
    others = [each for each in finder.folders.search_order() if each.role not in ("SENT", "DRAFT")]
    sent = finder.folders.of_role("SENT")
    return others if sent is None else [sent, *others]


async def _in_folder(finder: Finder, folder: Folder, criteria: Sequence[bytes], most: int | None) -> list[OurMail]:
    """Our mail among what matches, the newest first; at most so many messages are read."""
    try:
        selected = await finder.open(folder)
        uids = await finder.session.search(*criteria)
    except (NoSuchFolder, FolderForbidden):
        return []
    newest = uids[::-1] if most is None else uids[::-1][:most]
    found: list[OurMail] = []
    for begin in range(0, len(newest), _AT_ONCE):
        for each in await finder.session.fetch(newest[begin : begin + _AT_ONCE], f"FLAGS INTERNALDATE {ITEM}"):
            if (ours := _ours(each, folder, selected.uidvalidity)) is not None:
                found.append(ours)
    return sorted(found, key=lambda each: each.place.uid, reverse=True)


def _ours(message: Fetched, folder: Folder, uidvalidity: int) -> OurMail | None:
    content = next((message.content(name) for name in message.items if name.startswith("BODY[HEADER.FIELDS")), b"")
    head = BytesHeaderParser().parsebytes(content)
    try:
        mark = UUID(str(head.get(MARK, "")).strip())
    except ValueError:
        return None
    place = Place(folder, uidvalidity, message.uid, message.flags)
    return OurMail(place, mark, head, message.internal_date or datetime.fromtimestamp(0, UTC))
