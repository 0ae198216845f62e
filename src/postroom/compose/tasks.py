"""Background tasks of a process, and its tuning before it serves."""

import asyncio
import contextlib
import gc
import resource
import sys
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

# Python's default is 5 ms. That is how long a busy event loop delays a thread that returns from the database, which
# happens after every statement. With this value mail passes through a third faster, at no more CPU time.
SWITCH_S = 0.0005
ENOUGH_FILES = 65_536


def settle_memory() -> None:
    """Exempt everything loaded so far from garbage collection: scanning it would stop the process for a tenth of a
    second at a time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def share_with_threads() -> None:
    """Let threads that wait for the database run soon, however busy the event loop is."""
    sys.setswitchinterval(SWITCH_S)


def allow_open_files() -> None:
    """Let the process open as many files as it may, up to what it can use. The usual limit of 1024 is a precaution for
    programs that call `select`, and too few for many mailboxes and pages.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems allow less than they say.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> AsyncGenerator[None]:
    """Run beside the block. If it fails, stop everything and raise the error."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda _task: stop.set())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
