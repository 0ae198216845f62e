"""Real child processes: modules of the tests, heard line by line, signalled by their id, never left behind.

A child announces what it does on its standard output; a test waits for those lines instead of for time to pass. Both
sides read the same clock (CLOCK_MONOTONIC is one for the whole machine), so moments can be compared across processes.
"""

import asyncio
import contextlib
import ctypes
import itertools
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import structlog

from support.patience import PATIENCE_S

TESTS = Path(__file__).parents[1]
TAIL = 3000
_CAPABILITIES_3 = 0x20080522  # the version of what capset(2) is given: three sets of 64 bits


class Line(NamedTuple):
    """One announcement: when it was made, what about, and its details."""

    at: float
    word: str
    details: str


def announce(word: str, *details: object) -> None:
    """The child's side. One unbuffered write: it is out before anything else can happen to the process."""
    os.write(1, f"{time.monotonic():.6f} {word} {' '.join(str(each) for each in details)}\n".encode())


def log_to_stderr() -> None:
    """The child's side: standard output is for announcements only."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def give_up_root() -> None:
    """Permission bits do not stop root. Without its capabilities it is a user like any other, who has root's files."""
    if os.geteuid() == 0:
        header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None, use_errno=True).capset(header, nothing) == 0, os.strerror(ctypes.get_errno())


class Child:
    """A running process and everything it has announced."""

    def __init__(self, process: asyncio.subprocess.Process, name: str, errors: Path) -> None:
        self.name = name
        self.pid = process.pid
        self.lines: list[Line] = []
        self._process = process
        self._errors = errors
        self._news = asyncio.Event()
        self._silent = False
        self._listening = asyncio.create_task(self._listen(), name=f"listen-{name}")

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    def announced(self, word: str) -> list[Line]:
        return [line for line in self.lines if line.word == word]

    async def hear(self, *words: str, after: float = 0.0, patience_s: float = PATIENCE_S) -> Line:
        """The first announcement of one of these words that was made after that moment."""
        seen = 0
        with self._patience(f"said none of {words}", patience_s):
            async with asyncio.timeout(patience_s):
                while True:
                    while seen < len(self.lines):
                        line = self.lines[seen]
                        seen += 1
                        if line.word in words and line.at > after:
                            return line
                    await self._next()

    async def until(self, condition: Callable[[], Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
        """Looks again whenever the child says something, until the condition holds."""
        with self._patience("did not bring about what was waited for", patience_s):
            async with asyncio.timeout(patience_s):
                while not await condition():
                    await self._next()

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def kill(self) -> float:
        """SIGKILL, and the moment at which it was sent."""
        moment = time.monotonic()
        self.signal(signal.SIGKILL)
        await self.ended()
        return moment

    async def ended(self, patience_s: float = PATIENCE_S) -> int:
        """Waits for the process to end by itself; negative is the signal that ended it."""
        with self._patience("did not end", patience_s):
            async with asyncio.timeout(patience_s):
                await self._listening
                return await self._process.wait()

    def complaints(self) -> str:
        return self._errors.read_text(errors="replace")[-TAIL:]

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            at, _, rest = raw.decode().rstrip("\n").partition(" ")
            word, _, details = rest.partition(" ")
            self.lines.append(Line(float(at), word, details))
            self._tell()
        self._silent = True
        self._tell()

    def _tell(self) -> None:
        told, self._news = self._news, asyncio.Event()
        told.set()

    async def _next(self) -> None:
        if self._silent:
            code = await self._process.wait()
            raise AssertionError(f"{self.name} ended with {code} too early:\n{self.complaints()}")
        await self._news.wait()

    @contextlib.contextmanager
    def _patience(self, problem: str, seconds: float):
        try:
            yield
        except TimeoutError:
            last = [f"{line.word} {line.details}" for line in self.lines[-10:]]
            raise AssertionError(
                f"{self.name} {problem} within {seconds:g} s; last heard: {last}\n{self.complaints()}"
            ) from None


async def hear_any(children: Iterable[Child], word: str, after: float = 0.0) -> tuple[Child, Line]:
    """Whichever of them is the first to say the word."""
    listening = {asyncio.create_task(child.hear(word, after=after)): child for child in children}
    try:
        await asyncio.wait(listening, return_when=asyncio.FIRST_COMPLETED)
        heard = [(child, task.result()) for task, child in listening.items() if task.done()]
        return min(heard, key=lambda each: each[1].at)
    finally:
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)


class ProcessGroup:
    """The children of one test. Whatever happens, none outlives it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []
        self._numbers = itertools.count(1)

    async def start(self, module: str, *arguments: str) -> Child:
        name = f"{module.rpartition('.')[2]}-{next(self._numbers)}"
        errors = self._folder / f"{name}.err"
        with errors.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=file,
                env=child_environment(),
            )
        child = Child(process, f"{name} {' '.join(arguments)}", errors)
        self._children.append(child)
        return child

    async def end(self) -> None:
        for child in self._children:
            if child.running:
                await child.kill()


def child_environment() -> dict[str, str]:
    """Ours, with the tests to import from."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
