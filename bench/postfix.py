"""A Postfix of the bench's own, and its `smtp-source`.

It is started from a configuration in a folder of the run, beside whatever Postfix the machine may have, and needs root.
It sends everything on to a relay; or, without one, puts everything on hold: that is as durable as any mail in its
queue, and no delivery competes with the acceptance.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

from .answers import SubjectFailedError

SMTP_SOURCE = "/usr/sbin/smtp-source"
SMTP_SINK = "/usr/sbin/smtp-sink"
SENDER, RECIPIENT = "ada@example.com", "bob@example.net"
PATIENCE_S = 60.0
UNDER_WAY = ("maildrop", "incoming", "active", "deferred")
MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = mail.example
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
alias_maps =
smtputf8_enable = no
in_flow_delay = 0s
default_process_limit = 100
maillog_file =
"""
HOLD = "smtpd_recipient_restrictions = check_recipient_access static:HOLD, permit_mynetworks, reject\n"
RELAY = """
relayhost = [127.0.0.1]:{relay}
smtpd_recipient_restrictions = permit_mynetworks, reject
default_destination_concurrency_limit = 64
initial_destination_concurrency = 64
"""
MASTER = """
127.0.0.1:{port} inet n - n - 100 smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


def require() -> None:
    """Raise unless Postfix is installed, and may be started."""
    if not Path(SMTP_SOURCE).exists():
        raise SubjectFailedError("smtp-source is not installed; `apt-get install postfix` brings it, and the peer")
    if os.geteuid() != 0:
        raise SubjectFailedError("Postfix can be started by root only")


@contextlib.contextmanager
def running(folder: Path, relay: int | None = None) -> Generator[int]:
    """Run Postfix during the block. Yields its port. It sends mail on to the port `relay`, if that is given."""
    require()
    port = free_port()
    way_out = HOLD if relay is None else RELAY.format(relay=relay)
    configuration = folder / "postfix"
    configuration.mkdir()
    (folder / "queue").mkdir()
    (folder / "data").mkdir()
    shutil.chown(folder / "data", "postfix", "root")
    (configuration / "main.cf").write_text(MAIN.format(folder=folder) + way_out)
    (configuration / "master.cf").write_text(MASTER.format(port=port))
    _postfix(configuration, "start")
    try:
        wait_for(port)
        yield port
    finally:
        _postfix(configuration, "stop")


def held(folder: Path) -> int:
    """How many mails are on hold."""
    return _files(folder, "hold")


def queued(folder: Path) -> int:
    """How many mails have not left, once it has come to rest."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := sum(_files(folder, name) for name in UNDER_WAY)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _files(folder: Path, name: str) -> int:
    return sum(len(files) for _, _, files in os.walk(folder / "queue" / name))


def submit(port: int, connections: int, count: int, size: int) -> float:
    """The seconds that smtp-source needs until each of its mails was acknowledged, over connections that stay open."""
    command = [SMTP_SOURCE, "-d", "-s", str(connections), "-m", str(count), "-l", str(size)]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, "-f", SENDER, "-t", RECIPIENT, f"127.0.0.1:{port}"], capture_output=True, check=False, timeout=1200
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SubjectFailedError(f"smtp-source failed: {done.stderr.decode()[-300:]}")
    return seconds


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    """Wait until somebody greets at the port."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as probe:
            if probe.recv(4).startswith(b"220"):
                return
        time.sleep(0.1)
    raise SubjectFailedError(f"nobody greets at port {port}")


def _postfix(configuration: Path, word: str) -> None:
    done = subprocess.run(
        ["/usr/sbin/postfix", "-c", str(configuration), word], capture_output=True, check=False, timeout=PATIENCE_S
    )
    if done.returncode and word == "start":
        raise SubjectFailedError(f"Postfix does not {word}: {done.stderr.decode()[-300:]}")
