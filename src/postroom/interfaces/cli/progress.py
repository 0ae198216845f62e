"""How far long work is: one line on stderr for a person at a terminal, after two seconds, gone when the work ends."""

import shutil
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

QUIET_S = 2.0
EVERY_S = 0.5
BAR = 20


class Report(Protocol):
    """Says what is being done, and how much of it is done; 0 for the total if it is not known."""

    def __call__(self, what: str, done: int, total: int = 0, /) -> None: ...


class _Line:
    """It is drawn by a thread, so that it moves while the work does not report; or only when the work reports."""

    def __init__(self, *, moves: bool) -> None:
        self._began = time.monotonic()
        self._drawn_at = self._began + QUIET_S - EVERY_S
        self._done: tuple[str, int, int] | None = None
        self._width = 0
        self._ended = threading.Event()
        self._drawing = threading.Thread(target=self._keep_drawing, name="postroom-progress", daemon=True)
        self._moves = moves
        if moves:
            self._drawing.start()

    def report(self, what: str, done: int, total: int = 0, /) -> None:
        self._done = what, done, total
        if not self._moves and time.monotonic() - self._drawn_at >= EVERY_S:
            self._drawn_at = time.monotonic()
            self._draw()

    def end(self) -> None:
        self._ended.set()
        if self._moves:
            self._drawing.join()
        self._write("")

    def _keep_drawing(self) -> None:
        wait = QUIET_S
        while not self._ended.wait(wait):
            self._draw()
            wait = EVERY_S

    def _draw(self) -> None:
        self._write(self._text()[: shutil.get_terminal_size().columns - 1])

    def _text(self) -> str:
        if self._done is None:
            return f"Working… {time.monotonic() - self._began:.0f} s"
        what, done, total = self._done
        if not total:
            return f"{what}  {done:,}"
        share = min(done / total, 1.0)
        return f"{what}  {drawn_bar(share, int(100 * share))}  {done:,} of {total:,}"

    def _write(self, text: str) -> None:
        """Write over the line before."""
        if text or self._width:
            blank = " " * self._width
            sys.stderr.write(f"\r{blank}\r{text}")
            sys.stderr.flush()
            self._width = len(text)


_shown: list[_Line] = []
"""The line that is shown now; work within other work reports on it."""


@contextmanager
def progress(as_json: bool = False, *, moves: bool = True) -> Generator[Report]:
    """Show how far the work of this block is. Nothing is shown to programs, in pipes, or before two seconds.

    Work that starts other processes by forking must not have a thread: its line does not move by itself.
    """
    if _shown or as_json or not sys.stderr.isatty():
        yield report
        return
    _shown.append(_Line(moves=moves))
    try:
        yield report
    finally:
        _shown.pop().end()


def report(what: str, done: int, total: int = 0, /) -> None:
    """Say what the work has come to, if its progress is shown."""
    for line in _shown:
        line.report(what, done, total)


def drawn_bar(share: float, percent: float) -> str:
    """A bar that is filled to this share of 1, with the percentage."""
    filled = round(share * BAR)
    return f"[{'#' * filled}{'-' * (BAR - filled)}] {percent} %"
