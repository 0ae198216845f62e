"""The vault: seals (encrypts) secrets before they are stored, and opens them again.

AES-256-GCM with a new nonce each time. The account and the field name are associated data: a secret copied into another
row or field does not open there. Each sealed secret names its key, so that several keys can be in use during a key
rotation. Keys come from the setting `secret_key` and from the key file in the data folder.
"""

import base64
import binascii
import hmac
import os
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.errors import KeyMissing, SealBroken, SettingsError, VaultError
from postroom.vault.keys import KeyFile, SecretKey, read_key

NONCE_BYTES = 12


class Sealed(NamedTuple):
    """A secret as it is stored: the id of its key, and nonce and ciphertext in base64."""

    key_id: str
    text: str


class KnownKey(NamedTuple):
    """The description of an available key, without the key itself. The first one seals."""

    id: str
    source: Literal["setting", "file"]
    created_at: datetime | None


def configured_keys(text: str) -> list[SecretKey]:
    """Read the keys from the setting: one or several, separated by commas. The first one seals."""
    try:
        keys = [SecretKey(read_key(part)) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingsError(f"secret_key: a key is refused; use {error}, several with commas between") from None
    if not keys:
        raise SettingsError("secret_key: contains no key; use 32 random bytes in base64, or leave it out")
    return keys


class Vault:
    """Seals with the newest key; opens with the key that sealed."""

    def __init__(self, folder: Path, configured: str | None = None) -> None:
        self._file = KeyFile(folder)
        self._configured = configured_keys(configured) if configured is not None else []
        self._keys: dict[str, SecretKey] = {}

    @property
    def file(self) -> Path:
        return self._file.path

    def known_keys(self) -> list[KnownKey]:
        """Every available key, the sealing one first."""
        found = [KnownKey(key.id, "setting", None) for key in self._configured]
        found += [KnownKey(key.id, "file", key.created_at) for key in reversed(self._file.read())]
        return found

    def prepare(self, in_use: Collection[str], now: datetime) -> str:
        """Return the id of the sealing key; create the first key if there is none.

        `in_use` are the ids of keys that stored secrets need. If there are some and we have no key at all, another
        installation uses this database, and neither could open the other's secrets: then no key is created.
        """
        known = self.known_keys()
        if not known:
            if in_use:
                raise KeyMissing(_missing(sorted(in_use), self.file))
            return self._file.add(now, only_first=True).id
        return known[0].id

    def seal(self, account_id: UUID, field: str, secret: str) -> Sealed:
        """Seal a secret. Reads the keys again, since another process may have added one."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        keys = [*self._configured, *reversed(self._file.read())]
        if not keys:
            raise KeyMissing(f"there is no key to seal with in {self.file}; restore the file, or set secret_key")
        key, nonce = keys[0], os.urandom(NONCE_BYTES)
        sealed = AESGCM(key.secret).encrypt(nonce, secret.encode(), _bound_to(account_id, field, key.id))
        return Sealed(key.id, base64.b64encode(nonce + sealed).decode())

    def open(self, sealed: Sealed, account_id: UUID, field: str) -> str:
        """Open the secret of this field of this account. Raises KeyMissing or SealBroken, which quote no secret."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = self._key(sealed.key_id)
        try:
            content = base64.b64decode(sealed.text, validate=True)
            opened = AESGCM(key.secret).decrypt(
                content[:NONCE_BYTES], content[NONCE_BYTES:], _bound_to(account_id, field, key.id)
            )
            return opened.decode()
        except (InvalidTag, binascii.Error, ValueError):
            pass
        raise SealBroken(
            f"the {field} of the account {account_id} does not open: its row was changed, or is another account's; "
            "connect the account again with `postroom account add`"
        )

    def signing_keys(self, purpose: str) -> list[bytes]:
        """Keys for signing, derived for this purpose from each of our keys, newest first. None of them can unseal."""
        keys = [*self._configured, *reversed(self._file.read())]
        return [hmac.digest(key.secret, f"postroom {purpose}".encode(), "sha256") for key in keys]

    def add_key(self, now: datetime) -> str:
        """Add a key to the file, which seals from now on. Raises VaultError if keys come from the setting."""
        if self._configured:
            raise VaultError("the keys are in the setting secret_key; put a new one there, in front of the others")
        return self._file.add(now).id

    def drop_keys(self, ids: Collection[str]) -> list[str]:
        """Delete keys from the file; return their ids. Keys in the setting are left to the user."""
        self._keys.clear()
        return self._file.drop(ids)

    def _key(self, id: str) -> SecretKey:
        if id not in self._keys:
            self._keys = {key.id: key for key in (*self._configured, *self._file.read())}
        try:
            return self._keys[id]
        except KeyError:
            raise KeyMissing(_missing([id], self.file)) from None


def _missing(ids: list[str], file: Path) -> str:
    return (
        f"the key {', '.join(ids)} that sealed the accounts' secrets is missing; copy {file} from the machine "
        "that has it, restore it from a backup, or set secret_key; if it is lost, connect the accounts again"
    )


def _bound_to(account_id: UUID, field: str, key_id: str) -> bytes:
    return b"\0".join((b"postroom credential", account_id.bytes, field.encode(), key_id.encode()))
