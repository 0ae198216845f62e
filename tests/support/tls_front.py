"""TLS before a server that speaks plain on loopback, with a certificate that can be replaced while it runs; and
certificates that nobody should accept.
"""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.imap_server import authority
from support.patience import PATIENCE_S
from support.scripted_imap import Talk, scripted_imap

HOST = "127.0.0.1"


def valid() -> bytes:
    """Key and chain in PEM, as all of these."""
    return authority().issue_cert(HOST).private_key_and_cert_chain_pem.bytes()


def expired() -> bytes:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    return authority().issue_cert(HOST, not_after=past).private_key_and_cert_chain_pem.bytes()


def for_another_name() -> bytes:
    return authority().issue_cert("other.example").private_key_and_cert_chain_pem.bytes()


def self_signed() -> bytes:
    """The certificate of a server that has never heard of an authority, as many packages make it when installed."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + made.public_bytes(serialization.Encoding.PEM)


def certificate_of(pem: bytes) -> bytes:
    """Without the key."""
    return pem[pem.index(b"-----BEGIN CERTIFICATE-----") :]


@dataclass
class TlsFront:
    """What clients connect to. `sign_ins` counts the passwords that have come through."""

    behind: int
    port: int = 0
    sign_ins: int = 0
    _context: ssl.SSLContext = field(default_factory=lambda: ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    def present(self, pem: bytes) -> None:
        """The certificate of all connections from now on."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "certificate.pem"
            file.write_bytes(pem)
            self._context.load_cert_chain(file)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        async with scripted_imap(self._relay, self._context) as self.port:
            yield

    def cut(self) -> None:
        """End all connections."""
        for each in self._open:
            each.transport.abort()

    async def _relay(self, talk: Talk) -> None:
        reader, writer = await asyncio.open_connection(HOST, self.behind)
        self._open.add(talk.writer)

        async def up() -> None:
            while line := await talk.reader.readline():
                self.sign_ins += b" AUTHENTICATE " in line or b" LOGIN " in line
                writer.write(line)

        async def down() -> None:
            while chunk := await reader.read(65536):
                talk.writer.write(chunk)

        tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open.discard(talk.writer)
            writer.transport.abort()
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@dataclass(frozen=True)
class FrontInAThread:
    front: TlsFront
    run: Callable[[Callable[[], None]], None]
    """Call this in the front's loop, and wait for it."""

    def replace(self, pem: bytes) -> None:
        """Another certificate, also for those who are connected now."""

        def change() -> None:
            self.front.present(pem)
            self.front.cut()

        self.run(change)


@contextlib.contextmanager
def tls_front_in_a_thread(behind: int, pem: bytes) -> Generator[FrontInAThread]:
    """With a loop of its own, for tests that run commands."""
    started: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Queue()
    front = TlsFront(behind)
    front.present(pem)

    async def serve() -> None:
        ended = asyncio.Event()
        async with front.serving():
            started.put((asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, ended = started.get(timeout=PATIENCE_S)

    async def call(do: Callable[[], None]) -> None:
        do()

    try:
        yield FrontInAThread(
            front, lambda do: asyncio.run_coroutine_threadsafe(call(do), loop).result(timeout=PATIENCE_S)
        )
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
