"""Runs the asynchronous part of a command."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from postroom.cli.application import Application
    from postroom.settings.reading import Settings
    from postroom.store.engine.database import Database, Transaction

T = TypeVar("T")


def run_briefly(coroutine: Coroutine[Any, Any, T]) -> T:
    """For commands that ask something and end."""
    return asyncio.run(coroutine)


def run_until_stopped(coroutine: Coroutine[Any, Any, None]) -> None:
    """For commands that serve, on the fast event loop. Ctrl-C cancels them, and they clean up before it is raised."""
    loop = None if sys.platform == "win32" else importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(coroutine)


def with_database(
    application: "Application", settings: "Settings", use: Callable[["Database"], Coroutine[Any, Any, T]]
) -> T:
    """What `use` makes of the opened store."""

    async def opened() -> T:
        async with application.open_database(settings) as database:
            return await use(database)

    return run_briefly(opened())


def run_transaction(application: "Application", settings: "Settings", transaction: "Transaction[T]") -> T:
    """One store verb, in a store opened for it."""
    return with_database(application, settings, lambda database: database.run(transaction))
