"""Run the asynchronous part of a command."""

import asyncio
import importlib
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_briefly(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a command that asks something and ends."""
    return asyncio.run(coroutine)


def run_until_stopped(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine of a command that serves, on the fast event loop. Ctrl-C cancels it, and it cleans up."""
    loop = None if sys.platform == "win32" else importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(coroutine)
