"""A process that has everything loaded and forks: each child is a process of its own, born in milliseconds.

Hundreds of processes are killed in one test, and most of a process's short life would go into its imports. Whoever
connects to the fork server's socket and names a module gets a child that runs it, with the connection as its standard
output; whoever names a child that has closed it is told how that one ended. A child whose listener is gone dies of it.

    python -m support.fork_server ADDRESS support.crash.intake_process support.crash.consumer_process
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import uvloop

from support.processes import Child, ProcessGroup, announce, log_to_stderr

FORK_SERVER = "support.fork_server"
Main = Callable[[argparse.Namespace], Coroutine[Any, Any, None]]
Parse = Callable[[Sequence[str]], argparse.Namespace]


def run_as_child(
    main: Main,
    parse: Parse,
    words: Sequence[str] | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> None:
    """The life of a child, forked or started by hand."""
    log_to_stderr()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(parse(sys.argv[1:] if words is None else words)))


def serve_forks(address: str, modules: Sequence[str]) -> None:
    """The fork server's own life: one thread, no loop, nothing that could not be forked."""
    known = {name: importlib.import_module(name) for name in modules}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen()
        announce("open")
        while True:
            connection, _ = listener.accept()
            request = json.loads(connection.makefile().readline())
            if "reap" in request:
                _, status = os.waitpid(request["reap"], 0)
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            elif os.fork() == 0:
                listener.close()
                _live(connection, known[request["module"]], request["words"], request["errors"])
            connection.close()


def _live(connection: socket.socket, module: Any, words: Sequence[str], errors: str) -> None:
    code = 1
    try:
        os.dup2(connection.fileno(), 1)
        connection.close()
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        announce("born", os.getpid())
        run_as_child(module.main, module.parse, words, getattr(module, "new_loop", uvloop.new_event_loop))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


class _Forked:
    """As much of a subprocess as `Child` needs. Its end is heard when its connection closes."""

    def __init__(self, pid: int, address: str, stdout: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._address = address
        self._writer = writer

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        while not self.stdout.at_eof():
            await self.stdout.read(1)
        if self.returncode is None:
            self.returncode = int(await self._ask_how_it_ended())
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        return self.returncode

    async def _ask_how_it_ended(self) -> bytes:
        reader, writer = await asyncio.open_unix_connection(f"\0{self._address}")
        writer.write(json.dumps({"reap": self.pid}).encode() + b"\n")
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return answer


class ForkServer:
    """The test's side: asks for children, and lets none outlive the test."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._address = address
        self._children: list[Child] = []

    async def start(self, module: str, *words: str) -> Child:
        name = f"{module.rpartition('.')[2]}-{len(self._children) + 1}"
        errors = self._folder / f"{name}.err"
        errors.touch()
        reader, writer = await asyncio.open_unix_connection(f"\0{self._address}")
        writer.write(json.dumps({"module": module, "words": words, "errors": str(errors)}).encode() + b"\n")
        born = (await reader.readline()).decode().split()
        assert born[1:2] == ["born"], f"{name} was not born: {born}"
        process = cast(asyncio.subprocess.Process, _Forked(int(born[2]), self._address, reader, writer))
        child = Child(process, f"{name} {' '.join(words)}", errors)
        self._children.append(child)
        return child

    async def end(self) -> None:
        for child in self._children:
            if child.running:
                await child.kill()


@contextlib.asynccontextmanager
async def fork_server(folder: Path, processes: ProcessGroup, *modules: str) -> AsyncGenerator[ForkServer]:
    """A fork server that has these modules loaded."""
    address = new_address()
    opened = await processes.start(FORK_SERVER, address, *modules)
    await opened.hear("open")
    children = ForkServer(folder, address)
    try:
        yield children
    finally:
        await children.end()
        await opened.kill()


def new_address() -> str:
    return f"postroom-nursery-{uuid4()}"


class ForkedProcesses(ProcessGroup):
    """A group of processes whose members are born in a fork server that many tests share, where it knows them."""

    def __init__(self, folder: Path, address: str, known: Sequence[str]) -> None:
        super().__init__(folder)
        self._fork_server = ForkServer(folder, address)
        self._known = known

    async def start(self, module: str, *arguments: str) -> Child:
        born_at = self._fork_server.start if module in self._known else super().start
        return await born_at(module, *arguments)

    async def end(self) -> None:
        await self._fork_server.end()
        await super().end()


if __name__ == "__main__":
    serve_forks(sys.argv[1], sys.argv[2:])
