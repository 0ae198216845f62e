"""A preview by several processes: mail is read by one, and decided about by as many as there are cores.

Each process is a copy of this one with the same rules, made by `fork`, which costs no second start. Where there is no
`fork`, and for little mail, this process does everything.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from postroom.operations.preview.arrivals import IncomingMessage
from postroom.operations.preview.preview import Previewed, Previewer, Undecided

Chunk = list[IncomingMessage]
Progress = Callable[[int], None]
CHUNK = 50
# Below this, copies cost more than they save.
LEAST = 500

_previewers: list[Previewer] = []


def preview_all(mail: Iterable[IncomingMessage], previewer: Previewer, count: int, progress: Progress) -> None:
    """Add all messages to the previewer; `count` says about how many there are."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if cores < 2 or count < LEAST:
        for number, incoming in enumerate(mail, 1):
            previewer.add(incoming)
            progress(number)
        return
    _previewers[:] = [previewer]
    try:
        with multiprocessing.get_context("fork").Pool(cores) as pool:
            for rows, waiting in pool.imap(_preview_chunk, _chunks(mail)):
                previewer.continue_with(rows, waiting)
                progress(len(previewer.rows))
    finally:
        _previewers.clear()


def _preview_chunk(chunk: Chunk) -> tuple[list[Previewed], list[Undecided]]:
    """In a copy of the process: preview some messages."""
    [previewer] = _previewers
    for incoming in chunk:
        previewer.add(incoming)
    return previewer.take()


def _chunks(mail: Iterable[IncomingMessage]) -> Iterator[Chunk]:
    source = iter(mail)
    while chunk := list(islice(source, CHUNK)):
        yield chunk
