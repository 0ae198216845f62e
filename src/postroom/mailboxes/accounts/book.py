"""The accounts as a provider uses them: they are read with their secrets, and it is noted when a
consent or a sign-in has ended.

It is given to providers, which themselves know neither the database nor the vault.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.servers import MailServers
from postroom.mailboxes.accounts.sealing import with_newest_key
from postroom.store.accounts import accounts, secret_keys
from postroom.store.accounts.accounts import AccountView, AccountWithSecret, Consent, GivenAccess
from postroom.store.accounts.secret_keys import Resealed, StoredSecret, reseal
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import last_provider_id
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock
from postroom.vault.sealing import Sealed, Vault


@dataclass(frozen=True)
class AccountBook:
    """All accounts. `vault` is opened where a secret is sealed or opened."""

    database: Database
    vault: Callable[[], Vault]
    clock: Clock = wall_clock

    async def load(self, id: UUID) -> AccountView:
        return await self.database.run(accounts.load_account(id))

    async def at(self, endpoint_identity: str) -> AccountView | None:
        return await self.database.run(accounts.account_at(endpoint_identity))

    async def all(self) -> list[AccountView]:
        return await self.database.run(accounts.list_accounts())

    async def with_secret(self, id: UUID, field: str) -> AccountWithSecret:
        """The account with its sealed secret of this field."""
        return await self.database.run(accounts.account_with_secret(id, field))

    def open(self, sealed: Sealed, id: UUID, field: str) -> str:
        """Open a sealed secret. Raises VaultError."""
        return self.vault().open(sealed, id, field)

    async def replace(self, id: UUID, field: str, before: Sealed, secret: str) -> None:
        """Store a secret instead of the one before, unless the account has another by now."""
        stored = StoredSecret(id, field, before)

        def storing() -> Transaction[int]:
            return reseal([Resealed(stored, self.vault().seal(id, field, secret))], self.clock())

        await with_newest_key(self.database, storing)

    async def lose_consent(self, id: UUID, granted_at: datetime, reason: str) -> bool:
        """Record that the provider no longer accepts the consent of this time. False if there is a newer one."""
        signed = Signature(new_id(), "process:credentials", "process")
        return await self.database.run(accounts.lose_consent(id, granted_at, reason, signed, self.clock()))

    async def refuse_sign_in(self, id: UUID, given_at: datetime, reason: str, actor: str) -> bool:
        """Record that the server does not accept the password of this time. False if there is a newer one."""
        signed = Signature(new_id(), actor, "process")
        return await self.database.run(accounts.refuse_sign_in(id, given_at, reason, signed, self.clock()))

    async def note_refresh(self, id: UUID, granted_at: datetime) -> None:
        """Record that the provider accepted the consent of this time."""
        await self.database.run(accounts.note_refresh(id, granted_at, self.clock()))

    async def last_message_id(self, id: UUID) -> str | None:
        """The provider's id of the message that was stored last."""
        return await self.database.run(last_provider_id(id))

    async def of(self, provider: str, email: str) -> AccountView | None:
        """The provider's account of an address, in any spelling, removed or not. Raises Conflict if the mailbox is
        connected in another way.
        """
        found = await self.database.run(accounts.accounts_with_address(normalised_address(email)))
        accounts.refuse_second_way(found, provider)
        return next((account for account in found if account.provider == provider), None)

    async def connect(
        self,
        provider: str,
        email: str,
        secrets: Mapping[str, str],
        signed: Signature,
        *,
        consent: Consent | None = None,
        servers: MailServers | None = None,
    ) -> AccountView:
        """Store the access to a mailbox, for its existing account or a new one. Safe to repeat."""
        found = await self.of(provider, email)
        id, address = (new_id(), normalised_address(email)) if found is None else (found.id, found.email)
        vault, uses = self.vault(), await self.database.run(secret_keys.list_key_uses())
        vault.prepare([use.id for use in uses if use.secrets], self.clock())

        def storing() -> Transaction[AccountView]:
            sealed = {field: vault.seal(id, field, secret) for field, secret in secrets.items()}
            given = GivenAccess(sealed, consent, servers)
            return accounts.connect_account(id, provider, address, given, signed, self.clock())

        return await with_newest_key(self.database, storing)
