"""Seals secrets with the newest key, and passes them on from one key to the next."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from postroom.core.errors import Conflict, KeyDropped, VaultError
from postroom.store import secret_keys
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock
from postroom.store.engine.database import Database, Transaction
from postroom.store.secret_keys import Resealed, StoredSecret
from postroom.vault.sealing import Vault

BATCH = 50
MOST_ROUNDS = 20

T = TypeVar("T")
Sign = Callable[[], Signature]


@dataclass(frozen=True, slots=True)
class Resealing:
    """The result of a rotation: the new key, how many secrets it seals now, and those that could not be opened."""

    key_id: str
    resealed: int
    unopened: tuple[UUID, ...]


async def with_newest_key(database: Database, storing: Callable[[], Transaction[T]]) -> T:
    """Seals and stores. A key that was dropped between the two was the last one but not the newest: seal again."""
    for _ in range(MOST_ROUNDS):
        with contextlib.suppress(KeyDropped):
            return await database.run(storing())
    return await database.run(storing())


async def reseal_all(database: Database, vault: Vault, key_id: str, clock: Clock) -> Resealing:
    """Seals everything with this key, in small transactions beside whatever else goes on.

    A secret that is replaced meanwhile is looked at again. One that does not open is left as it is, and named.
    """
    resealed, unopened = 0, dict[UUID, None]()
    for _ in range(MOST_ROUNDS):
        after, missed = None, 0
        while found := await database.run(secret_keys.sealed_by_others(key_id, after, BATCH)):
            changes = [change for each in found if (change := _resealed(vault, each, unopened)) is not None]
            done = await database.run(secret_keys.reseal(changes, clock())) if changes else 0
            resealed, missed, after = resealed + done, missed + len(changes) - done, found[-1]
        if not missed:
            break
    return Resealing(key_id, resealed, tuple(unopened))


async def drop_other_keys(database: Database, vault: Vault, key_id: str, clock: Clock, sign: Sign) -> list[str]:
    """Forgets every key but this one: first the database takes nothing under it any more, then it leaves the file.

    Whoever had sealed with an old key and stores that only now is waited for, by sealing it anew.
    """
    old = [key.id for key in vault.known_keys() if key.id != key_id]
    for id in old:
        for round in range(MOST_ROUNDS):
            try:
                await database.run(secret_keys.drop_key(id, sign(), clock()))
                break
            except Conflict:
                done = await reseal_all(database, vault, key_id, clock)
                if done.unopened or round == MOST_ROUNDS - 1:
                    raise
    vault.drop_keys(old)
    return old


def _resealed(vault: Vault, stored: StoredSecret, unopened: dict[UUID, None]) -> Resealed | None:
    try:
        secret = vault.open(stored.sealed, stored.account_id, stored.field)
    except VaultError:
        unopened[stored.account_id] = None
        return None
    return Resealed(stored, vault.seal(stored.account_id, stored.field, secret))
