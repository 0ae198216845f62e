"""Run the asynchronous part of a command."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from postroom.cli.application import application_of

if TYPE_CHECKING:
    import typer

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
    """Call a function of `manage` on the database that the settings name, and return its result."""

    async def opened() -> T:
        async with application_of(context).open_database(settings) as database:
            return await function(database, *args, **kwargs)

    return run_briefly(opened())


def run_briefly(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a command that asks something and ends."""
    return asyncio.run(coroutine)


def run_until_stopped(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine of a command that serves, on the fast event loop. Ctrl-C cancels it, and it cleans up."""
    loop = None if sys.platform == "win32" else importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(coroutine)
