"""URL-safe base64 without padding (RFC 4648, section 5), as in JWTs and in Gmail's messages."""

import base64


def encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decode text with or without padding. Raises ValueError if it is not base64."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
