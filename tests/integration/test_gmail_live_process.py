"""`postroom connector gmail` in its own process: real signals, real HTTP to both sides."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.gmail.credentials import AccessTokens
from postroom.mailboxes.gmail.oauth import GoogleOAuth
from postroom.mailboxes.gmail.scopes import PUBSUB
from postroom.operations.accounts.connecting import connect
from postroom.operations.caller import Caller
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.connectors import list_connectors
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from postroom.vault.sealing import Vault
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.google import ADA, Google, running_google
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.service_keys import ROBOT, write_key
from support.switchboard import Served, served, services_on
from support.warm_start import ForkedProcess

TOPIC = "projects/home/topics/gmail"
SUBSCRIPTION = "projects/home/subscriptions/postroom"


class ConnectorSetup:
    """A mailbox, a switchboard over HTTP, and how to start connectors between them."""

    def __init__(
        self, folder: Path, board: Served, mailbox: Mailbox, gmail: str, token: str, gmail_token: str | None = TOKEN
    ) -> None:
        self.folder = folder
        self.board = board
        self.mailbox = mailbox
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")},
            "POSTROOM_DATA_DIR": str(folder / "connector"),
            "POSTROOM_CONNECTOR_TOKEN": token,
            "POSTROOM_GMAIL_BASE_URL": gmail,
            "POSTROOM_GMAIL_POLL_S": "0.05",
        }
        if gmail_token is not None:
            self._environment["POSTROOM_GMAIL_TOKEN"] = gmail_token

    @contextlib.asynccontextmanager
    async def connector(self, *options: str, **environment: str) -> AsyncGenerator[ForkedProcess]:
        where = ["--email", self.mailbox.owner, "--switchboard", f"{self.board.address}/mcp"]
        words = ["connector", "gmail", *where, "--json", *options]
        process = await asyncio.to_thread(ForkedProcess, words, self.folder, self._environment | environment)
        try:
            yield process
        finally:
            process.kill()
            await asyncio.to_thread(process.communicate)

    async def arrived(self, count: int) -> list[str]:
        """Waits for so many messages at the switchboard; returns their ids."""
        found: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                leased = await self.board.services.buffer.next("email", 100, wait=timedelta(seconds=20))
                found += [each.envelope["event"]["external_event_id"] for each in leased]
        return found


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    yield opened
    await opened.close()


@pytest.fixture
async def setup(tmp_path: Path, database: Database) -> AsyncIterator[ConnectorSetup]:
    mailbox = Mailbox(OWNER, Random(3))
    async with running_emulator(Emulator(mailbox, TOKEN)) as gmail, served(services_on(database, wall_clock)) as board:
        yield ConnectorSetup(tmp_path, board, mailbox, gmail, await board.token("connector", ENDPOINT))


async def ended(process: ForkedProcess) -> tuple[int, str, str]:
    said, complaints = await asyncio.to_thread(process.communicate)
    assert process.returncode is not None
    return process.returncode, said, complaints


async def announced(process: ForkedProcess) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        return json.loads(await asyncio.to_thread(process.stdout.readline))


async def test_it_delivers_what_comes_reports_and_ends_cleanly(setup: ConnectorSetup, database: Database):
    first = setup.mailbox.deliver(raw_mail("first")).id
    async with setup.connector() as process:
        assert await announced(process) == {"identity": ENDPOINT}
        assert await setup.arrived(1) == [first]
        second = setup.mailbox.deliver(raw_mail("second")).id
        assert await setup.arrived(1) == [second]
        process.send_signal(signal.SIGTERM)
        code, _, complaints = await ended(process)
    assert (code, "Traceback" in complaints) == (0, False), complaints
    (seen,) = await database.run(list_connectors())
    assert (seen.connector_type, seen.endpoint_identity) == ("gmail", ENDPOINT)


async def test_once_is_one_round_and_says_how_much_was_new(setup: ConnectorSetup):
    for number in range(3):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    for new in (3, 0):
        async with setup.connector("--once") as process:
            code, said, complaints = await ended(process)
        assert (code, json.loads(said)) == (0, {"new": new}), complaints
    kept = setup.folder / "connector" / "connectors" / f"gmail-{OWNER}" / "send_as.json"
    assert json.loads(kept.read_bytes()) == {"addresses": [OWNER]}


async def test_a_second_one_for_the_same_mailbox_is_refused(setup: ConnectorSetup):
    async with setup.connector() as first:
        await announced(first)
        async with setup.connector() as second:
            code, _, complaints = await ended(second)
    assert code == 2
    assert f"a connector for {OWNER} is already running" in complaints


@dataclass
class Consented:
    """A site whose access tokens come from the switchboard, by the user's consent."""

    setup: ConnectorSetup
    google: Google
    account: AccountView


