"""Runs the asynchronous part of a command."""

import asyncio
import importlib
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_briefly(coroutine: Coroutine[Any, Any, T]) -> T:
    """For commands that ask something and end."""
    return asyncio.run(coroutine)


def run_until_stopped(coroutine: Coroutine[Any, Any, None]) -> None:
    """For commands that serve, on the fast event loop. Ctrl-C cancels them, and they clean up before it is raised."""
    loop = None if sys.platform == "win32" else importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(coroutine)
