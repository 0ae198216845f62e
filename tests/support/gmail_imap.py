"""Gmail over IMAP, emulated at the protocol: labels as folders, X-GM-MSGID, X-GM-THRID, X-GM-LABELS and X-GM-RAW, after
https://developers.google.com/gmail/imap/imap-extensions. Folders have German names, as for a German user.

A message is in all mail, the trash or spam; every other folder shows those with its label, each with a UID of its own.
The label of the open folder is not among X-GM-LABELS. Searches know what the product asks for, and no more.
"""

import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from functools import partial

from postroom.core.mail.gate import Gate
from postroom.mailboxes.imap.account import ImapAccount, open_session
from postroom.mailboxes.imap.mailbox import ImapMailbox
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.wire import Endpoint
from support.patience import PATIENCE_S
from support.scripted_imap import Talk, scripted_imap

CAPABILITIES = (
    b"IMAP4rev1 UNSELECT IDLE NAMESPACE ID CHILDREN X-GM-EXT-1 UIDPLUS ENABLE MOVE CONDSTORE SPECIAL-USE SASL-IR "
    b"AUTH=PLAIN"
)
ALL, TRASH, SPAM = "[Google Mail]/Alle Nachrichten", "[Google Mail]/Papierkorb", "[Google Mail]/Spam"
SPECIAL = {
    ALL: "\\All",
    TRASH: "\\Trash",
    SPAM: "\\Junk",
    "[Google Mail]/Gesendet": "\\Sent",
    "[Google Mail]/Entw&APw-rfe": "\\Drafts",
    "[Google Mail]/Markiert": "\\Flagged",
    "[Google Mail]/Wichtig": "\\Important",
}
_LABEL_OF = {
    "INBOX": "\\Inbox",
    "[Google Mail]/Gesendet": "\\Sent",
    "[Google Mail]/Entw&APw-rfe": "\\Draft",
    "[Google Mail]/Wichtig": "\\Important",
}
_TOKEN = re.compile(rb'\s*(?:"((?:[^"\\]|\\.)*)"|([()])|(BODY\.PEEK\[[^\]]*\](?:<[\d.]+>)?)|([^\s()"]+))')


@dataclass
class Kept:
    """A message as Gmail has it. Labels of the user are written in modified UTF-7."""

    msgid: int
    raw: bytes
    date: datetime
    labels: set[str]
    flags: set[str] = field(default_factory=set[str])
    store: str = ALL
    modseq: int = 1
    uids: dict[str, int] = field(default_factory=dict[str, int])


class GmailOverImap:
    """One mailbox."""

    def __init__(self) -> None:
        self.messages: dict[int, Kept] = {}
        self.labels: list[str] = []
        self.heard: list[bytes] = []
        self._next_uid: dict[str, int] = {}
        self._modseq = 1
        self._ids = 1_278_455_344_230_334_865

    def deliver(self, raw: bytes, *labels: str) -> str:
        """Bring mail into the inbox; its id in the product."""
        self._ids += 1
        content = raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        date = datetime(2026, 11, 17, 9, tzinfo=UTC) + timedelta(seconds=len(self.messages))
        self.messages[self._ids] = Kept(self._ids, content, date, {"\\Inbox", *labels})
        self.settle()
        return f"g-{self._ids}"

    def kept(self, id: str) -> Kept:
        return self.messages[int(id.removeprefix("g-"))]

    def folders(self) -> list[str]:
        return ["INBOX", *SPECIAL, *self.labels]

    def settle(self) -> None:
        """Give each message a UID in each folder that shows it now, and take those from it that do not any more."""
        for message in self.messages.values():
            shown = {each for each in self.folders() if _shows(each, message)}
            if shown != message.uids.keys():
                self.touch(message)
            message.uids = {each: uid for each, uid in message.uids.items() if each in shown}
            for folder in sorted(shown - message.uids.keys()):
                message.uids[folder] = self._next_uid.get(folder, 1)
                self._next_uid[folder] = message.uids[folder] + 1

    def touch(self, message: Kept) -> None:
        self._modseq += 1
        message.modseq = self._modseq

    def figures(self, folder: str) -> dict[str, int]:
        there = [each for each in self.messages.values() if folder in each.uids]
        return {
            "UIDVALIDITY": 7,
            "UIDNEXT": self._next_uid.get(folder, 1),
            "HIGHESTMODSEQ": self._modseq,
            "MESSAGES": len(there),
        }

    def move(self, message: Kept, folder: str) -> None:
        """Into the trash or spam: it leaves the inbox. Out of them: it is archived, or gets the label."""
        message.store = folder if folder in (TRASH, SPAM) else ALL
        if message.store != ALL:
            message.labels.discard("\\Inbox")
        elif folder != ALL:
            message.labels.add(_LABEL_OF.get(folder, folder))

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncGenerator[int]:
        """The port."""

        async def script(talk: Talk) -> None:
            talk.say(b"* OK [CAPABILITY " + CAPABILITIES + b"] Gimap ready")
            await _Connection(self, talk).run()

        async with scripted_imap(script) as port:
            yield port


