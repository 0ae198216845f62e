"""What a mailbox over IMAP may hold and be: huge messages, folders without permission, a mailbox that somebody else
ingests too, sign-ins that cannot work.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from postroom.core.errors import BadInput
from postroom.mailboxes.imap.connection import Connection
from postroom.mailboxes.imap.errors import NotOffered
from postroom.mailboxes.imap.sign_in import Credentials, sign_in
from postroom.mailboxes.imap.wire import Endpoint
from postroom.store.engine.database import Database
from support.clocks import ManualClock
from support.imap_server import ImapServer
from support.imap_setup import OWNER, ImapSetup, imap_setup
from support.patience import PATIENCE_S
from support.scale import scale
from support.scripted_imap import Meddler, Talk, scripted_imap
from support.sqlite import new_sqlite

HUGE = scale(5, 50) * 2**20


def mail(subject: str, body: bytes = b"Hello\r\n") -> bytes:
    head = f"From: ada@example.com\r\nTo: {OWNER}\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x.example>\r\n"
    return head.encode() + b"\r\n" + body


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@pytest.mark.parametrize("secret", ["with\0nul", "two\r\nlines", "two\nlines"])
def test_passwords_that_no_server_can_take_are_refused(secret: str) -> None:
    with pytest.raises(BadInput, match="password") as refused:
        Credentials("ada", secret)
    assert secret not in str(refused.value)


async def test_a_server_that_takes_no_password_is_named_and_never_sent_one() -> None:
    heard: list[bytes] = []

    async def script(talk: Talk) -> None:
        talk.say(b"* OK [CAPABILITY IMAP4rev1 LOGINDISABLED AUTH=GSSAPI] ready")
        heard.append((await talk.heard())[1])

    async with scripted_imap(script) as port:
        connection = await Connection.connect(Endpoint("127.0.0.1", port, "plain"), None, PATIENCE_S)
        with pytest.raises(NotOffered, match="password"):
            await sign_in(connection, Credentials("ada", "hidden-secret"))
        connection.close()
    assert not any(b"hidden" in each or b"LOGIN" in each for each in heard)


async def test_of_a_huge_message_only_the_beginning_is_read(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    came = [0]

    def answer(chunk: bytes) -> bytes:
        came[0] += len(chunk)
        return chunk

    async with (
        Meddler(answers=answer).before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        id = setup.beside.put(mail("huge", b"x" * 70 + b"\r\n" + b"%070d\r\n" % 0 * (HUGE // 72)))
        other = setup.beside.put(mail("small"))
        assert await setup.connector().sync() == 2
        arrived = await setup.waiting()
        assert arrived.keys() == {id, other}
        assert "only the first" in str(arrived[id]["payload"]["raw"]["problems"])
        assert came[0] < 2 * 2**20


def forbid(setup: ImapSetup, forbidden: bool) -> None:
    """Take away the right to read the folder Private, or give it back."""
    if setup.server.kind == "cyrus":
        setup.beside.client.setacl("Private", setup.user, "lkxca" if forbidden else "lrswipkxtecda")
    else:
        (setup.server.folder / "mail" / setup.user / "Private").chmod(0 if forbidden else 0o700)


@pytest.mark.parametrize("kind", ["dovecot", "cyrus"])
async def test_a_folder_without_permission_holds_up_no_other_and_is_read_when_it_may_be(
    request: pytest.FixtureRequest, database: Database, clock: ManualClock, tmp_path: Path, kind: str
) -> None:
    async with imap_setup(request.getfixturevalue(kind), database, clock, tmp_path) as setup:
        setup.beside.client.create("Private")
        private = setup.beside.put(mail("private"), "Private")
        setup.beside.client.select("INBOX")
        forbid(setup, True)
        first = setup.beside.put(mail("one"))
        connector = setup.connector()
        assert await connector.sync() == 1
        second = setup.beside.put(mail("two"))
        assert await connector.sync() == 1
        assert (await setup.waiting()).keys() == {first, second}
        forbid(setup, False)
        if kind == "cyrus":
            # Dovecot remembers for a while that it could not open the folder.
            assert await connector.sync() == 1
            assert (await setup.waiting()).keys() == {first, second, private}


async def test_a_mailbox_that_two_installations_read_is_complete_in_both(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path, migrated_sqlite: Path
) -> None:
    (tmp_path / "other").mkdir()
    elsewhere = await new_sqlite(tmp_path / "other", migrated_sqlite)
    async with (
        imap_setup(dovecot, database, clock, tmp_path) as one,
        imap_setup(dovecot, elsewhere, clock, tmp_path / "other") as two,
    ):
        two.user = one.user
        ids = {one.beside.put(mail(f"n{number}")) for number in range(3)}
        for setup in (one, two):
            assert await setup.connector().sync() == 3
            assert (await setup.waiting()).keys() == ids
        assert one.beside.flags() == [set()] * 3
    await elsewhere.close()
