"""The `postroom` command in processes that are born with everything loaded.

Most of the life of a short command is its imports: a second for a list, three for a server. Here one process loads them
once and forks for each command, which then has its own arguments, environment, folder and files, and runs `main` as
any other. The tests of one run share that process; it ends with the test process that started it.

    python -m support.warm_start ADDRESS
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, Any

from support.patience import PATIENCE_S
from support.processes import child_environment, give_up_root
from support.warm_request import send_request

LOADED = ("postroom", "postroom_sandbox", "postroom_simulator")


class ForkedProcess:
    """A command that runs, with what tests need of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        terminal: int | None = None,
        *,
        powerless: bool = False,
    ) -> None:
        """With the end of a `terminal`, which is closed here, the command controls it, as if a person had typed it.

        A `powerless` one is not root's, even if the tests are.
        """
        self.args = list(arguments)
        self.returncode: int | None = None
        ours, theirs = zip(os.pipe(), os.pipe(), strict=True)
        self._connection = _connected()
        with open(os.devnull, "rb") as nothing:
            send_request(
                self._connection,
                [nothing.fileno(), *theirs] if terminal is None else [terminal] * 3,
                arguments=self.args,
                folder=str(folder),
                environment=environment,
                has_terminal=terminal is not None,
                powerless=powerless,
            )
        for end in theirs if terminal is None else (*theirs, terminal):
            os.close(end)
        self._answers = self._connection.makefile("r")
        self.pid = int(self._answers.readline())
        self.stdout: IO[str] = os.fdopen(ours[0], "r")
        self.stderr: IO[str] = os.fdopen(ours[1], "r")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        if self.returncode is None and _is_readable(self._connection, 0):
            self.returncode = int(self._answers.readline())
        return self.returncode

    def wait(self, timeout: float = PATIENCE_S) -> int:
        if self.returncode is None and not _is_readable(self._connection, timeout):
            raise subprocess.TimeoutExpired(self.args, timeout)
        found = self.poll()
        assert found is not None
        return found

    def communicate(self, timeout: float = PATIENCE_S) -> tuple[str, str]:
        """What it still writes until it ends; nothing the second time."""
        if self.stdout.closed:
            return "", ""
        with ThreadPoolExecutor() as threads:
            reading = [threads.submit(file.read) for file in (self.stdout, self.stderr)]
            try:
                said, complaints = (each.result(timeout) for each in reading)
                self.wait(timeout)
            except (TimeoutError, subprocess.TimeoutExpired):
                self.kill()
                raise subprocess.TimeoutExpired(self.args, timeout) from None
        for file in (self.stdout, self.stderr, self._answers, self._connection):
            file.close()
        return said, complaints


def run_command(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], *, powerless: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command from its start to its end."""
    process = ForkedProcess(arguments, folder, environment, powerless=powerless)
    said, complaints = process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, said, complaints)


def warm_address() -> str:
    """Where that process listens, for a program that is not a test. It is started if there is none."""
    _connected().close()
    return _address()


def _connected() -> socket.socket:
    """A connection to the process that forks, which is started if there is none."""
    address = _address()
    with (Path(tempfile.gettempdir()) / f"{address}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(f"\0{address}")
        except ConnectionRefusedError:
            _start(address)
            connection.connect(f"\0{address}")
    connection.settimeout(PATIENCE_S)
    return connection


@cache
def _address() -> str:
    """One for all workers of a run, and no other."""
    return f"postroom-warm-start-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"


def _start(address: str) -> None:
    """Its standard input stays open for as long as this process lives."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.warm_start", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(),
    )
    _started.append(process)
    assert process.stdout is not None
    process.stdout.readline()


_started: list[subprocess.Popen[bytes]] = []


def _is_readable(connection: socket.socket, timeout: float) -> bool:
    with selectors.DefaultSelector() as waiting:
        waiting.register(connection, selectors.EVENT_READ)
        return bool(waiting.select(timeout))


def load_everything() -> None:
    """Import every module of the product. None may start a thread, since threads do not survive a fork."""
    for name in LOADED:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def wait_for_request(address: str) -> list[str]:
    """Fork for each request, and return in the child with its arguments."""
    running: dict[int, socket.socket] = {}
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, _noticed)
    signal.set_wakeup_fd(wakes.fileno())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{address}")
    listener.listen()
    print("open", flush=True)
    with selectors.DefaultSelector() as waiting:
        for each in (listener, woken, sys.stdin):
            waiting.register(each, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in waiting.select()]
            if sys.stdin in ready:
                sys.exit()
            if woken in ready:
                woken.recv(4096)
                _reap(running)
            if listener in ready:
                connection, _ = listener.accept()
                first, files, _, _ = socket.recv_fds(connection, 1, 3)
                if not first:
                    connection.close()
                    continue
                with connection.makefile("rb") as rest:
                    request = json.loads(first + rest.readline())
                child = os.fork()
                if child == 0:
                    for each in (listener, woken, wakes, connection, *running.values()):
                        each.close()
                    return _become(request, files)
                for file in files:
                    os.close(file)
                running[child] = connection
                connection.sendall(f"{child}\n".encode())


def _noticed(_signal: int, _frame: object) -> None:
    """Without a handler, the end of a child would wake nobody."""


def _reap(running: dict[int, socket.socket]) -> None:
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with running.pop(child) as connection, contextlib.suppress(OSError):
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(request: dict[str, Any], files: list[int]) -> list[str]:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if request.get("has_terminal"):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if request.get("powerless"):
        give_up_root()
    return request["arguments"]


if __name__ == "__main__":
    load_everything()
    arguments = wait_for_request(sys.argv[1])
    sys.argv = ["postroom", *arguments]
    importlib.import_module("postroom.app").main()