def _shows(folder: str, message: Kept) -> bool:
    if folder in (ALL, TRASH, SPAM):
        return message.store == folder
    if folder == "[Google Mail]/Markiert":
        return message.store == ALL and "\\Flagged" in message.flags
    return message.store == ALL and _LABEL_OF.get(folder, folder) in message.labels


class _Connection:
    def __init__(self, gmail: GmailOverImap, talk: Talk) -> None:
        self._gmail = gmail
        self._talk = talk
        self._folder = ""

    async def run(self) -> None:
        while True:
            line = await self._command()
            self._gmail.heard.append(line)
            tag, *words = [_text(each) for each in _tokens(line)]
            name = " ".join(words[:2]).upper() if words[0].upper() == "UID" else words[0].upper()
            given = words[2:] if name.startswith("UID ") else words[1:]
            handle: Callable[[list[str]], str | None] | None = getattr(
                self, f"_do_{name.lower().replace(' ', '_')}", None
            )
            said = "BAD unknown" if handle is None else (handle(given) or "OK done")
            self._gmail.settle()
            self._talk.say(f"{tag} {said}".encode())
            if name == "LOGOUT":
                return

    async def _command(self) -> bytes:
        """A whole command; its literals become quoted strings."""
        line = b""
        while True:
            part = await self._talk.reader.readline()
            if not part:
                raise EOFError
            line += part.rstrip(b"\r\n")
            literal = re.search(rb"\{(\d+)\}\Z", line)
            if literal is None:
                return line
            self._talk.say(b"+ go on")
            content = await self._talk.reader.readexactly(int(literal.group(1)))
            line = line[: literal.start()] + b'"' + content.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'

    def _do_capability(self, given: list[str]) -> None:
        self._talk.say(b"* CAPABILITY " + CAPABILITIES)

    def _do_authenticate(self, given: list[str]) -> str:
        return f"OK [CAPABILITY {CAPABILITIES.decode()}] in"

    _do_login = _do_authenticate

    def _do_noop(self, given: list[str]) -> None:
        pass

    _do_id = _do_subscribe = _do_logout = _do_enable = _do_noop

    def _do_namespace(self, given: list[str]) -> None:
        self._talk.say(b'* NAMESPACE (("" "/")) NIL NIL')

    def _do_list(self, given: list[str]) -> None:
        self._talk.say(
            b'* LIST (\\HasNoChildren) "/" "INBOX"', b'* LIST (\\HasChildren \\Noselect) "/" "[Google Mail]"'
        )
        for folder, use in SPECIAL.items():
            self._talk.say(f'* LIST (\\HasNoChildren {use}) "/" "{folder}"'.encode())
        for folder in self._gmail.labels:
            self._talk.say(f'* LIST (\\HasNoChildren) "/" {_quoted(folder)}'.encode())

    def _do_create(self, given: list[str]) -> str | None:
        if given[0] in self._gmail.folders():
            return "NO [ALREADYEXISTS] there is one"
        self._gmail.labels.append(given[0])
        return None

    def _do_status(self, given: list[str]) -> str | None:
        folder, wanted = given[0], {each.upper() for each in given[1:]}
        if folder not in self._gmail.folders():
            return "NO [NONEXISTENT] none"
        figures = self._gmail.figures(folder)
        listed = " ".join(f"{name} {value}" for name, value in figures.items() if name in wanted)
        self._talk.say(f"* STATUS {_quoted(folder)} ({listed})".encode())
        return None

    def _do_select(self, given: list[str]) -> str | None:
        if given[0] not in self._gmail.folders():
            return "NO [NONEXISTENT] none"
        self._folder = given[0]
        figures = self._gmail.figures(self._folder)
        self._talk.say(
            b"* FLAGS (\\Answered \\Flagged \\Draft \\Deleted \\Seen)",
            b"* OK [PERMANENTFLAGS (\\Answered \\Flagged \\Draft \\Deleted \\Seen \\*)] ok",
            f"* {figures['MESSAGES']} EXISTS".encode(),
            *(f"* OK [{name} {figures[name]}] ok".encode() for name in ("UIDVALIDITY", "UIDNEXT", "HIGHESTMODSEQ")),
        )
        return "OK [READ-WRITE] open"

    def _do_unselect(self, given: list[str]) -> None:
        self._folder = ""

    def _there(self) -> list[Kept]:
        found = [each for each in self._gmail.messages.values() if self._folder in each.uids]
        return sorted(found, key=lambda each: each.uids[self._folder])

    def _named(self, uids: str) -> Iterator[Kept]:
        for part in uids.split(","):
            first, _, last = part.partition(":")
            low, high = int(first), 2**32 if last == "*" else int(last or first)
            yield from (each for each in self._there() if low <= each.uids[self._folder] <= high)

    def _do_uid_fetch(self, given: list[str]) -> None:
        items = [each for each in given[1:] if each not in ("(", ")")]
        since = int(items[items.index("CHANGEDSINCE") + 1]) if "CHANGEDSINCE" in items else 0
        for message in self._named(given[0]):
            if message.modseq <= since:
                continue
            uid = message.uids[self._folder]
            shown = [
                f"UID {uid}".encode(),
                *(each for item in items if (each := self._item(message, item)) is not None),
            ]
            self._talk.say(b"* %d FETCH (" % uid + b" ".join(shown) + b")")

    def _item(self, message: Kept, item: str) -> bytes | None:
        match item.upper():
            case "FLAGS":
                return f"FLAGS ({' '.join(sorted(message.flags))})".encode()
            case "INTERNALDATE":
                return f'INTERNALDATE "{message.date:%d-%b-%Y %H:%M:%S} +0000"'.encode()
            case "RFC822.SIZE":
                return b"RFC822.SIZE %d" % len(message.raw)
            case "X-GM-MSGID" | "X-GM-THRID":
                return f"{item} {message.msgid}".encode()
            case "X-GM-LABELS":
                own = _LABEL_OF.get(self._folder, self._folder)
                return f"X-GM-LABELS ({' '.join(_quoted(each) for each in sorted(message.labels - {own}))})".encode()
            case name if name.startswith("BODY.PEEK["):
                return _body(message.raw, item)
            case _:
                return None

    def _do_uid_search(self, given: list[str]) -> str | None:
        left, found = [each for each in given if each not in ("(", ")")], self._there()
        while left:
            key = left.pop(0).upper()
            match key:
                case "ALL":
                    pass
                case "UNDELETED":
                    found = [each for each in found if "\\Deleted" not in each.flags]
                case "UNSEEN":
                    found = [each for each in found if "\\Seen" not in each.flags]
                case "FLAGGED" | "ANSWERED" | "DRAFT" | "DELETED" | "SEEN":
                    found = [each for each in found if f"\\{key.title()}" in each.flags]
                case "CHARSET" | "SINCE" | "BEFORE":
                    left.pop(0)
                case "UID":
                    named = list(self._named(left.pop(0)))
                    found = [each for each in found if each in named]
                case "X-GM-MSGID":
                    wanted = int(left.pop(0))
                    found = [each for each in found if each.msgid == wanted]
                case "HEADER":
                    name, value = left.pop(0), left.pop(0)
                    found = [each for each in found if value in (message_from_bytes(each.raw)[name] or "\0")]
                case "X-GM-RAW":
                    words = [each.lower().encode() for each in left.pop(0).split() if not each.startswith("-in:")]
                    found = [each for each in found if all(word in each.raw.lower() for word in words)]
                case _:
                    return f"BAD the search {key} is unknown here"
        self._talk.say(" ".join(["* SEARCH", *(str(each.uids[self._folder]) for each in found)]).encode())
        return None

    def _do_uid_store(self, given: list[str]) -> None:
        uids, what, *values = [each for each in given if each not in ("(", ")")]
        for message in list(self._named(uids)):
            of_labels = "X-GM-LABELS" in what.upper()
            target = message.labels if of_labels else message.flags
            (target.update if what.startswith("+") else target.difference_update)(values)
            self._gmail.labels += [
                each for each in values if of_labels and not each.startswith("\\") and each not in self._gmail.labels
            ]
            self._gmail.touch(message)

    def _do_append(self, given: list[str]) -> str:
        """Into a folder: with its label."""
        folder, *flags, content = [each for each in given if each not in ("(", ")")]
        self._gmail.deliver(content.encode("latin-1"))
        message = list(self._gmail.messages.values())[-1]
        message.labels, message.flags = {_LABEL_OF.get(folder, folder)}, set(flags)
        self._gmail.settle()
        return f"OK [APPENDUID 7 {message.uids[folder]}] kept"

    def _do_uid_copy(self, given: list[str]) -> str:
        """To give it the label of the folder."""
        for message in list(self._named(given[0])):
            self._gmail.move(message, given[1])
            old = message.uids[self._folder]
            self._gmail.settle()
            self._talk.say(f"* OK [COPYUID 7 {old} {message.uids[given[1]]}] copied".encode())
        return "OK done"

    def _do_uid_move(self, given: list[str]) -> str:
        moved = list(self._named(given[0]))
        before = [each.uids[self._folder] for each in moved]
        for message in moved:
            self._gmail.move(message, given[1])
        self._gmail.settle()
        pairs = [(old, each.uids[given[1]]) for old, each in zip(before, moved, strict=True) if given[1] in each.uids]
        if not pairs:
            return "OK nothing"
        old, new = (",".join(str(pair[place]) for pair in pairs) for place in (0, 1))
        self._talk.say(f"* OK [COPYUID 7 {old} {new}] moved".encode())
        return "OK done"

    def _do_uid_expunge(self, given: list[str]) -> None:
        """In the trash it is deleted; elsewhere only its label goes."""
        for message in [each for each in self._named(given[0]) if "\\Deleted" in each.flags]:
            if self._folder in (TRASH, SPAM):
                del self._gmail.messages[message.msgid]
            else:
                message.labels.discard(_LABEL_OF.get(self._folder, self._folder))


