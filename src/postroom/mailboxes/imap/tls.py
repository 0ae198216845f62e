"""TLS over a transport of our own: bytes in, bytes out. Pure but for OpenSSL.

asyncio's TLS keeps a buffer of 256 KiB for every connection, which a thousand idle mailboxes cannot afford.
"""

import ssl


class TlsSession:
    """The client's side of one TLS connection. Errors are `ssl.SSLError`."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.is_open = False

    def begin(self) -> bytes:
        """The first bytes to send."""
        self._shake_hands()
        return self._outgoing.read()

    def receive(self, data: bytes) -> tuple[bytes, bytes, bool]:
        """The content of what came, what must be sent in return, and whether the other side has closed."""
        self._incoming.write(data)
        if not self.is_open:
            self._shake_hands()
        content, is_closed = self._read() if self.is_open else (b"", False)
        return content, self._outgoing.read(), is_closed

    def send(self, content: bytes) -> bytes:
        """The bytes to send for this content."""
        self._object.write(content)
        return self._outgoing.read()

    def _shake_hands(self) -> None:
        try:
            self._object.do_handshake()
            self.is_open = True
        except ssl.SSLWantReadError:
            pass

    def _read(self) -> tuple[bytes, bool]:
        chunks: list[bytes] = []
        try:
            while chunk := self._object.read(65536):
                chunks.append(chunk)
        except ssl.SSLWantReadError:
            return b"".join(chunks), False
        except ssl.SSLZeroReturnError:
            pass
        return b"".join(chunks), True
