"""Progress of long work on stderr, for those who wait."""

import sys
import time

import typer

QUIET_S = 2.0


class Progress:
    """Prints how far the work is now and then, if it takes more than a moment."""

    def __init__(self) -> None:
        self._shown_at = time.monotonic()

    def show(self, line: str, *, is_last: bool = False) -> None:
        if (now := time.monotonic()) - self._shown_at >= QUIET_S:
            self._shown_at = now
            end = "\r" if sys.stderr.isatty() and not is_last else "\n"
            typer.echo(f"{line}{end}", err=True, nl=False)
