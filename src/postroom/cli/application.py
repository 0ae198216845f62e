"""The interface between the command line and the composed program, which passes itself in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from pathlib import Path

    import typer

    from postroom.manage.database import Database
    from postroom.settings.reading import Settings

Ready = Callable[[str], None]
"""Called once, with the address, when a server is ready."""


class Application(Protocol):
    """The long-running parts. Each returns when asked to stop, and stops cleanly when canceled.

    Settings and logging are set up before any of these is called. Heavy imports belong inside the methods:
    every command creates the object, even `postroom --help`.
    """

    def open_database(self, settings: Settings) -> AbstractAsyncContextManager[Database]:
        """Open the database that the settings name, without migrating it."""
        ...

    async def serve(self, settings: Settings, *, ready: Ready) -> None:
        """Run pages, mailbox connector, dispatcher and worker in this process."""
        ...

    async def demo(self, settings: Settings, *, port: int | None, ready: Ready) -> None:
        """Run the same on a sandbox mailbox of its own, in which mail keeps arriving."""
        ...

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
        """Run only the Gmail emulator, on the sample mailbox of this seed or on the mail at a path."""
        ...

    async def worker(self, settings: Settings, *, concurrency: int) -> None:
        """Run only the job worker."""
        ...

    async def connector_redis_stream(
        self,
        settings: Settings,
        *,
        stream: str,
        group: str,
        consumer: str,
        identity: str,
        batch: int,
        claim_after: timedelta,
        ready: Ready,
    ) -> None:
        """Run only the connector of one Redis stream; call `ready` with its identity once it has joined the group."""
        ...

    async def connector_gmail(
        self,
        settings: Settings,
        *,
        email: str,
        also: tuple[str, ...],
        once: bool,
        ready: Ready,
        report: Callable[[int], None],
    ) -> None:
        """Run only the connector of one Gmail mailbox; with `once`, for one round, then `report` its new mail."""
        ...


def application_of(context: typer.Context) -> Application:
    """Return the application that `run` was given, from the context of any command."""
    return cast("Application", context.obj)
