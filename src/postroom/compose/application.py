"""Postroom as the command line drives it: the long-running parts, each composed when it is asked for.

It is loaded for every `postroom --help`, so everything heavy is imported inside the functions that need it.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Unpack

from postroom.core.errors import SettingsError

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from postroom.compose.gmail import WatchedMailbox
    from postroom.compose.redis import RedisReading
    from postroom.settings.reading import Settings
    from postroom.store.engine.database import Database

Ready = Callable[[str], None]
"""Called once, with the address, when a server answers."""


class PostroomApplication:
    """The long-running parts. Each returns when it was asked to stop, and stops cleanly when it is canceled.

    Settings and logging are set up before any of these is called.
    """

    @contextlib.asynccontextmanager
    async def open_database(self, settings: Settings) -> AsyncGenerator[Database]:
        """The database as it is: nothing is migrated, for those that only look."""
        from postroom.manage.database import url_of
        from postroom.store.engine.opening import connect_database

        database = connect_database(settings.data_dir, url_of(settings), allow_unsafe=settings.allow_unsafe_durability)
        try:
            yield database
        finally:
            await database.close()

    async def serve(self, settings: Settings, *, ready: Ready) -> None:
        """Pages, connector, dispatcher and worker in one process."""
        from postroom.compose.serve import run_product

        with _served_once(settings):
            async with _stoppable() as stop, _open(settings) as database:
                await run_product(settings, database, stop, ready)

    async def demo(self, settings: Settings, *, port: int | None, ready: Ready) -> None:
        """The whole product on a sandbox mailbox in which mail keeps arriving."""
        from postroom.compose.demo import add_sample_rules, demo_mailbox, demo_settings
        from postroom.compose.serve import run_product

        async with _stoppable() as stop, demo_mailbox() as mailbox:
            prepared = demo_settings(settings, mailbox, port)
            async with _open(prepared) as database:
                await add_sample_rules(database)
                await run_product(prepared, database, stop, ready)

    async def sandbox(
        self,
        settings: Settings,
        *,
        port: int,
        seed: int,
        mail: Path | None,
        user: str | None,
        units_per_minute: int,
        search_lag_s: float,
        ready: Ready,
        told: Callable[[str], None],
    ) -> None:
        """Only the Gmail emulator."""
        from postroom.compose.demo import SandboxPlan, sandbox_mailbox

        token = _token(settings)
        plan = SandboxPlan(port, seed, mail, user, units_per_minute, search_lag_s)
        async with _stoppable() as stop, sandbox_mailbox(plan, token, told) as address:
            ready(address)
            await stop.wait()

    async def worker(self, settings: Settings, *, concurrency: int) -> None:
        """Only jobs: the worker, and its share in leading."""
        from postroom.compose.worker import run_worker

        async with _stoppable() as stop, _open(settings) as database:
            await run_worker(settings, database, stop, concurrency)

    async def connector_redis_stream(self, settings: Settings, **reading: Unpack[RedisReading]) -> None:
        """Only the connector of one Redis stream."""
        from postroom.compose.redis import run_redis_source

        async with _stoppable() as stop:
            await run_redis_source(settings, stop, **reading)

    async def connector_gmail(self, settings: Settings, **watching: Unpack[WatchedMailbox]) -> None:
        """Only the connector of one mailbox at Gmail."""
        from postroom.compose.gmail import run_gmail_source

        async with _stoppable() as stop:
            await run_gmail_source(settings, stop, **watching)


def _served_once(settings: Settings) -> contextlib.AbstractContextManager[None]:
    """On SQLite one process serves; several share PostgreSQL."""
    from postroom.store.engine.serve_lock import serve_lock

    return serve_lock(settings.data_dir) if settings.database_url is None else contextlib.nullcontext()


@contextlib.asynccontextmanager
async def _open(settings: Settings) -> AsyncGenerator[Database]:
    """The database, checked and migrated."""
    from postroom.manage.database import url_of
    from postroom.store.engine.opening import open_database

    database = await open_database(settings.data_dir, url_of(settings), allow_unsafe=settings.allow_unsafe_durability)
    try:
        yield database
    finally:
        await database.close()


@contextlib.asynccontextmanager
async def _stoppable() -> AsyncGenerator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set, so that everything can end in good order."""
    import asyncio

    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    for each in signals:
        loop.add_signal_handler(each, stop.set)
    try:
        yield stop
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


def _token(settings: Settings) -> str:
    if settings.gmail.token is None:
        raise SettingsError("gmail.token is not set; give the access token of the mailbox in POSTROOM_GMAIL_TOKEN")
    return settings.gmail.token.get_secret_value()
