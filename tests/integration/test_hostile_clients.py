"""Slow and oversized clients at a whole Postroom in a process of its own, while mail goes on arriving.

Judged by counts: every mail is decided while the attack lasts, every ready client is answered, and memory stays. How
long mail took without and during the attack is printed. `make soak` attacks for a minute and more.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from postroom.store.engine.opening import connect_database
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.arrived import arrived_mail
from support.command import announced, postroom, running
from support.product import OWNER, TOKEN, raw_mail
from support.scale import scale

PATIENCE_S = 240
ROUNDS = scale(2, 30)
MAILS_A_ROUND = scale(15, 50)
SLOW_CLIENTS = scale(150, 600)
MOST_GROWTH_MIB = 200


@dataclass
class Attack:
    """Clients that never end: each that is thrown out comes back."""

    host: str
    port: int
    comings: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def begin(self) -> None:
        for _ in range(8):
            self._start(self._endless_headers)
        for number in range(SLOW_CLIENTS):
            self._start(self._half_sent if number % 3 else self._half_a_body)
        for _ in range(10):
            self._start(self._takes_no_answer)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def _start(self, behave: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]) -> None:
        self.tasks.append(asyncio.create_task(self._again_and_again(behave)))

    async def _again_and_again(
        self, behave: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
    ) -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                self.comings += 1
                try:
                    await behave(reader, writer)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.01)

    async def _endless_headers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HTTP/1.1\r\n")
        while not reader.at_eof():
            writer.write(b"X-Endless: " + b"x" * 8000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    async def _half_sent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        await reader.read()

    async def _half_a_body(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"POST /pause HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nhalf")
        await reader.read()

    async def _takes_no_answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 10)
        await asyncio.sleep(2)


@dataclass
class Trial:
    mailbox: Mailbox
    folder: Path
    url: str
    pid: int
    delivered: int = 0

    async def round(self) -> float:
        """More mail arrives; waits until all of it is decided, and says how many seconds that took."""
        for _ in range(MAILS_A_ROUND):
            self.delivered += 1
            self.mailbox.deliver(raw_mail(f"Mail {self.delivered}"))
        began = time.monotonic()
        database = connect_database(self.folder / "data", None)
        try:
            while True:
                rows = await arrived_mail(database)
                if sum(row.action_type is not None for row in rows) >= self.delivered:
                    return time.monotonic() - began
                await asyncio.sleep(0.05)
        finally:
            await database.close()

    async def ask(self, times: int) -> list[float]:
        """A ready client that comes anew each time and is answered each time; returns how long each answer took."""
        took: list[float] = []
        for _ in range(times):
            began = time.monotonic()
            reader, writer = await asyncio.open_connection(*self.place)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            writer.close()
            took.append(time.monotonic() - began)
        return took

    @property
    def place(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def memory_mib(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@contextlib.asynccontextmanager
async def trial(folder: Path) -> AsyncGenerator[Trial]:
    mailbox = Mailbox(OWNER, Random(1))
    async with running_emulator(Emulator(mailbox, TOKEN)) as gmail:
        with running(folder, "serve", "--port", "0", "--json", more=_settings(gmail)) as process:
            url = await asyncio.to_thread(announced, process)
            log = process.stderr
            reading = threading.Thread(target=lambda: deque(log, maxlen=0))
            reading.start()
            yield Trial(mailbox, folder, url, process.pid)
            process.terminate()
            await asyncio.to_thread(reading.join)


def _settings(gmail: str) -> dict[str, str]:
    return {
        "POSTROOM_ACCOUNT_EMAIL": OWNER,
        "POSTROOM_GMAIL_BASE_URL": gmail,
        "POSTROOM_GMAIL_TOKEN": TOKEN,
        "POSTROOM_GMAIL_POLL_S": "0.1",
        "POSTROOM_WEB_HEADERS_S": "2",
        "POSTROOM_WEB_BODY_S": "2",
    }


async def test_mail_goes_on_and_ready_clients_are_answered_among_slow_and_oversized_ones(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S + 20 * ROUNDS), trial(tmp_path) as tried:
        before = [await tried.round() for _ in range(ROUNDS)]
        usual = await tried.ask(20)
        memory = tried.memory_mib()
        attack = Attack(*tried.place)
        attack.begin()
        try:
            during: list[float] = []
            answers: list[float] = []
            for _ in range(ROUNDS):
                asking = asyncio.create_task(tried.ask(20))
                during.append(await tried.round())
                answers += await asking
        finally:
            await attack.end()
        growth = tried.memory_mib() - memory
        after = await tried.ask(1)
    print(
        f"{MAILS_A_ROUND} mails: {sum(before) / ROUNDS:.2f} s without, {sum(during) / ROUNDS:.2f} s among them; "
        f"/healthz: {_middle(usual) * 1000:.0f} ms without, {_middle(answers) * 1000:.0f} ms in the middle and "
        f"{max(answers) * 1000:.0f} ms at most among them; {attack.comings} hostile connections; "
        f"memory {memory:.0f} MiB, {growth:+.0f} MiB"
    )
    assert len(after) == 1
    assert growth < MOST_GROWTH_MIB


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def test_postroom_does_not_start_where_other_machines_would_read_the_mail(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "::ffff:0.0.0.0"):
        refused = postroom(tmp_path, "serve", "--host", host, "--port", "0")
        assert refused.returncode != 0
        assert "needs sign-in and TLS" in refused.stderr, refused.stderr
