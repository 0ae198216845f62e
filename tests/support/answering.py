"""A mail connector that answers the requests of the switchboard while a test waits for the answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from postroom.mailboxes.following.request_handlers import RequestedConnector, RequestHandlers
from postroom.mailboxes.following.source import MailSource
from postroom.sources.request_server import RequestServer
from postroom.sources.switchboard_client import RequestSource


@asynccontextmanager
async def answering(
    switchboard: RequestSource, connector: RequestedConnector, source: MailSource
) -> AsyncGenerator[None]:
    """The connector answers requests meanwhile."""
    handlers = RequestHandlers(connector, source).handlers()
    serving = asyncio.create_task(RequestServer(switchboard, handlers).run(asyncio.Event()))
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait({serving})
