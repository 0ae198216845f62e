"""A terminal at which a person runs a command, reads its output and types."""

import os
import select
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from support.command import environment
from support.patience import PATIENCE_S
from support.warm_start import ForkedProcess

AGAIN_S = 5.0


class Terminal:
    """What was shown so far is in `shown`."""

    def __init__(self, file: int, process: ForkedProcess | subprocess.Popen[bytes]) -> None:
        self._file = file
        self.process = process
        self.shown = ""
        self._waited_for = 0

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def read_until(self, text: str) -> str:
        """Wait until a text is shown after the last one waited for; return all between them, and the text."""
        before, end = self._waited_for, time.monotonic() + PATIENCE_S
        while text not in self.shown[before:]:
            assert self._read(end - time.monotonic()), f"{text!r} is not shown:\n{self.shown}"
        self._waited_for = self.shown.index(text, before) + len(text)
        return self.shown[before : self._waited_for]

    def read_to_end(self) -> str:
        """Wait for the end of the command; return all that it ever showed."""
        end = time.monotonic() + PATIENCE_S
        while self._read(end - time.monotonic()):
            pass
        self.process.wait()
        return self.shown

    def press_until_end(self, key: str) -> str:
        """Press a key until the command ends; return all that it ever showed. Python does not see a signal that comes
        just before it waits for input: a person presses the key again.
        """
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            with suppress(OSError, subprocess.TimeoutExpired):
                self.type(key)
                while self._read(AGAIN_S):
                    pass
                self.process.wait(AGAIN_S)
        self.process.wait()
        return self.shown

    def _read(self, timeout: float) -> bool:
        if not select.select([self._file], [], [], max(timeout, 0))[0]:
            return False
        try:
            part = os.read(self._file, 65536)
        except OSError:  # the last process at this terminal has ended
            return False
        self.shown += part.decode().replace("\r\n", "\n")
        return bool(part)


@contextmanager
def at_terminal(
    folder: Path,
    *arguments: str,
    columns: int = 100,
    more: Mapping[str, str] | None = None,
    home: Mapping[str, str] | None = None,
) -> Generator[Terminal]:
    """With a `home`, that is the environment, without the settings that most tests want; `more` is added."""
    ours, theirs = os.openpty()
    outside = environment(folder, None) if home is None else dict(home)
    process = ForkedProcess(arguments, folder, outside | {"COLUMNS": str(columns), **(more or {})}, terminal=theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def shown_by(file: int, text: str, patience_s: float) -> str:
    """What a terminal shows until this text."""
    shown, end = "", time.monotonic() + patience_s
    while text not in shown:
        assert select.select([file], [], [], max(0, end - time.monotonic()))[0], f"{text!r} is not shown: {shown!r}"
        shown += os.read(file, 4096).decode()
    return shown
