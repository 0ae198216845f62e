"""The whole product at rest: `python -m bench.resting SECONDS`.

`postroom serve` on SQLite, in a process of its own, follows one sandbox mailbox in which nothing happens; no page is
open. The mailbox is in this process. Once it has settled, the voluntary context switches of all its threads are
counted, each of which is a wake-up, and its processor time.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import NamedTuple

import httpx2

from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator

from .order import answer
from .postfix import free_port

OWNER = "mara@lindqvist.example"
TOKEN = "bench-token"
# The first looks, and what follows them a minute later, are over by then.
SETTLED_S = 75.0
PATIENCE_S = 60.0


class Work(NamedTuple):
    """What a process has done so far."""

    wake_ups: int
    cpu_s: float


async def measure(seconds: float, settled_s: float = SETTLED_S) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with running_emulator(Emulator(Mailbox(OWNER, Random(1)), TOKEN)) as address:
            port = free_port()
            serving = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("postroom")), "serve", "--port", str(port),
                env={**os.environ, **_settings(Path(folder), address)}, stdout=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                await _ready(port)
                await asyncio.sleep(settled_s)
                before = work_of(serving.pid)
                await asyncio.sleep(seconds)
                after = work_of(serving.pid)
            finally:
                serving.terminate()
                await serving.wait()
    return {
        "wake_ups": (after.wake_ups - before.wake_ups) / seconds,
        "core_percent": 100 * (after.cpu_s - before.cpu_s) / seconds,
    }


def work_of(pid: int) -> Work:
    """As Linux counts it, for all threads."""
    wake_ups = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        lines = (thread / "status").read_text().splitlines()
        wake_ups += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Work(wake_ups, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))


def _settings(folder: Path, address: str) -> dict[str, str]:
    return {
        "POSTROOM_DATA_DIR": str(folder),
        "POSTROOM_GMAIL_BASE_URL": address,
        "POSTROOM_GMAIL_TOKEN": TOKEN,
        "POSTROOM_ACCOUNT_EMAIL": OWNER,
    }


async def _ready(port: int) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient(trust_env=False) as http:
        while True:
            try:
                if (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    answer(json.dumps(asyncio.run(measure(float(sys.argv[1])))))
