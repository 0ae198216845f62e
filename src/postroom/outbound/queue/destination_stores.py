"""The database as a transport sees it: pauses, policies and signing keys."""

import base64
from collections.abc import Callable, Sequence

from postroom.core.outbound.destinations import SigningKey, StsPolicy
from postroom.store.engine.database import Database
from postroom.store.outbound import destinations, dkim_keys
from postroom.vault.sealing import Sealed, Vault

# Seconds for which keys are remembered: a new one signs within this time, and most mail needs no query.
KEYS_FOR_S = 10.0


class StoredPauses:
    """Reads the kill switch and the pauses of destinations, each time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def reason(self, destination: str) -> str | None:
        return await self._database.run(destinations.pause_reason(destination))


class StoredPolicies:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def kept(self, domain: str) -> StsPolicy | None:
        return await self._database.run(destinations.kept_policy(domain))

    async def keep(self, domain: str, policy: StsPolicy) -> None:
        await self._database.run(destinations.keep_policy(domain, policy))


class StoredKeys:
    """Opens the keys of a domain with the vault."""

    def __init__(self, database: Database, vault: Vault, clock: Callable[[], float]) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._known: dict[str, tuple[float, list[SigningKey]]] = {}

    async def keys_of(self, domain: str) -> Sequence[SigningKey]:
        at, keys = self._known.get(domain, (float("-inf"), []))
        if self._clock() - at >= KEYS_FOR_S:
            if len(self._known) > 1000:
                self._known.clear()
            keys = [self._open_key(each) for each in await self._database.run(dkim_keys.list_dkim_keys(domain))]
            self._known[domain] = self._clock(), keys
        return keys

    def _open_key(self, key: dkim_keys.DkimKey) -> SigningKey:
        secret = self._vault.open(Sealed(key.key_id, key.sealed), key.id, dkim_keys.FIELD)
        return SigningKey(key.domain, key.selector, key.algorithm, base64.b64decode(secret))
