"""A refused password, and how often it is tried: an owner must not be locked out by their own program."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from postroom.core.errors import Parked
from postroom.core.mail.mailbox import job_error_of
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.imap.errors import ServerFailed
from postroom.mailboxes.imap.sign_ins import AccountGone, AccountUnreadable, AccountWaits, ImapSignIns
from postroom.operations.accounts.connecting_imap import connect_imap
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.vault.sealing import Vault
from support.clocks import ManualClock
from support.scripted_imap import GREETING, Talk, scripted_imap
from support.store.fault_cases_accounts import ADA, servers
from support.store.fault_cases_registry import signed

RIGHT = "a right password"


class Server:
    """Counts sign-ins, and refuses all but the right password as it is told."""

    def __init__(self) -> None:
        self.tries = 0
        self.refusal = b"%T NO [AUTHENTICATIONFAILED] wrong\r\n"

    async def talk(self, talk: Talk) -> None:
        talk.writer.write(GREETING)
        while True:
            tag, rest = await talk.heard()
            if rest.startswith(b"AUTHENTICATE"):
                self.tries += 1
                good = rest.endswith(_plain(RIGHT))
                talk.writer.write((b"%T OK in\r\n" if good else self.refusal).replace(b"%T", tag))
            else:
                talk.say(tag + b" OK done")


def _plain(password: str) -> bytes:
    return base64.b64encode(f"\0{ADA}\0{password}".encode())


class Setup:
    def __init__(self, database: Database, folder: Path, clock: ManualClock, port: int) -> None:
        self.database = database
        self.clock = clock
        self.vault = Vault(folder)
        self.port = port
        self.sign_ins = ImapSignIns(AccountBook(database, lambda: self.vault, clock))

    async def give(self, password: str) -> AccountView:
        at = replace(servers(self.clock.forward(1)), imap_host="127.0.0.1", imap_port=self.port, imap_security="plain")
        return await connect_imap(Caller(self.database, signed(), self.clock), self.vault, ADA, at, password)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_a_wrong_password_is_tried_once_whoever_wants_in(
    server: Server, database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    async with scripted_imap(server.talk) as port:
        setup = Setup(database, tmp_path, clock, port)
        account = await setup.give("wrong")
        opening = [setup.sign_ins.open(account.id) for _ in range(5)]
        refused = await asyncio.gather(*opening, return_exceptions=True)
        assert [type(each) for each in refused] == [AccountWaits] * 5
        assert server.tries == 1
        parked = await database.run(accounts.load_account(account.id))
        assert parked.state == "needs_consent"
        with pytest.raises(AccountWaits, match="does not accept the user name or the password") as waits:
            await setup.sign_ins.open(account.id)
        assert isinstance(job_error_of(waits.value, "archive", account.id), Parked)
        assert server.tries == 1
        await setup.give(RIGHT)
        (await setup.sign_ins.open(account.id)).connection.close()
        assert server.tries == 2


async def test_resuming_tries_the_same_password_once_more(
    server: Server, database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    server.refusal = b"%T NO [CONTACTADMIN] ask\r\n"
    async with scripted_imap(server.talk) as port:
        setup = Setup(database, tmp_path, clock, port)
        account = await setup.give("wrong")
        for tries in (1, 2):
            with pytest.raises(AccountWaits, match="whatever the password"):
                await setup.sign_ins.open(account.id)
            assert server.tries == tries
            await database.run(accounts.resume_account(account.id, signed(), clock()))


async def test_a_server_that_cannot_now_parks_nobody(
    server: Server, database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    server.refusal = b"%T NO [UNAVAILABLE] later\r\n"
    async with scripted_imap(server.talk) as port:
        setup = Setup(database, tmp_path, clock, port)
        account = await setup.give("wrong")
        with pytest.raises(ServerFailed):
            await setup.sign_ins.open(account.id)
        assert (await database.run(accounts.load_account(account.id))).state == "active"


async def test_the_refusal_of_an_old_password_does_not_park_an_account_with_a_new_one(
    database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(talk: Talk) -> None:
        talk.writer.write(GREETING)
        tag, _ = await talk.heard()
        asked.set()
        await answered.wait()
        talk.say(tag + b" NO [AUTHENTICATIONFAILED] wrong")

    async with scripted_imap(slow) as port:
        setup = Setup(database, tmp_path, clock, port)
        account = await setup.give("wrong")
        opening = asyncio.create_task(setup.sign_ins.open(account.id))
        await asked.wait()
        await setup.give(RIGHT)
        answered.set()
        with pytest.raises(AccountUnreadable, match="another password meanwhile"):
            await opening
        assert (await database.run(accounts.load_account(account.id))).state == "active"


async def test_a_paused_or_removed_account_is_not_signed_in(
    server: Server, database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    async with scripted_imap(server.talk) as port:
        setup = Setup(database, tmp_path, clock, port)
        account = await setup.give(RIGHT)
        await database.run(accounts.pause_account(account.id, signed(), clock()))
        with pytest.raises(AccountWaits, match="is paused; run `postroom account resume"):
            await setup.sign_ins.open(account.id)
        await database.run(accounts.remove_account(account.id, signed(), clock()))
        with pytest.raises(AccountGone, match="is not connected"):
            await setup.sign_ins.open(account.id)
        with pytest.raises(AccountGone, match="there is no account"):
            await setup.sign_ins.open(new_id())
        assert server.tries == 0


async def test_a_password_whose_key_is_gone_waits_for_a_person(
    server: Server, database: Database, tmp_path: Path, clock: ManualClock
) -> None:
    async with scripted_imap(server.talk) as port:
        setup = Setup(database, tmp_path, clock, port)
        account = await setup.give(RIGHT)
        elsewhere = ImapSignIns(AccountBook(database, lambda: Vault(tmp_path / "another"), clock))
        with pytest.raises(AccountWaits, match="key") as waits:
            await elsewhere.open(account.id)
        # The account is active: a job that waited for it alone would be back at once, again and again.
        waiting = job_error_of(waits.value, "archive", account.id)
        assert isinstance(waiting, Parked)
        assert waiting.after is not None
        assert server.tries == 0
