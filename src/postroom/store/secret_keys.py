"""The verbs of secret keys: which keys have sealed what, and the passing on from one to the next.

A key is known here by its id only. Once it is dropped nothing can be stored under it: whoever seals with a key says so
in the transaction that stores the seal, and whoever drops one looks, alone with it, whether anything stands under it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import Conflict, KeyDropped
from postroom.store.audit import Signature, auditing
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.vault.sealing import Sealed

NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A key by its id, since when it has been used, and how many secrets stand under it."""

    id: str
    first_used_at: datetime
    dropped_at: datetime | None
    secrets: int


class StoredSecret(NamedTuple):
    """A sealed secret, and where it stands."""

    account_id: UUID
    field: str
    sealed: Sealed


class Resealed(NamedTuple):
    """What is to stand in the place of a stored secret."""

    stored: StoredSecret
    sealed: Sealed


def using_key(id: str, now: datetime) -> Script[None]:
    """Part of a transaction that stores a seal: the key is known, and cannot be dropped before this is done."""
    yield sql("insert_secret_key", id, now)
    ((dropped_at,),) = yield sql("share_secret_key", id)
    if dropped_at is not None:
        raise KeyDropped(f"the key {id} was dropped and seals nothing any more; try again with a newer one")


@transaction
def reseal(changes: Sequence[Resealed], now: datetime) -> Script[int]:
    """Puts new seals in the place of old ones; a secret that was replaced meanwhile is left as it is."""
    for key_id in sorted({each.sealed.key_id for each in changes}):
        yield from using_key(key_id, now)
    replaced = 0
    for stored, sealed in changes:
        rows = yield sql("replace_credential", stored.account_id, stored.field, stored.sealed.text, *sealed, now)
        replaced += len(rows)
    return replaced


@transaction
def drop_key(id: str, signed: Signature, now: datetime) -> Script[bool]:
    """The key seals nothing any more. Refused while anything stands under it; False when it was dropped before."""
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
    """Every key that ever sealed something, the newest first."""
    rows = yield sql("select_secret_keys")
    return read_rows(KeyUse, rows)


@query
def sealed_by_others(key_id: str, after: StoredSecret | None, most: int) -> Script[list[StoredSecret]]:
    """Secrets that another key sealed, in the order of accounts, from behind `after`."""
    account_id, field = (NOBODY, "") if after is None else after[:2]
    rows = yield sql("select_credentials_after", key_id, account_id, field, most)
    return read_rows(StoredSecret, rows)
