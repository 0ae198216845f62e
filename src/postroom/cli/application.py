"""What the command line needs from the composed program, which lies above it and hands itself in."""

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
"""Called once, with the address, when a server answers."""


class Application(Protocol):
    """The long-running parts. Each returns when it was asked to stop, and stops cleanly when it is canceled.

    Settings and logging are set up before any of these is called. Heavy imports belong inside the methods: the
    object itself is made for every `postroom --help`.
    """

    def open_database(self, settings: Settings) -> AbstractAsyncContextManager[Database]:
        """The store as the settings name it: opened, not migrated."""
        ...

    async def serve(self, settings: Settings, *, ready: Ready) -> None:
        """Pages, mailbox connector, dispatcher and worker, in this process."""
        ...

    async def demo(self, settings: Settings, *, port: int | None, ready: Ready) -> None:
        """The same on a sandbox mailbox of its own, in which mail keeps arriving."""
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
        told: Callable[[str], None],
    ) -> None:
        """Only the Gmail emulator, on the sample mailbox of this seed or on the mail at a path."""
        ...

    async def worker(self, settings: Settings, *, concurrency: int) -> None:
        """Only the job worker."""
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
        """Only the connector of one Redis stream; `ready` is called with its identity when it has joined the group."""
        ...

    async def connector_gmail(
        self,
        settings: Settings,
        *,
        email: str,
        also: tuple[str, ...],
        once: bool,
        ready: Ready,
        told: Callable[[int], None],
    ) -> None:
        """Only the connector of one mailbox at Gmail; with `once` for one round, of which `told` hears."""
        ...


def application_of(context: typer.Context) -> Application:
    """The application that `run` was given, out of the context of any command."""
    return cast("Application", context.obj)
