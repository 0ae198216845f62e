"""The keys that encrypt the accounts' secrets: list and rotate them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from postroom.core.access import ADMINISTER, READ
from postroom.mailboxes.accounts.sealing import Resealing, drop_other_keys, reseal_all
from postroom.operations.caller import Caller
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import Argument, command
from postroom.operations.people.audit import next_entry
from postroom.settings.reading import Settings
from postroom.store.accounts.secret_keys import list_key_uses
from postroom.store.engine.database import Database
from postroom.store.people.audit import record_audit
from postroom.vault.sealing import Vault


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key by its id: where it is, since when, and how many secrets it encrypts. Never the key itself."""

    id: str
    source: str
    seals: bool
    created_at: datetime | None
    first_used_at: datetime | None
    secrets: int
    dropped_at: datetime | None


@dataclass(frozen=True, slots=True)
class Rotation:
    """The result of a rotation, with the ids of the keys that it dropped."""

    resealing: Resealing
    dropped: list[str]
    in_settings: bool
    """Whether the keys are those of the setting `secret_key`."""


@SETTINGS.operation(
    READ, command("key list", "id", "source", "seals", "created_at", "first_used_at", "secrets", "dropped_at")
)
async def list_keys(database: Database, vault: Vault, /) -> list[KeyView]:
    """List the keys by id: where each is stored, since when, and how many secrets it encrypts. Never prints a key."""
    uses = {use.id: use for use in await database.run(list_key_uses())}
    known = {key.id: key for key in vault.known_keys()}
    seals = next(iter(known), None)
    found: list[KeyView] = []
    for id in [*known, *(id for id in uses if id not in known)]:
        key, use = known.get(id), uses.get(id)
        found.append(
            KeyView(
                id,
                key.source if key else "not here",
                id == seals,
                key.created_at if key else None,
                use.first_used_at if use else None,
                use.secrets if use else 0,
                use.dropped_at if use else None,
            )
        )
    return found


async def keys_in_use(database: Database) -> list[str]:
    """List the ids of the keys that encrypt stored secrets."""
    return sorted(use.id for use in await database.run(list_key_uses()) if use.secrets)


@SETTINGS.operation(ADMINISTER, command("key rotate"))
async def rotate_keys(
    by: Caller,
    vault: Vault,
    settings: Settings,
    /,
    drop_old: Annotated[bool, Argument("Then delete the older keys, which no longer encrypt anything.")] = False,
) -> Rotation:
    """Create a new key and encrypt every secret with it, while Postroom runs. Older keys stay until they are dropped.

    If the setting `secret_key` holds keys, none is created: everything is encrypted with the first of them.
    """
    await by.run(list_key_uses())  # fail on a database without a schema before creating a key
    configured = settings.secret_key is not None
    key_id = vault.known_keys()[0].id if configured else vault.add_key(by.clock())
    done = await reseal_all(by.database, vault, key_id, by.clock)
    after = {"resealed": done.resealed, "unopened": len(done.unopened)}
    await by.run(record_audit(by.signature.under("key.rotate", "key", key_id, after=after), by.clock()))
    dropped: list[str] = []
    if drop_old and not done.unopened:
        dropped = await drop_other_keys(by.database, vault, key_id, by.clock, lambda: next_entry(by.signature))
    return Rotation(done, dropped, configured)
