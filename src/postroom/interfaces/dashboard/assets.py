"""The files that pages load: kept in memory, each at an address that contains the hash of its content.

The content at an address never changes, so browsers may cache it for a year; a new version of Postroom uses new
addresses. They are compressed once, when they are loaded.
"""

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from postroom.core.errors import NotFound

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
NEEDED = ("vendor/htmx.min.js", "vendor/hx-sse.min.js")
"""The files that are not in a checkout until the build has fetched them."""
DIGEST_LENGTH = 16


@dataclass(frozen=True)
class Asset:
    name: str
    digest: str
    read: Callable[[], bytes]
    """Returns the content, when it is asked for first."""

    @property
    def address(self) -> str:
        return f"/static/{self.digest}/{self.name}"

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[Path(self.name).suffix]

    @cached_property
    def body(self) -> bytes:
        return self.read()

    @cached_property
    def packed(self) -> bytes:
        """The body, compressed with gzip."""
        return gzip.compress(self.body, mtime=0)


def load_assets(folder: Path = STATIC) -> Mapping[str, Asset]:
    own = sorted(path.name for path in folder.iterdir() if path.suffix in MEDIA_TYPES)
    return {name: asset_of(name, _content(folder, name)) for name in (*own, *NEEDED)}


def asset_of(name: str, body: bytes) -> Asset:
    return Asset(name, hashlib.sha256(body).hexdigest()[:DIGEST_LENGTH], lambda: body)


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise NotFound(
            f"the dashboard's file {name} is missing from this installation; run `make setup` in a checkout, "
            "or install the postroom wheel again"
        ) from None
