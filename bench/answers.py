"""How a subject's process is asked, and how its answer is read: whatever it does, the run goes on.

A process may crash, hang, or say something that is no answer. Each of these is a SubjectFailedError with the reason,
which becomes the subject's line in the table.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from .install import ROOT

SHOWN = 2000
START_S = 300.0


class SubjectFailedError(RuntimeError):
    """A subject ended with an error, or did not do the work it was asked to do."""


def answer_of(command: Sequence[str], what: str, timeout_s: float) -> dict[str, Any]:
    """The JSON object in the last line that the process says before it ends.

    `what` begins the message when there is none: "pgqueuer could not drain".
    """
    # A session of its own: what the subject has started goes with it, and cannot hold the pipes open after it.
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise SubjectFailedError(f"{what}: {error}") from None
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise SubjectFailedError(f"{what}: it did not end within {timeout_s:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    if process.returncode != 0:
        raise SubjectFailedError(
            f"{what}: it ended with {process.returncode}:\n{errors.decode(errors='replace').strip()[-SHOWN:]}"
        )
    return _read(output.decode(errors="replace"), what)


def first_line_of(process: subprocess.Popen[bytes], what: str, timeout_s: float = START_S) -> str:
    """The first line that a server says once it is up."""
    assert process.stdout is not None
    said, until = b"", time.monotonic() + timeout_s
    while not said.endswith(b"\n"):
        if not select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            raise SubjectFailedError(f"{what}: it said nothing within {timeout_s:g} s")
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            raise SubjectFailedError(f"{what}: it ended")
        said += byte
    return said.decode(errors="replace").rstrip("\n")


def _read(output: str, what: str) -> dict[str, Any]:
    last = (output.splitlines() or [""])[-1]
    try:
        said = json.loads(last)
    except ValueError as error:
        raise SubjectFailedError(f"{what}: its answer of {len(last)} characters cannot be read ({error})") from None
    if not isinstance(said, dict):
        raise SubjectFailedError(f"{what}: its answer is {last[:100]}, and not an object")
    return said
