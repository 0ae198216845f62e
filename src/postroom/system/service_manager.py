"""Tell systemd that this process is ready: units of `Type=notify` wait for it."""

import socket
from collections.abc import Mapping

ADDRESS = "NOTIFY_SOCKET"


def report_ready(environ: Mapping[str, str]) -> None:
    """Report it to the service manager that started this process, if one did and asked for it."""
    if address := environ.get(ADDRESS):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
            # `@` stands for the first byte of a name that is in no file system.
            sending.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
            sending.send(b"READY=1")
