"""Open the access tokens of connected accounts."""

import contextlib
from collections.abc import AsyncGenerator

import httpx2

from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.gmail.credentials import AccessTokens
from postroom.mailboxes.gmail.from_settings import google_app
from postroom.mailboxes.gmail.oauth import GoogleOAuth
from postroom.operations.installation.vault import vault_of
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database


@contextlib.asynccontextmanager
async def open_credentials(
    settings: Settings, database: Database, http: httpx2.AsyncClient
) -> AsyncGenerator[AccessTokens | None]:
    """Yield the access tokens of connected accounts; None if no Google app is set up, so that none can be connected."""
    if settings.google.client_id is None:
        yield None
        return
    tokens = AccessTokens(AccountBook(database, lambda: vault_of(settings)), GoogleOAuth(http, google_app(settings)))
    try:
        yield tokens
    finally:
        await tokens.close()
