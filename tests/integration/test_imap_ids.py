"""A mailbox whose server begins to give ids to messages (OBJECTID), or ceases to: what is known stays known."""

from dataclasses import replace
from pathlib import Path

import pytest

from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.imap.errors import NotOffered
from postroom.mailboxes.imap.folders import FolderMap
from postroom.mailboxes.imap.labels import Keywords
from postroom.mailboxes.imap.places import Finder, KnownPlaces
from postroom.mailboxes.imap.session import ImapSession
from postroom.mailboxes.imap.sign_ins import ImapSignIns
from postroom.operations.accounts.connecting_imap import connect_imap
from postroom.operations.caller import Caller
from postroom.store.engine.database import Database
from postroom.vault.sealing import Vault
from support.clocks import ManualClock
from support.mail import keep_mail
from support.scripted_imap import Talk, scripted_imap
from support.store.fault_cases_accounts import ADA, servers
from support.store.fault_cases_registry import signed

BY_HASH, BY_SERVER = "m-abcdefgh-one@example.com", "e-M0123"


class Server:
    """Accepts every sign-in, and offers what it is told."""

    def __init__(self, offers: str) -> None:
        self.offers = offers

    async def talk(self, talk: Talk) -> None:
        talk.say(f"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR {self.offers}] ready".encode())
        await talk.obey({})


async def opened(server: Server, database: Database, folder: Path, clock: ManualClock, *known: str) -> ImapSession:
    """A connection for an account that has these messages."""
    vault = Vault(folder)
    for number, id in enumerate(known):
        await keep_mail(database, clock, number, owner=ADA, event_id=id, provider="imap")
    async with scripted_imap(server.talk) as port:
        at = replace(servers(clock.forward(1)), imap_host="127.0.0.1", imap_port=port, imap_security="plain")
        account = await connect_imap(Caller(database, signed(), clock), vault, ADA, at, "a password")
        session = await ImapSignIns(AccountBook(database, lambda: vault, clock)).open(account.id)
        session.connection.close()
        return session


@pytest.mark.parametrize(
    ("known", "scheme"),
    [((), "objectid"), ((BY_SERVER,), "objectid"), ((BY_HASH,), "hash"), ((BY_SERVER, BY_HASH), "hash")],
)
async def test_messages_keep_the_kind_of_id_that_they_have_when_the_server_learns_another(
    database: Database, tmp_path: Path, clock: ManualClock, known: tuple[str, ...], scheme: str
) -> None:
    session = await opened(Server("OBJECTID"), database, tmp_path, clock, *known)
    assert session.scheme == scheme


async def test_a_message_known_by_the_id_of_another_server_is_refused_with_the_reason(
    database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    session = await opened(Server("IDLE"), database, tmp_path, clock, BY_SERVER)
    finder = Finder(session, FolderMap([], None), KnownPlaces(), Keywords())
    with pytest.raises(NotOffered, match=r"known by an id that this server does not give.*no OBJECTID"):
        await finder.find(BY_SERVER)
