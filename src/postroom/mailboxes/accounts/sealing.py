"""Seals secrets with the newest key, and reseals them when the key changes."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from postroom.core.errors import Conflict, KeyDropped, VaultError
from postroom.store.accounts import secret_keys
from postroom.store.accounts.secret_keys import Resealed, StoredSecret
from postroom.store.engine.database import Database, Transaction
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock
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
    """Seal and store a secret. If its key was dropped in between, seal again with the newest."""
    for _ in range(MOST_ROUNDS):
        with contextlib.suppress(KeyDropped):
            return await database.run(storing())
    return await database.run(storing())


async def reseal_all(database: Database, vault: Vault, key_id: str, clock: Clock) -> Resealing:
    """Seal everything with this key, in small transactions beside other work.

    A secret that is replaced meanwhile is checked again. One that cannot be opened is left alone, and reported.
    """
    resealed, unopened = 0, dict[UUID, None]()
    for _ in range(MOST_ROUNDS):
        after, missed = None, 0
        while found := await database.run(secret_keys.sealed_by_others(key_id, after, BATCH)):
            changes = [change for each in found if (change := _reseal(vault, each, unopened)) is not None]
            done = await database.run(secret_keys.reseal(changes, clock())) if changes else 0
            resealed, missed, after = resealed + done, missed + len(changes) - done, found[-1]
        if not missed:
            break
    return Resealing(key_id, resealed, tuple(unopened))


async def drop_other_keys(database: Database, vault: Vault, key_id: str, clock: Clock, sign: Sign) -> list[str]:
    """Drop every key but this one: first the database refuses new secrets under it, then it is removed from the file.

    Secrets that were sealed with an old key and are stored only now are sealed again.
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


def _reseal(vault: Vault, stored: StoredSecret, unopened: dict[UUID, None]) -> Resealed | None:
    try:
        secret = vault.open(stored.sealed, stored.account_id, stored.field)
    except VaultError:
        unopened[stored.account_id] = None
        return None
    return Resealed(stored, vault.seal(stored.account_id, stored.field, secret))
