"""Pictures of few colours as PNG (ISO/IEC 15948): a palette, and one byte for each point."""

import struct
import zlib
from collections.abc import Iterable


def palette_png(width: int, height: int, palette: bytes, rows: Iterable[bytes]) -> bytes:
    """Return the picture. `palette` has three bytes for each colour: red, green, blue."""
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    points = b"".join(b"\0" + row for row in rows)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(points, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