def _tokens(line: bytes) -> Iterator[re.Match[bytes]]:
    at = 0
    while (found := _TOKEN.match(line, at)) is not None and found.end() > at:
        yield found
        at = found.end()


def _text(token: re.Match[bytes]) -> str:
    if token.group(1) is not None:
        return re.sub(rb"\\(.)", rb"\1", token.group(1), flags=re.DOTALL).decode("latin-1")
    return next(each for each in token.groups() if each is not None).decode("latin-1")


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _body(raw: bytes, item: str) -> bytes:
    found = re.fullmatch(r"BODY\.PEEK(\[[^\]]*\])(?:<([\d.]+)>)?", item, re.IGNORECASE)
    assert found is not None
    part, place = found.groups()
    content = raw
    if part.upper().startswith("[HEADER.FIELDS"):
        names = re.findall(r"[A-Za-z-]+", part.partition("(")[2])
        head = message_from_bytes(raw)
        content = "".join(f"{name}: {head[name]}\r\n" for name in names if name in head).encode() + b"\r\n"
    elif part.upper() == "[HEADER]":
        content = raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    shown = part
    if place:
        begin, length = (int(each) for each in place.split("."))
        content, shown = content[begin : begin + length], f"{part}<{begin}>"
    return f"BODY{shown} {{{len(content)}}}\r\n".encode() + content


def gmail_account(port: int) -> ImapAccount:
    """How the product reaches it."""

    async def credentials() -> Credentials:
        return Credentials("mara@gmail.example", "app-password")

    endpoint = Endpoint("127.0.0.1", port, "plain")
    return ImapAccount(partial(open_session, endpoint, credentials, None, PATIENCE_S))


@contextlib.asynccontextmanager
async def opened_gmail(port: int, gate: Gate) -> AsyncGenerator[ImapMailbox]:
    account = gmail_account(port)
    try:
        yield ImapMailbox(account, gate)
    finally:
        await account.log_out()