@pytest.fixture
async def consented(tmp_path: Path, database: Database) -> AsyncIterator[Consented]:
    vault = Vault(tmp_path / "keys")
    async with running_google() as google, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        oauth = GoogleOAuth(http, google.app)
        tokens = AccessTokens(AccountBook(database, lambda: vault), oauth)
        grant = await google.consent(oauth, "organise", ADA)
        signed, client_id = Signature(new_id(), "test", "admin"), google.app.client_id
        account = await connect(Caller(database, signed, wall_clock), vault, grant, ADA, client_id)
        services = services_on(database, wall_clock, credentials=tokens)
        async with served(services) as board:
            token = await board.token("connector", account.endpoint_identity)
            mailbox = google.emulator.mailbox
            yield Consented(ConnectorSetup(tmp_path, board, mailbox, google.address, token, None), google, account)
        await tokens.close()


async def test_access_tokens_come_from_the_switchboard(consented: Consented):
    consented.setup.mailbox.deliver(raw_mail("hello", to=ADA))
    async with consented.setup.connector("--once") as process:
        code, said, complaints = await ended(process)
    assert (code, json.loads(said)) == (0, {"new": 1}), complaints


async def test_a_lost_consent_is_reported_with_what_to_do(consented: Consented):
    consented.setup.mailbox.deliver(raw_mail("hello", to=ADA))
    consented.google.emulator.consents.revoke_user(ADA)
    async with consented.setup.connector("--once") as process:
        code, _, complaints = await ended(process)
    assert code != 0
    assert "connect the account again" in complaints
    assert "Traceback" not in complaints


def pulling(found: Consented, **more: str) -> dict[str, Any]:
    """A connector that would find mail within the hour, if it were not told."""
    return {
        "POSTROOM_GMAIL_PUBSUB_SUBSCRIPTION": SUBSCRIPTION,
        "POSTROOM_GMAIL_PUBSUB_TOPIC": TOPIC,
        "POSTROOM_GMAIL_PUBSUB_URL": found.google.address,
        "POSTROOM_GOOGLE_TOKEN_URL": found.google.app.token_url,
        "POSTROOM_GMAIL_POLL_S": "3600",
        **more,
    }


async def test_the_process_is_told_of_mail_through_the_key_of_the_settings(consented: Consented, tmp_path: Path):
    emulator = consented.google.emulator
    subscription = emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)
    key = emulator.service_accounts.create_key(ROBOT, consented.google.app.token_url)
    path = write_key(tmp_path / "key.json", key)
    environment = pulling(consented, POSTROOM_GMAIL_PUBSUB_KEY_FILE=str(path))
    async with consented.setup.connector(**environment) as process:
        await announced(process)
        async with asyncio.timeout(PATIENCE_S):
            await subscription.awaited.wait()
        arriving = consented.setup.mailbox.deliver(raw_mail("hello", to=consented.account.email)).id
        assert await consented.setup.arrived(1) == [arriving]


async def test_the_process_goes_on_without_hints_and_says_why(consented: Consented):
    async with consented.setup.connector(**pulling(consented, POSTROOM_GMAIL_POLL_S="0.05")) as process:
        await announced(process)
        arriving = consented.setup.mailbox.deliver(raw_mail("hello", to=consented.account.email)).id
        assert await consented.setup.arrived(1) == [arriving]
        await _until_logged(process, "connector.no_hints", f"needs {PUBSUB}, and {ADA} has granted")
        process.send_signal(signal.SIGTERM)
        code, _, _ = await ended(process)
    assert code == 0


async def _until_logged(process: ForkedProcess, event: str, words: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while line := await asyncio.to_thread(process.stderr.readline):
            if event in line:
                assert words in line
                return
    pytest.fail(f"{event} was not logged")
