"""Reads the body of a request, up to a limit."""

from starlette.requests import ClientDisconnect
from starlette.types import Receive


async def read_body(receive: Receive, largest: int) -> bytearray | None:
    """The whole body; None as soon as it is known to be too large. Raises ClientDisconnect if the client leaves."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > largest:
            return None
        if not message.get("more_body", False):
            return body
