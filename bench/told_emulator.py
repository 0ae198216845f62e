"""An emulator in a process of its own that delivers mail when its measuring process says so, a line for a line."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from postroom_sandbox.emulator import Emulator
from postroom_sandbox.server import running_emulator

from .install import ROOT

Words = dict[str, Any]


class ToldEmulator:
    """The emulator, as its measuring process sees it. `said` is what it told of itself at the start."""

    def __init__(self, process: asyncio.subprocess.Process, said: Words) -> None:
        self._process = process
        self.said = said

    async def tell(self, words: Words) -> Words:
        """Its answer comes when it has done what it was told."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        return await _heard(self._process)


@contextlib.asynccontextmanager
async def told_emulator(module: str, *words: str) -> AsyncGenerator[ToldEmulator]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, "emulator", *words),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    try:
        yield ToldEmulator(process, await _heard(process))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _heard(process: asyncio.subprocess.Process) -> Words:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError("the emulator has ended")
    return json.loads(line)


async def serve(emulator: Emulator, about: Words, do: Callable[[Words], Awaitable[Words]]) -> None:
    """The emulator's own side: serves, and does what it is told until nobody tells it anything any more."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with running_emulator(emulator) as address:
        print(json.dumps({**about, "address": address}), flush=True)
        while line := await reader.readline():
            print(json.dumps(await do(json.loads(line))), flush=True)
