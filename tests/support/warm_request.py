"""What a process writes to the warm start (`support/warm_start.py`) to have a command run."""

import json
import socket
from collections.abc import Mapping, Sequence


def send_request(
    connection: socket.socket,
    files: Sequence[int],
    *,
    arguments: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    **more: bool,
) -> None:
    """Ask for a process with these files as its standard ones; the answer is its id, and later its exit code, in a line
    each.
    """
    request = {"arguments": arguments, "folder": folder, "environment": dict(environment), **more}
    content = json.dumps(request).encode() + b"\n"
    socket.send_fds(connection, [content[:1]], files)
    connection.sendall(content[1:])
