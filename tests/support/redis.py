"""A real Redis of our own: found or installed, started on a Unix socket in a new folder, and on a port of the
loopback address if its options ask for one, stopped or killed by its id.

It writes every command to disk before it answers (`appendfsync always`), so that what it has acknowledged survives
a kill.
"""

import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.patience import PATIENCE_S
from support.programs import system_program


class RedisServer:
    """One server process with its data folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.options = options
        self.user: str | None = None
        self.process: subprocess.Popen[Any] | None = None
        self._program = system_program("redis-server")

    @property
    def url(self) -> str:
        return f"unix://{self.user}@{self.socket}" if self.user else f"unix://{self.socket}"

    def start(self) -> None:
        command = [
            self._program,
            "--port",
            "0",
            "--bind",
            "127.0.0.1",
            "--unixsocket",
            str(self.socket),
            "--dir",
            str(self.folder),
        ]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", *self.options]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until_ready()

    def stop(self) -> None:
        """In good order; all connections are closed."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def _wait_until_ready(self, timeout: float = PATIENCE_S) -> None:
        assert self.process is not None
        deadline = time.monotonic() + timeout
        while not self._answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"Redis did not start:\n{(self.folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        """While it reads its data it answers -LOADING; with a password it answers -NOAUTH, and is ready."""
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


@contextmanager
def running_redis(*options: str) -> Generator[RedisServer]:
    """A server for the block. Its folder has a short name: paths of sockets have a longest length."""
    with tempfile.TemporaryDirectory(prefix="postroom-redis-", ignore_cleanup_errors=True) as folder:
        server = RedisServer(Path(folder), *options)
        server.start()
        try:
            yield server
        finally:
            server.stop()
