"""Runs the asynchronous part of a command."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from postroom.cli.application import application_of

if TYPE_CHECKING:
    import typer

    from postroom.cli.application import Application
    from postroom.manage.database import Database
    from postroom.settings.reading import Settings

P = ParamSpec("P")
T = TypeVar("T")


def call(
    context: "typer.Context",
    settings: "Settings",
    function: Callable[Concatenate["Database", P], Coroutine[Any, Any, T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Calls a function of `manage` on the database that the settings name, and returns its answer."""
    return with_database(application_of(context), settings, lambda database: function(database, *args, **kwargs))


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
    """Opens the database for one call of `use`, and returns its answer."""

    async def opened() -> T:
        async with application.open_database(settings) as database:
            return await use(database)

    return run_briefly(opened())
