"""Open the access tokens of connected accounts."""

import contextlib
from collections.abc import AsyncGenerator

import httpx2

from postroom.compose.google import google_app, vault_of
from postroom.mailboxes.accounts.credentials import AccessTokens
from postroom.mailboxes.gmail.oauth import GoogleOAuth
from postroom.settings.reading import Settings
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database


@contextlib.asynccontextmanager
async def open_credentials(
    settings: Settings, database: Database, http: httpx2.AsyncClient
) -> AsyncGenerator[AccessTokens | None]:
    """Yield the access tokens of connected accounts; None if no Google app is set up, so that none can be connected."""
    if settings.google.client_id is None:
        yield None
        return
    tokens = AccessTokens(database, vault_of(settings), GoogleOAuth(http, google_app(settings)), wall_clock)
    try:
        yield tokens
    finally:
        await tokens.close()
