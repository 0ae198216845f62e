"""A server in a process of its own, up for one measurement."""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import asdict, dataclass

from .install import ROOT
from .order import Target
from .subjects import SubjectFailedError

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
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            if not said:
                process.wait()
                errors.seek(0)
                raise SubjectFailedError(f"the server {kind} did not start:\n{errors.read().strip()[-2000:]}")
            yield Served(**json.loads(said))
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
