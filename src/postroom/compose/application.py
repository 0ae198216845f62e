"""Postroom as the command line drives it: the long-running parts, each composed when it is asked for.

Every command loads it, even `postroom --help`, so heavy imports are inside the functions that need them.
"""

from __future__ import annotations

import contextlib
import functools
import signal
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Unpack

from postroom.core.errors import SettingsError

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path
    from uuid import UUID

    from postroom.compose.gmail import WatchedMailbox
    from postroom.compose.redis import RedisReading
    from postroom.mailboxes.following.source import MailSource
    from postroom.settings.reading import Settings
    from postroom.store.engine.database import Database

Ready = Callable[[str], None]
"""Called once, with the address, when a server answers."""
Invite = Callable[[str], None]
"""Called at the first start, with the one-time link by which the first person makes themselves known."""
Presses = Callable[[], AsyncGenerator[None]]
"""Yields whenever the user presses Enter: then `ready` and `invite` are called again."""


async def never_pressed() -> AsyncGenerator[None]:
    """The keys of a process without a user."""
    return
    yield


class PostroomApplication:
    """The long-running parts. Each returns when it was asked to stop, and stops cleanly when it is canceled.

    Settings and logging are set up before any of these is called.
    """

    @contextlib.asynccontextmanager
    async def open_database(self, settings: Settings) -> AsyncGenerator[Database]:
        """Open the database without migrating it, and without creating one by looking."""
        from postroom.operations.installation.database import url_of
        from postroom.operations.installation.upgrades import naming_the_way_back
        from postroom.store.engine.migrate import pending
        from postroom.store.engine.opening import look_into

        database = look_into(settings.data_dir, url_of(settings), allow_unsafe=settings.allow_unsafe_durability)
        try:
            with naming_the_way_back(settings):
                await pending(database)  # refuses a database that this program does not know
            yield database
        finally:
            await database.close()

    @contextlib.asynccontextmanager
    async def open_source(self, settings: Settings, database: Database, account_id: UUID) -> AsyncGenerator[MailSource]:
        """Open the mailbox of an account for reading."""
        from postroom.compose.credentials import open_credentials
        from postroom.compose.gate import MailboxGate
        from postroom.compose.mailboxes import Mailboxes
        from postroom.system.checked_http import CheckedClient

        async with (
            CheckedClient(timeout=30) as http,
            open_credentials(settings, database, http) as credentials,
        ):
            gate = MailboxGate(database)  # never opened, since nothing is changed
            async with contextlib.aclosing(Mailboxes(settings, database, http, credentials, gate)) as mailboxes:
                yield await mailboxes.source(account_id)

    async def serve(
        self, settings: Settings, *, ready: Ready, invite: Invite, presses: Presses = never_pressed
    ) -> None:
        """Run pages, connector, dispatcher and worker in one process."""
        _check_address(settings, settings.web.port)
        with _served_once(settings) as note:
            from postroom.compose.serve import run_product

            def answers(address: str) -> None:
                note(address)
                ready(address)

            async with _open(settings) as database, _stoppable() as stop:
                await run_product(settings, database, stop, answers, invite, presses)

    async def demo(
        self,
        settings: Settings,
        *,
        port: int | None,
        fresh: bool,
        ready: Ready,
        invite: Invite,
        presses: Presses = never_pressed,
    ) -> None:
        """Run the whole product on a sandbox mailbox in which mail keeps arriving, on the data of the last time."""
        _check_address(settings, settings.web.port if port is None else port)
        from postroom.compose.demo import (
            SEED,
            add_sample_rules,
            demo_mailbox,
            demo_settings,
            held_demo_folder,
        )
        from postroom.compose.demo_story import story_of
        from postroom.compose.demo_town import Town, mail_goes_nowhere
        from postroom.compose.mailboxes import keep_sandbox_account
        from postroom.compose.serve import run_product
        from postroom.store.mail.mail import ACTS_ON_ALL

        with held_demo_folder(settings.data_dir, fresh) as folder:
            async with _stoppable() as stop, demo_mailbox(folder) as mailbox:
                prepared = demo_settings(settings, mailbox, folder, port)
                async with mail_goes_nowhere(prepared) as prepared, _open(prepared) as database:
                    await add_sample_rules(database)
                    # In a sample mailbox it acts without being asked to.
                    await keep_sandbox_account(prepared, database, ACTS_ON_ALL)
                    async with Town(database, SEED, story_of(mailbox, database, prepared)) as town:
                        await run_product(prepared, database, stop, town.starting(ready), invite, presses)

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
        report: Callable[[str], None],
    ) -> None:
        """Run only the Gmail emulator."""
        from postroom.compose.demo import SandboxPlan, sandbox_mailbox

        token = _token(settings)
        plan = SandboxPlan(port, seed, mail, user, units_per_minute, search_lag_s)
        async with _stoppable() as stop, sandbox_mailbox(plan, token, report) as address:
            ready(address)
            await stop.wait()

    async def worker(self, settings: Settings, *, concurrency: int) -> None:
        """Run only the job worker, with its part in leader election."""
        from postroom.compose.worker import run_worker

        async with _open(settings) as database, _stoppable() as stop:
            await run_worker(settings, database, stop, concurrency)

    async def submission(self, settings: Settings, *, ready: Ready) -> None:
        """Run only the submission server."""
        from postroom.compose.submission import run_submission

        async with _open(settings) as database, _stoppable() as stop:
            await run_submission(settings, database, stop, ready)

    async def connector_redis_stream(self, settings: Settings, **reading: Unpack[RedisReading]) -> None:
        """Run only the connector of one Redis stream."""
        from postroom.compose.redis import run_redis_source

        async with _stoppable() as stop:
            await run_redis_source(settings, stop, **reading)

    async def connector_gmail(self, settings: Settings, **watching: Unpack[WatchedMailbox]) -> None:
        """Run only the connector of one Gmail mailbox."""
        from postroom.compose.gmail import run_gmail_source

        async with _stoppable() as stop:
            await run_gmail_source(settings, stop, **watching)


def _check_address(settings: Settings, port: int) -> None:
    """Raise SettingsError if the pages may not or cannot be served there, before anything is loaded or opened."""
    from postroom.system.http_server.listening import open_listener

    web = settings.web
    open_listener(web.host, port, allow_exposed=web.may_be_exposed).close()


def _served_once(settings: Settings) -> contextlib.AbstractContextManager[Callable[[str], None]]:
    """Allow only one serving process on SQLite; several can share PostgreSQL. Yields what notes the address."""
    from postroom.store.engine.serve_lock import serve_lock

    if settings.database_url is not None:
        return contextlib.nullcontext(lambda _address: None)
    return serve_lock(settings.data_dir)


@contextlib.asynccontextmanager
async def _open(settings: Settings) -> AsyncGenerator[Database]:
    """Open the database, checked and migrated, with a backup from before."""
    from postroom.operations.installation.database import url_of
    from postroom.operations.installation.upgrades import naming_the_way_back, upgrade_at_start
    from postroom.store.engine.opening import open_database

    with naming_the_way_back(settings):
        database = await open_database(
            settings.data_dir,
            url_of(settings),
            allow_unsafe=settings.allow_unsafe_durability,
            migrating=functools.partial(upgrade_at_start, settings=settings),
        )
    try:
        yield database
    finally:
        await database.close()


@contextlib.asynccontextmanager
async def _stoppable() -> AsyncGenerator[asyncio.Event]:
    """Yield an event that SIGTERM and SIGINT set, so that everything can stop cleanly.

    Enter it after the database is open: that may wait for long, for a server or an upgrade, and looks at no event.
    """
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
