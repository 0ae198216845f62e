"""The Enter key of the user who runs a server at a terminal."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator

LOOK_EVERY_S = 1.0


def at_terminal() -> bool:
    """Whether a user reads the output and can press keys."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):  # a closed stream
        return False


async def presses(*, for_program: bool = False) -> AsyncGenerator[None]:
    """Yield whenever the user presses Enter; end at once where no user is at a terminal.

    A shell's background job must not read the terminal, whose keys then belong to the shell: it waits until it is in
    the foreground.
    """
    if for_program or not at_terminal():
        return
    # A job that is moved to the background just before it reads gets an error instead of being stopped.
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    file = sys.stdin.fileno()
    while (typed := await _typed(file)) != b"":
        if typed is None:
            await asyncio.sleep(LOOK_EVERY_S)
        elif b"\n" in typed:
            yield


async def _typed(file: int) -> bytes | None:
    """Wait for a line; None while the terminal is another job's, and nothing once it is gone."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(file, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(file)
        if os.tcgetpgrp(file) != os.getpgrp():
            return None
    except OSError:
        return b""
    try:
        return os.read(file, 1024)
    except OSError:
        return None
