"""Checks passwords in a few threads: one check takes 50 ms and 64 MiB on purpose.

A check takes as long where there is no password to compare with, so that its time does not tell whether a name exists.
"""

import asyncio
import secrets
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from postroom.vault.passwords import hash_password, is_password

THREADS = 2
MOST_WAITING = 64
T = TypeVar("T")


class PasswordThreads:
    """Callers look at `is_busy` first and then take a place in the queue with `waiting`: only so many may wait."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "postroom-login")
        self._waiting = 0
        self._decoy: str | None = None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def is_busy(self) -> bool:
        return self._waiting >= MOST_WAITING

    @contextmanager
    def waiting(self) -> Generator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def is_right(self, kept: str | None, password: str) -> bool:
        """Whether the password has this hash. False, after as long a time, without a hash."""
        return await self._in_thread(lambda: self._check(kept, password))

    async def hashed(self, password: str) -> str:
        """Hash a new password. Raises BadInput if it is too short or too long."""
        return await self._in_thread(lambda: hash_password(password, "password"))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _check(self, kept: str | None, password: str) -> bool:
        if kept is None:
            self._decoy = self._decoy or hash_password(secrets.token_urlsafe(24))
            is_password(password, self._decoy)
            return False
        return is_password(password, kept)
