"""A mailbox on a real IMAP server, as the product opens it, and a second client beside it."""

import asyncio
import imaplib
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from postroom.core.mail.gate import Gate
from postroom.mailboxes.imap.account import ImapAccount, open_session
from postroom.mailboxes.imap.answers import Fetched, fetched_in
from postroom.mailboxes.imap.identity import TEXT_ITEM, Scheme, id_of, items_for, scheme_of
from postroom.mailboxes.imap.mailbox import ImapMailbox, LabelsAs
from postroom.mailboxes.imap.responses import Data, ResponseReader
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.wire import Endpoint
from support.gates import BY_HAND, OpenGate
from support.imap_server import PASSWORD, PROFILES, ImapServer, address_of, trusting
from support.patience import PATIENCE_S


def account_on(server: ImapServer, user: str, profile: str = "all", port: int | None = None) -> ImapAccount:
    """How the product reaches it: by TLS, or on this port without."""

    async def credentials() -> Credentials:
        return Credentials(user, PASSWORD)

    address = address_of(profile)
    endpoint = Endpoint(address, server.tls_port) if port is None else Endpoint("127.0.0.1", port, "plain")
    return ImapAccount(
        partial(open_session, endpoint, credentials, trusting(), PATIENCE_S), slots=asyncio.Semaphore(10)
    )


class Beside:
    """Another program at the same mailbox: the standard library's client."""

    def __init__(self, server: ImapServer, user: str, profile: str = "all") -> None:
        self.user = user
        self.client = server.second_client(user)
        # Ids depend on what the server offers to our client.
        offers = frozenset({"OBJECTID"} if server.kind == "cyrus" else ()) - PROFILES[profile]
        self.scheme: Scheme = scheme_of(offers)

    def put(self, content: bytes, folder: str = "INBOX", flags: str = "") -> str:
        """Bring a message into a folder; its id."""
        crlf = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        status, said = self.client.append(f'"{folder}"', flags, "", crlf)
        assert status == "OK", said
        return self.ids(folder)[-1]

    def ids(self, folder: str = "INBOX") -> list[str]:
        return [id for each in self.messages(folder) if (id := id_of(each, self.scheme)) is not None]

    def messages(self, folder: str = "INBOX") -> list[Fetched]:
        """All messages of a folder with their flags, also those marked as deleted."""
        self.client.select(f'"{folder}"', readonly=True)
        _, found = self.client.uid("FETCH", "1:*", f"(FLAGS {TEXT_ITEM} {items_for(self.scheme)})")
        reader, answers = ResponseReader(), list[Data]()
        for part in _lines(found):
            answers += [each for each in reader.feed(part) if isinstance(each, Data)]
        return fetched_in(answers)

    def flags(self, folder: str = "INBOX") -> list[set[str]]:
        """The flags of each message of a folder, without those that the server sets."""
        return [set(each.flags) - {"\\Recent"} for each in self.messages(folder)]

    def flags_by_id(self, folder: str) -> list[tuple[str, frozenset[str]]]:
        return [
            (id, each.flags - {"\\Recent"})
            for each in self.messages(folder)
            if (id := id_of(each, self.scheme)) is not None
        ]

    def counts(self, folders: Collection[str]) -> dict[str, int]:
        return {each: len(self.messages(each)) for each in folders}

    def close(self) -> None:
        self.client.logout()


def _lines(found: list[object]) -> list[bytes]:
    """The bytes of the answers, as they came: imaplib takes literals out."""
    made: list[bytes] = []
    begins = True
    for part in found:
        if isinstance(part, tuple):
            head, content = part
            made.append((b"* " if begins else b"") + head + b"\r\n" + content)
            begins = False
        elif isinstance(part, bytes):
            starts = begins and not part.startswith(b")")
            made.append((b"* " if starts else b"") + part + b"\r\n")
            begins = True
    return [each if b"FETCH" in each or not each.startswith(b"* ") else _with_kind(each) for each in made]


def _with_kind(line: bytes) -> bytes:
    """imaplib leaves the word FETCH out."""
    star, number, rest = line.split(b" ", 2)
    return b" ".join([star, number, b"FETCH", rest])


@dataclass
class OpenedMailbox:
    account: ImapAccount
    mailbox: ImapMailbox
    reader: ImapMailbox
    beside: Beside
    user: str


@asynccontextmanager
async def opened_mailbox(
    server: ImapServer,
    profile: str = "all",
    labels_as: LabelsAs = "keywords",
    gate: Gate | None = None,
    port: int | None = None,
    always_folders: Collection[str] = (),
) -> AsyncGenerator[OpenedMailbox]:
    """A new mailbox."""
    user = server.new_user()
    account = account_on(server, user, profile, port)
    beside = Beside(server, user, profile)
    reader = ImapMailbox(account, gate or OpenGate(), labels_as, always_folders)
    try:
        yield OpenedMailbox(account, reader.under(BY_HAND), reader, beside, user)
    finally:
        await account.log_out()
        with suppress(imaplib.IMAP4.error, OSError):
            beside.close()
