"""The token of forms where sign-in is off: kept in the data folder, so that a page that is open survives a restart."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

import structlog

from postroom.core import base64url
from postroom.system.private_files import open_private, private_folder, sync_folder

log = structlog.get_logger()

FILE = "forms.secret"
_BYTES = 32


def owner_token(folder: Path) -> str:
    """Return the token. If the folder cannot be used, it holds only for this process."""
    try:
        secret = _secret_in(private_folder(folder))
    except OSError as error:
        log.warning("forms.secret_not_kept", reason=error.strerror, remedy="let Postroom write to its data folder")
        secret = secrets.token_bytes(_BYTES)
    return base64url.encode(hmac.digest(secret, b"postroom form", hashlib.sha256))


def _secret_in(folder: Path) -> bytes:
    """Return the secret of the folder; the first process makes it. A damaged one is replaced."""
    path = folder / FILE
    for _ in range(2):
        try:
            if len(found := path.read_bytes()) == _BYTES:
                return found
            path.unlink()
        except FileNotFoundError:
            pass
        _make(path)
    return path.read_bytes()


def _make(path: Path) -> None:
    """Make the file as a whole, unless another process does so first."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    with os.fdopen(open_private(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(partial, path)
    except FileExistsError:
        pass
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)
