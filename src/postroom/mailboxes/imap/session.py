"""The commands of IMAP that Postroom uses, with typed answers. Messages are named by UID only, and read with PEEK only:
nothing here marks a message as read.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from itertools import pairwise

from postroom.mailboxes.imap.answers import (
    Changes,
    Copied,
    Fetched,
    Listed,
    Namespace,
    Selected,
    copied_in,
    fetched_in,
    listed_in,
    selected_in,
    status_in,
    vanished_ranges,
)
from postroom.mailboxes.imap.commands import (
    LARGEST_UID,
    MOST_IN_SET,
    Command,
    Literal,
    Part,
    command,
    flag_list,
    read_uid_set,
    string,
    uid_set,
)
from postroom.mailboxes.imap.connection import LARGEST_ANSWER, Check, Connection
from postroom.mailboxes.imap.errors import AnswerTooLarge, BadAnswer, NoSuchFolder, ServerFailed, refusal
from postroom.mailboxes.imap.folder_names import decoded
from postroom.mailboxes.imap.identity import TEXT_ITEM, Scheme, items_for, needs_text, scheme_of, with_own_text
from postroom.mailboxes.imap.responses import Data

BODY_CHUNK = 512 * 2**10
MOST_CHANGES = 1_000_000


class ImapSession:
    """A connection that is signed in, and the folder that is open in it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.selected: Selected | None = None
        self.searches_utf8 = True
        """Whether searches may have more than ASCII in them; a server tells by refusing one."""
        self.enabled: frozenset[str] = frozenset()
        self._asked_for: set[str] = set()
        self._scheme: Scheme | None = None

    @property
    def scheme(self) -> Scheme:
        """How messages are identified: as the server can best, unless the mailbox began in another way."""
        return self._scheme or scheme_of(self.connection.capabilities)

    def keep_scheme(self, scheme: Scheme) -> None:
        """Identify messages as they were before: under other ids, all of them would be new."""
        self._scheme = scheme

    def offers(self, *extensions: str) -> bool:
        return self.connection.offers(*extensions)

    async def select(self, folder: bytes, *, read_only: bool = False, known: tuple[int, int] | None = None) -> Selected:
        """Open a folder. `known` is its UIDVALIDITY and modification sequence of last time, for QRESYNC, which must be
        enabled; CONDSTORE is asked for where it is offered.
        """
        parts: list[Part] = [string(folder)]
        if known is not None:
            parts.append(f"(QRESYNC ({known[0]} {known[1]}))".encode())
        elif self.offers("CONDSTORE"):
            parts.append(b"(CONDSTORE)")
        self.selected = None
        name = "EXAMINE" if read_only else "SELECT"
        answer = await self.connection.ask(command(name, *parts))
        if answer.status.kind != "OK":
            error = refusal(name, answer.status.kind, answer.status.code)
            # Some servers refuse a folder that is not there without saying so.
            is_missing = isinstance(error, ServerFailed) and not await self.list_folders(b"", folder)
            raise NoSuchFolder(decoded(folder)) if is_missing else error
        self.selected = selected_in(folder, answer, read_only)
        return self.selected

    async def unselect(self) -> None:
        """Leave the open folder, without removing what is marked as deleted."""
        if self.selected is not None:
            self.selected = None
            await self.connection.ask(command("UNSELECT" if self.offers("UNSELECT") else "NOOP"))

    async def fetch(
        self, uids: Collection[int], items: str, *, changed_since: int | None = None, most: int = LARGEST_ANSWER
    ) -> list[Fetched]:
        """These items of these messages, as many as are there."""
        found: dict[int, Fetched] = {}
        ordered = sorted(set(uids))
        since = "" if changed_since is None else f" (CHANGEDSINCE {changed_since})"
        for begin in range(0, len(ordered), MOST_IN_SET):
            part = ordered[begin : begin + MOST_IN_SET]
            wanted = command("UID FETCH", f"{uid_set(part)} ({items}){since}".encode())
            answer = await self.connection.run(wanted, most=most)
            for each in fetched_in(answer.of("FETCH")):
                before = found.get(each.uid)
                found[each.uid] = each if before is None else Fetched(each.uid, {**before.items, **each.items})
        return [found[uid] for uid in ordered if uid in found]

    async def fetch_identified(
        self, uids: Collection[int], items: str, scheme: Scheme, *, most: int = LARGEST_ANSWER
    ) -> list[Fetched]:
        """The same, with everything that tells the id of each message."""
        fetched = await self.fetch(uids, f"{items} {items_for(scheme)}", most=most)
        found = [with_own_text(each, scheme) for each in fetched]
        unsure = [each.uid for each in found if needs_text(each, scheme)]
        texts = {each.uid: each.items for each in await self.fetch(unsure, TEXT_ITEM)} if unsure else {}
        return [Fetched(each.uid, {**each.items, **texts.get(each.uid, {})}) for each in found]

    @property
    def flag_items(self) -> str:
        """The items to fetch for the flags of a message; at Gmail its labels are among them."""
        return "FLAGS X-GM-LABELS" if self.offers("X-GM-EXT-1") else "FLAGS"

    async def changes(self, uids: str, since: int) -> Changes:
        """The flags of those of these messages that changed since this modification sequence, and with QRESYNC, which
        must be enabled, those that are gone. However many there are, only this is kept of each.
        """
        with_vanished = "QRESYNC" in self.enabled
        wanted = frozenset(self.flag_items.split())
        flags: dict[int, frozenset[str]] = {}
        vanished: list[tuple[int, int]] = []

        def keep(data: Data) -> bool:
            if data.kind == "FETCH":
                found = [each for each in fetched_in([data]) if each.items.keys() >= wanted]
                flags.update((each.uid, each.flags) for each in found)
            elif data.kind == "VANISHED":
                vanished.extend(vanished_ranges(data))
            if len(flags) + len(vanished) > MOST_CHANGES:
                raise AnswerTooLarge(f"more than {MOST_CHANGES:,} changes in one folder")
            return data.kind in ("FETCH", "VANISHED")

        modifier = f"(CHANGEDSINCE {since}{' VANISHED' if with_vanished else ''})"
        await self.connection.run(command("UID FETCH", f"{uids} ({self.flag_items}) {modifier}".encode()), sink=keep)
        return Changes(flags, vanished if with_vanished else None)

    async def body(self, uid: int, size: int, part: str = "") -> AsyncGenerator[bytes]:
        """A message, or a part of it such as HEADER, in chunks: no answer is larger than one chunk. Empty if gone."""
        at = 0
        while True:
            item = f"BODY.PEEK[{part}]<{at}.{BODY_CHUNK}>"
            answer = await self.connection.run(command("UID FETCH", f"{uid} ({item})".encode()))
            chunks = [each.content(f"BODY[{part}]") for each in fetched_in(answer.of("FETCH")) if each.uid == uid]
            chunk = max(chunks, key=len, default=b"")
            if len(chunk) > BODY_CHUNK:
                raise BadAnswer("a part of a message is larger than was asked for")
            if chunk:
                yield chunk
            at += len(chunk)
            if len(chunk) < BODY_CHUNK or at >= max(size, BODY_CHUNK) + 2**20:
                return

    async def search(self, *criteria: Part) -> list[int]:
        """The UIDs of the messages that match, in order."""
        spaced: list[Part] = []
        for each in criteria:
            spaced += [b" ", each] if spaced else [each]
        return await self.search_for(spaced)

    async def search_for(self, written: Sequence[Part]) -> list[int]:
        """The same for criteria that are written already, with their spaces and brackets."""
        esearch = self.offers("ESEARCH")
        returning = b"RETURN (ALL) " if esearch else b""
        charset = b"" if all(isinstance(each, bytes) for each in written) else b"CHARSET UTF-8 "
        answer = await self.connection.run(Command("UID SEARCH", (b"UID SEARCH " + returning + charset, *written)))
        found: set[int] = set()
        for data in answer.of("ESEARCH"):
            values = list(data.values)
            for name, value in pairwise(values):
                if isinstance(name, str) and name.upper() == "ALL" and isinstance(value, str):
                    found.update(read_uid_set(value))
        for data in answer.of("SEARCH"):
            found.update(int(each) for each in data.values if isinstance(each, str) and each.isdigit())
        return sorted(uid for uid in found if 1 <= uid <= LARGEST_UID)

    async def store(
        self, uids: Collection[int], sign: str, flags: Collection[str], check: Check | None = None
    ) -> list[Fetched]:
        """Add (`+`) or remove (`-`) flags; what the server says they are then, if it does."""
        wanted = command("UID STORE", uid_set(uids).encode(), f"{sign}FLAGS".encode(), flag_list(flags))
        return fetched_in((await self.connection.run(wanted, check=check)).of("FETCH"))

    async def store_labels(self, uid: int, sign: str, labels: Sequence[bytes], check: Check | None = None) -> None:
        """Gmail's labels, by their names."""
        parts: list[Part] = []
        for each in labels:
            parts.append(each if each.startswith(b"\\") else string(each))
        inner: list[Part] = [b"("]
        for number, each in enumerate(parts):
            inner += [b" ", each] if number else [each]
        wanted = command("UID STORE", str(uid).encode(), f"{sign}X-GM-LABELS.SILENT".encode(), b"")
        await self.connection.run(type(wanted)(wanted.name, (*wanted.parts, *inner, b")")), check=check)

    async def copy(self, uids: Collection[int], folder: bytes, check: Check | None = None) -> Copied | None:
        wanted = command("UID COPY", uid_set(uids).encode(), string(folder))
        return copied_in(await self.connection.run(wanted, check=check))

    async def move(self, uids: Collection[int], folder: bytes, check: Check | None = None) -> Copied | None:
        """Needs MOVE."""
        wanted = command("UID MOVE", uid_set(uids).encode(), string(folder))
        return copied_in(await self.connection.run(wanted, check=check))

    async def expunge(self, uids: Collection[int], check: Check | None = None) -> None:
        """Remove these, which are marked as deleted; needs UIDPLUS. There is no bare EXPUNGE here on purpose: it would
        remove what others have marked.
        """
        await self.connection.run(command("UID EXPUNGE", uid_set(uids).encode()), check=check)

    async def append(
        self, folder: bytes, content: bytes, flags: Collection[str] = (), check: Check | None = None
    ) -> tuple[int, int] | None:
        """Store a message; its UIDVALIDITY and UID, if the server says so."""
        wanted = command("APPEND", string(folder), flag_list(flags), Literal(content))
        match (await self.connection.run(wanted, check=check)).code("APPENDUID"):
            case (str() as validity, str() as uid) if validity.isdigit() and uid.isdigit():
                return int(validity), int(uid)
            case _:
                return None

    async def list_folders(self, reference: bytes = b"", pattern: bytes = b"*") -> list[Listed]:
        """All folders, with their special use where the server tells it."""
        wanted = command("LIST", string(reference), string(pattern))
        if self.offers("LIST-EXTENDED", "SPECIAL-USE"):
            wanted = command("LIST", string(reference), string(pattern), b"RETURN (SPECIAL-USE)")
        return [
            each for data in (await self.connection.run(wanted)).of("LIST") if (each := listed_in(data)) is not None
        ]

    async def status(self, folder: bytes, *items: str) -> dict[str, int]:
        """Figures of a folder, such as UIDNEXT."""
        answer = await self.connection.run(command("STATUS", string(folder), f"({' '.join(items)})".encode()))
        found: dict[str, int] = {}
        for data in answer.of("STATUS"):
            found |= status_in(data)[1]
        return found

    async def all_statuses(self, *items: str) -> dict[bytes, dict[str, int]]:
        """The figures of all folders in one command (LIST-STATUS); empty if the server cannot do that."""
        if not self.offers("LIST-EXTENDED", "LIST-STATUS"):
            return {}
        returning = f"RETURN (STATUS ({' '.join(items)}))".encode()
        answer = await self.connection.run(command("LIST", string(b""), string(b"*"), returning))
        return dict(status_in(data) for data in answer.of("STATUS"))

    async def namespace(self) -> Namespace | None:
        """Where the user's own folders are; None if the server does not say."""
        if not self.offers("NAMESPACE"):
            return None
        for data in (await self.connection.run(command("NAMESPACE"))).of("NAMESPACE"):
            match data.values:
                case ((tuple((bytes() as prefix, bytes() as separator, *_)), *_), *_):
                    return Namespace(prefix, separator.decode("latin-1"))
                case _:
                    return None
        return None

    async def create(self, folder: bytes, check: Check | None = None) -> None:
        await self.connection.run(command("CREATE", string(folder)), check=check)

    async def subscribe(self, folder: bytes, check: Check | None = None) -> None:
        await self.connection.ask(command("SUBSCRIBE", string(folder)), check=check)

    async def enable(self, *extensions: str) -> frozenset[str]:
        """Enable what the server offers of these, each once; what it says it has enabled."""
        wanted = [each for each in extensions if self.offers(each) and each not in self._asked_for]
        if not wanted or not self.offers("ENABLE"):
            return self.enabled
        self._asked_for.update(wanted)
        answer = await self.connection.run(command("ENABLE", " ".join(wanted).encode()))
        self.enabled |= {each.upper() for data in answer.of("ENABLED") for each in data.values if isinstance(each, str)}
        return self.enabled

    async def identify(self, name: str, version: str) -> None:
        """Tell the server who we are, as some require."""
        if self.offers("ID"):
            pairs: list[Part] = [b'("name" ', string(name), b' "version" ', string(version), b")"]
            await self.connection.ask(command("ID", b"".join(each for each in pairs if isinstance(each, bytes))))

    async def noop(self) -> list[Data]:
        return (await self.connection.run(command("NOOP"))).data

    async def log_out(self) -> None:
        """Say goodbye, and close."""
        try:
            await self.connection.ask(command("LOGOUT"), limit_s=5)
        finally:
            self.connection.close()
