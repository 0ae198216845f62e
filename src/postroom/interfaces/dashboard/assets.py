"""The files that pages load: kept in memory, each at an address that contains the hash of its content.

The content at an address never changes, so browsers may cache it for a year; a new version of Postroom uses new
addresses. They are compressed once, when they are loaded.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from postroom.core.errors import NotFound

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
NEEDED = ("vendor/htmx.min.js", "vendor/hx-sse.min.js")
"""The files that are not in a checkout until the build has fetched them."""
DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Asset:
    name: str
    digest: str
    media_type: str
    body: bytes
    packed: bytes
    """The body, compressed with gzip."""

    @property
    def address(self) -> str:
        return f"/static/{self.digest}/{self.name}"


def load_assets(folder: Path = STATIC) -> Mapping[str, Asset]:
    own = sorted(path.name for path in folder.iterdir() if path.suffix in MEDIA_TYPES)
    return {name: _load(folder, name) for name in (*own, *NEEDED)}


def _load(folder: Path, name: str) -> Asset:
    path = folder / name
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(
            f"the dashboard's file {name} is missing from this installation; run `make setup` in a checkout, "
            "or install the postroom wheel again"
        ) from None
    digest = hashlib.sha256(body).hexdigest()[:DIGEST_LENGTH]
    return Asset(name, digest, MEDIA_TYPES[path.suffix], body, gzip.compress(body, mtime=0))
