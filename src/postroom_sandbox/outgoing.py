"""Outgoing mail of a mailbox: drafts and sent messages, as at Gmail.

Gmail replaces the Message-ID of everything sent through the API, so a message cannot be found by the one it was given.
A sent draft is gone: the message in SENT is a new one, with a new id.
"""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import format_datetime, getaddresses

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.message import Message
from postroom_sandbox.mime import Mail
from postroom_sandbox.refusal import invalid, missing

# Google's limit for a sent message.
LARGEST_MESSAGE = 36_700_160

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n|\r\r")
_LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)(?:[ \t][^\r\n]*(?:\r\n|\r|\n|$))*")

Post = Callable[[str, bytes], None]
Senders = Callable[[], frozenset[str]]


@dataclass
class Draft:
    id: str
    message: Message


class Outgoing:
    """The drafts of one mailbox, and the sending of mail.

    `post` delivers a mail to another mailbox, if there is one; `senders` are the allowed From addresses in lower case.
    """

    def __init__(
        self, mailbox: Mailbox, post: Post = lambda _address, _raw: None, senders: Senders | None = None
    ) -> None:
        self._mailbox = mailbox
        self._post = post
        self._senders: Senders = senders or (lambda: frozenset({mailbox.owner.lower()}))
        self._drafts: dict[str, Draft] = {}

    def drafts(self) -> Iterator[Draft]:
        """All drafts, newest first, including messages that became drafts by other means."""
        known = {draft.message.id: draft for draft in self._drafts.values()}
        for message in self._mailbox.search(label_ids=["DRAFT"], include_spam_trash=True):
            yield known.get(message.id) or self._keep(message)

    def get(self, draft_id: str) -> Draft:
        draft = self._drafts.get(draft_id)
        if draft is None or not self._is_there(draft):
            raise missing()
        return draft

    def create(self, raw: bytes, thread_id: str | None) -> Draft:
        return self._keep(self._mailbox.deliver(self._with_head(raw), {"DRAFT"}, thread_id=thread_id))

    def update(self, draft_id: str, raw: bytes, thread_id: str | None) -> Draft:
        """Replace the message of a draft. The draft keeps its id; the message gets a new one."""
        draft = self.get(draft_id)
        before, written = draft.message, self._with_head(raw)
        thread = thread_id or before.thread_id
        draft.message = self._mailbox.deliver(written, {"DRAFT"}, thread_id=thread, staying=not thread_id)
        self._mailbox.delete(before.id)
        return draft

    def delete(self, draft_id: str) -> None:
        draft = self.get(draft_id)
        del self._drafts[draft_id]
        self._mailbox.delete(draft.message.id)

    def send_draft(self, draft_id: str, raw: bytes | None = None) -> Message:
        draft = self.get(draft_id)
        sent = self.send(draft.message.mail.raw if raw is None else raw, draft.message.thread_id, staying=True)
        self.delete(draft_id)
        return sent

    def send(self, raw: bytes, thread_id: str | None = None, staying: bool = False) -> Message:
        """Send a mail; return the message in SENT. Recipients with a mailbox here get it, without Bcc."""
        signed = self._with_head(raw)
        mail = Mail(signed)
        recipients = {address.lower() for _, address in _addresses(mail, "to", "cc", "bcc")}
        if not recipients:
            raise invalid("Recipient address required")
        if unusable := sorted(address for address in recipients if not re.fullmatch(r"[^@\s]+@[^@\s]+", address)):
            raise invalid(f"Invalid To header: {unusable[0]}")
        labels = {"SENT", "INBOX", "UNREAD"} if self._mailbox.owner.lower() in recipients else {"SENT"}
        sent = self._mailbox.deliver(signed, labels, thread_id=thread_id, staying=staying)
        for address in sorted(recipients - {self._mailbox.owner.lower()}):
            self._post(address, without_headers(signed, "bcc"))
        return sent

    def forget(self) -> None:
        self._drafts.clear()

    def _keep(self, message: Message) -> Draft:
        draft = Draft(f"r-{self._mailbox.rng.getrandbits(62)}", message)
        self._drafts[draft.id] = draft
        return draft

    def _is_there(self, draft: Draft) -> bool:
        return draft.message.id in self._mailbox

    def _with_head(self, raw: bytes) -> bytes:
        """The mail with Gmail's Message-ID, a date, and the owner as the sender unless From is one of their aliases."""
        if len(raw) > LARGEST_MESSAGE:
            raise invalid(f"Message too large: at most {LARGEST_MESSAGE} bytes")
        owner, rng = self._mailbox.owner, self._mailbox.rng
        unique = base64.urlsafe_b64encode(rng.randbytes(33)).decode()
        head = [f"Message-ID: <CA{unique}@mail.gmail.com>"]
        replaced = ["message-id"]
        mail = Mail(raw)
        if not self._senders() & {address.lower() for _, address in _addresses(mail, "from")}:
            head.append(f"From: {owner}")
            replaced.append("from")
        if not mail.header("Date"):
            head.append(f"Date: {format_datetime(self._mailbox.clock())}")
        return "".join(f"{line}\r\n" for line in head).encode() + without_headers(raw, *replaced)


def without_headers(raw: bytes, *names: str) -> bytes:
    """The mail without these headers, otherwise byte for byte the same."""
    if raw[:1] in (b"\r", b"\n"):
        return raw
    blank = _END_OF_HEAD.search(raw)
    head, body = (raw[: blank.start()], raw[blank.end() :]) if blank else (raw, b"")
    line_end = b"\r\n" if b"\r\n" in raw else b"\n"
    unwanted = tuple(f"{name}:".encode() for name in names)
    kept = [line for line in _LINES.findall(head + line_end) if not line.lower().startswith(unwanted)]
    return b"".join(kept) + line_end + body


def _addresses(mail: Mail, *names: str) -> list[tuple[str, str]]:
    return [(name, address) for name, address in getaddresses(mail.all_headers(*names)) if address]
