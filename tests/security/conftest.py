"""A switchboard behind real HTTP, on SQLite: permissions do not depend on the database."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from postroom.core.actions.safety import Policy
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.gmail.credentials import AccessTokens
from postroom.mailboxes.gmail.oauth import GoogleApp, GoogleOAuth
from postroom.mailboxes.gmail.scopes import MODIFY
from postroom.mailboxes.oauth.tokens import Grant
from postroom.operations.accounts.connecting import connect
from postroom.operations.caller import Caller
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import Signature
from postroom.vault.sealing import Vault
from support.clocks import ManualClock
from support.sqlite import new_sqlite
from support.switchboard import Served, served, services_on


@pytest.fixture
async def switchboard(migrated_sqlite: Path, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Served]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(_token)) as google:
        credentials = await _credentials(database, clock, tmp_path, google)
        # What a role may call is one thing; that an agent undoes its own only, unless it is trusted, is another.
        trusting = Policy(trust_agents=True)
        async with served(services_on(database, clock, credentials=credentials, policy=trusting)) as running:
            yield running
    await database.close()


def _token(_request: httpx2.Request) -> httpx2.Response:
    """Google gives an access token to whoever asks."""
    return httpx2.Response(200, json={"access_token": "ya29.matrix", "expires_in": 3599})


async def _credentials(
    database: Database, clock: ManualClock, folder: Path, google: httpx2.AsyncClient
) -> AccessTokens:
    """The tokens of one account, at the endpoint that the matrix calls its own."""
    vault, signed = Vault(folder), Signature(new_id(), "test", "admin")
    await database.run(keep_account(new_id(), "gmail", "webhook:ci", "ci@example.com", clock()))
    grant = Grant("ya29.first", timedelta(hours=1), frozenset({MODIFY}), "1//refresh")
    await connect(Caller(database, signed, clock), vault, grant, "ci@example.com", "client")
    return AccessTokens(AccountBook(database, lambda: vault, clock), GoogleOAuth(google, GoogleApp("client", "secret")))
