"""Open the access tokens of connected accounts."""

import contextlib
from collections.abc import AsyncGenerator

import httpx2

from postroom.core.mail.providers import PROVIDERS
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.providers import AccountTokens, provider_named
from postroom.operations.installation.vault import vault_of
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database


@contextlib.asynccontextmanager
async def open_credentials(
    settings: Settings, database: Database, http: httpx2.AsyncClient
) -> AsyncGenerator[AccountTokens | None]:
    """Yield the access tokens of connected accounts, of the first provider that has some; None if the settings have no
    app that consents could be given to.
    """
    book = AccountBook(database, lambda: vault_of(settings))
    opened = (provider_named(name).open_tokens(settings, book, http) for name in PROVIDERS)
    tokens = next((each for each in opened if each is not None), None)
    try:
        yield tokens
    finally:
        if tokens is not None:
            await tokens.close()
