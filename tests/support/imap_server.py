"""What the real IMAP servers of the tests have in common: a port on loopback, a certificate, and a new mailbox for
every name.

A *profile* is the same server with some extensions switched off in its configuration, on an address of its own.
"""

import contextlib
import imaplib
import os
import pwd
import random
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import trustme

from support.patience import PATIENCE_S

PASSWORD = "correct-horse-battery"

_BARE = (
    "MOVE XMOVE UIDPLUS CONDSTORE QRESYNC SPECIAL-USE LIST-EXTENDED LIST-STATUS OBJECTID ESEARCH IDLE NOTIFY "
    "NAMESPACE ENABLE LITERAL+ ID SASL-IR UNSELECT XLIST CREATE-SPECIAL-USE"
)
PROFILES: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "no_move": frozenset({"MOVE", "XMOVE"}),
    "no_uidplus": frozenset({"UIDPLUS"}),
    "neither": frozenset({"MOVE", "XMOVE", "UIDPLUS"}),
    "bare": frozenset(_BARE.split()),
}
"""The extensions that are switched off, by the name of the profile."""


@cache
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def trusting() -> ssl.SSLContext:
    """A client's context that trusts the servers of the tests. To load the system's authorities takes a while."""
    context = ssl.create_default_context()
    authority().configure_trust(context)
    return context


def address_of(profile: str) -> str:
    return f"127.0.0.{1 + list(PROFILES).index(profile)}"


def write_certificate(folder: Path, owner: str | None) -> Path:
    """One file with the key and the chain, for localhost and all profiles."""
    made = authority().issue_cert("localhost", *map(address_of, PROFILES))
    file = folder / "certificate.pem"
    file.write_bytes(made.private_key_and_cert_chain_pem.bytes())
    file.chmod(0o600)
    if owner is not None:
        uid, gid = ids_of(owner)
        os.chown(file, uid, gid)
    return file


def ids_of(user: str) -> tuple[int, int]:
    found = pwd.getpwnam(user)
    return found.pw_uid, found.pw_gid


def unprivileged() -> str:
    """The user that the server's processes run as: this one, or for root one that owns nothing."""
    return pwd.getpwuid(os.geteuid()).pw_name if os.geteuid() else "mail"


@contextmanager
def server_folder(kind: str) -> Generator[Path]:
    """A new folder that everybody may look into; in memory where that is possible, since servers wait for the disk."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=f"postroom-{kind}-", dir=parent, ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def free_ports(count: int) -> list[int]:
    """Ports below those that the system hands out: until the server has them, no other program gets one by chance."""
    found = set[int]()
    while len(found) < count:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            found.add(port)
    return list(found)


@dataclass
class ImapServer:
    """A running server. Any user name is a mailbox, made at its first login."""

    kind: str
    port: int
    tls_port: int
    folder: Path
    processes: list[subprocess.Popen[Any]] = field(default_factory=list[subprocess.Popen[Any]])

    def new_user(self) -> str:
        return f"u{uuid4().hex[:12]}"

    def second_client(self, user: str, profile: str = "all") -> imaplib.IMAP4:
        """The standard library's client, signed in, as another program beside ours."""
        client = imaplib.IMAP4(address_of(profile), self.port)
        client.login(user, PASSWORD)
        return client

    def start(
        self, command: Sequence[str | Path], log: IO[bytes] | int, environment: Mapping[str, str] = os.environ
    ) -> None:
        """Start it as a child of ours that stays in the foreground.

        A Cyrus that stops signals its whole process group, which must not reach the tests or their other servers.
        """
        started = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        self.processes.append(started)

    def wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            ended = any(each.poll() is not None for each in self.processes)
            if time.monotonic() > deadline or ended:
                text = log.read_text(errors="replace")[-2000:] if log.exists() else "nothing"
                raise RuntimeError(f"{self.kind} did not start; it said:\n{text}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as probe:
                return probe.recv(4).startswith(b"* OK")
        except OSError:
            return False

    def stop(self) -> None:
        for each in self.processes:
            if each.poll() is None:
                each.terminate()
        for each in self.processes:
            each.wait()


def offered(everything: str, profile: str) -> str:
    """The extensions that are left, in one line."""
    return " ".join(each for each in everything.split() if each not in PROFILES[profile])
