"""The key file: created when the first key is needed, readable by its owner only, always replaced as a whole.

    {"keys": [{"id": "3f2a…", "created_at": "2026-11-15T08:00:00+00:00", "key": "base64 of 32 bytes"}]}

The newest key comes last. Two processes that need the first key at the same time end up with the same one.
"""

import base64
import hashlib
import json
import os
import secrets
import shlex
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from postroom.core import base64url
from postroom.core.errors import VaultError
from postroom.system.private_files import replace_private

NAME = "keys.json"
KEY_BYTES = 32
_ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A key and its id: the beginning of its hash, which does not reveal the key."""

    secret: bytes = field(repr=False)
    created_at: datetime | None = None

    @property
    def id(self) -> str:
        return hashlib.sha256(b"postroom key\0" + self.secret).hexdigest()[:_ID_DIGITS]


def read_key(text: str) -> bytes:
    """Decode a key from base64, in either alphabet. Raises ValueError, which does not quote the text."""
    try:
        secret = base64url.decode(text.strip().replace("+", "-").replace("/", "_").rstrip("="))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise ValueError("32 random bytes in base64, as from `openssl rand -base64 32`")
    return secret


class KeyFile:
    """The keys of one data folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def read(self) -> list[SecretKey]:
        """All keys, newest last; none without a file. Raises VaultError if others can read the file."""
        try:
            with self.path.open("rb") as file:
                self._check_mode(os.fstat(file.fileno()).st_mode)
                content = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise VaultError(f"{self.path}: cannot be read ({error.strerror}); restore it from a backup") from None
        return _keys(content, str(self.path))

    def add(self, now: datetime, *, only_first: bool = False) -> SecretKey:
        """Add a new key, which becomes the newest. With `only_first`, return the newest one if there is any."""
        with self._lock_file():
            keys = self.read()
            if keys and only_first:
                return keys[-1]
            new = SecretKey(secrets.token_bytes(KEY_BYTES), now)
            self._write([*keys, new])
            return new

    def merge(self, content: bytes, whose: str) -> list[str]:
        """Add the keys of another file that are missing here; return their ids. The newest key stays the newest."""
        added = _keys(content, whose)
        with self._lock_file():
            keys = self.read()
            known = {key.id for key in keys}
            new = [key for key in added if key.id not in known]
            if new:
                self._write([*new, *keys])
            return [key.id for key in new]

    def drop(self, ids: Collection[str]) -> list[str]:
        """Delete these keys; return the ids of those that existed."""
        with self._lock_file():
            keys = self.read()
            dropped = [key.id for key in keys if key.id in ids]
            if dropped:
                self._write([key for key in keys if key.id not in ids])
            return dropped

    def _check_mode(self, mode: int) -> None:
        if mode & 0o077:
            raise VaultError(
                f"{self.path}: it is readable by others than its owner (mode {mode & 0o777:03o}); "
                f"run `chmod 600 {shlex.quote(str(self.path))}`, and if others could have read it, "
                "`postroom key rotate`"
            )

    def _write(self, keys: list[SecretKey]) -> None:
        content = json.dumps({"keys": [_entry(key) for key in keys]}, indent=1).encode() + b"\n"
        replace_private(self.path, content)

    @contextmanager
    def _lock_file(self) -> Generator[None]:
        """Let one process at a time change the file. The kernel releases the lock if the process dies."""
        import fcntl

        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path.with_name(f".{NAME}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _entry(key: SecretKey) -> dict[str, Any]:
    created_at = None if key.created_at is None else key.created_at.isoformat()
    return {"id": key.id, "created_at": created_at, "key": base64.b64encode(key.secret).decode()}


def _keys(content: bytes, whose: str) -> list[SecretKey]:
    try:
        return [_key(entry) for entry in json.loads(content)["keys"]]
    except (ValueError, KeyError, TypeError):
        raise VaultError(f"{whose}: this is not a key file; restore it from a backup") from None


def _key(entry: dict[str, Any]) -> SecretKey:
    created_at = None if entry["created_at"] is None else datetime.fromisoformat(entry["created_at"])
    key = SecretKey(read_key(entry["key"]), created_at)
    if key.id != entry["id"]:
        raise ValueError("the id is not that of the key")
    return key
