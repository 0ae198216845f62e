"""A server in a process of its own, up for one measurement."""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import asdict, dataclass

from .answers import SubjectFailedError, first_line_of
from .install import ROOT
from .order import Target

STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Served:
    """Where it is, and the token that opens it; the bare one needs none."""

    address: str
    token: str


@contextlib.contextmanager
def served(kind: str, target: Target) -> Generator[Served]:
    """`ours` on the target, or `bare`. Ended by a polite kill; one that then does not end is an error."""
    command = [sys.executable, "-m", "bench.server", kind, json.dumps(asdict(target))]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        try:
            try:
                said = first_line_of(process, f"the server {kind} did not start")
            except SubjectFailedError as error:
                errors.seek(0)
                raise SubjectFailedError(f"{error}\n{errors.read().strip()[-2000:]}") from None
            yield Served(**json.loads(said))
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
