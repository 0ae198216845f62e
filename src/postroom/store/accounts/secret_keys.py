"""Secret key verbs: which keys have sealed which secrets, and the rotation from one key to the next.

Only the id of a key is known here. Nothing can be stored under a dropped key: the transaction that stores a seal locks
its key, and the one that drops a key checks, under the same lock, that no secret uses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import Conflict, KeyDropped
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature, auditing
from postroom.vault.sealing import Sealed

NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A key by its id, since when it has been in use, and how many secrets it seals."""

    id: str
    first_used_at: datetime
    dropped_at: datetime | None
    secrets: int


class StoredSecret(NamedTuple):
    """A sealed secret, and where it is stored."""

    account_id: UUID
    field: str
    sealed: Sealed


class Resealed(NamedTuple):
    """The replacement of a stored secret."""

    stored: StoredSecret
    sealed: Sealed


def using_key(id: str, now: datetime) -> Script[None]:
    """Part of a transaction that stores a seal: register the key, so that it cannot be dropped before the commit."""
    yield sql("insert_secret_key", id, now)
    ((dropped_at,),) = yield sql("share_secret_key", id)
    if dropped_at is not None:
        raise KeyDropped(f"the key {id} was dropped and seals nothing any more; try again with a newer one")


@transaction
def reseal(changes: Sequence[Resealed], now: datetime) -> Script[int]:
    """Replace old seals with new ones; a secret that was replaced meanwhile is left alone."""
    for key_id in sorted({each.sealed.key_id for each in changes}):
        yield from using_key(key_id, now)
    replaced = 0
    for stored, sealed in changes:
        rows = yield sql("replace_credential", stored.account_id, stored.field, stored.sealed.text, *sealed, now)
        replaced += len(rows)
    return replaced


@transaction
def drop_key(id: str, signed: Signature, now: datetime) -> Script[bool]:
    """Retire the key. Refused while it seals any secret; False if it was dropped before."""
    yield sql("insert_secret_key", id, now)
    yield sql("lock_secret_key", id)
    ((secrets,),) = yield sql("count_credentials_under", id)
    if secrets:
        raise Conflict("key", f"{id} still seals {secrets} secrets", "run `postroom key rotate` first")
    if not (yield sql("drop_secret_key", id, now)):
        return False
    yield from auditing(signed.under("key.drop", "key", id), now)
    return True


@query
def list_key_uses() -> Script[list[KeyUse]]:
    """Every key that ever sealed something, newest first."""
    rows = yield sql("select_secret_keys")
    return read_rows(KeyUse, rows)


@query
def sealed_by_others(key_id: str, after: StoredSecret | None, most: int) -> Script[list[StoredSecret]]:
    """Secrets sealed by other keys, in the order of accounts, after `after`."""
    account_id, field = (NOBODY, "") if after is None else after[:2]
    rows = yield sql("select_credentials_after", key_id, account_id, field, most)
    return read_rows(StoredSecret, rows)
