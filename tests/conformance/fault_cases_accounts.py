"""For each writing verb of accounts and secret keys: a database in which it has something to do."""

from datetime import datetime
from typing import Any
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_registry import signed
from postroom.core.mail.accounts import parking_key
from postroom.store import accounts, jobs, secret_keys
from postroom.store.accounts import AccountView, Consent
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.secret_keys import Resealed, StoredSecret
from postroom.vault.sealing import Sealed

ADA = "ada@example.com"
SCOPES = frozenset({"https://www.googleapis.com/auth/gmail.modify"})


def consent(granted_at: datetime) -> Consent:
    return Consent("client", "organise", SCOPES, granted_at)


async def connected(desk: Desk, email: str = ADA, key_id: str = "key1") -> AccountView:
    id, sealed = new_id(), Sealed(key_id, f"sealed {email}")
    return await desk.database.run(
        accounts.connect_account(id, email, consent(desk.clock()), sealed, signed(), desk.clock())
    )


async def parked_job(desk: Desk, id: UUID) -> UUID:
    """A job that waits for the account."""
    job = await desk.claimed()
    await desk.database.run(jobs.park(job.claim, parking_key(id), "no consent", desk.clock()))
    return job.id


async def connect_account(desk: Desk) -> Transaction[Any]:
    account = await connected(desk)
    await desk.database.run(
        accounts.lose_consent(account.id, desk.clock(), "revoked; connect it again", signed(), desk.clock())
    )
    await parked_job(desk, account.id)
    now = desk.clock.forward(60)
    return accounts.connect_account(account.id, ADA, consent(now), Sealed("key2", "new"), signed(), now)


async def pause_account(desk: Desk) -> Transaction[Any]:
    return accounts.pause_account((await connected(desk)).id, signed(), desk.clock())


async def resume_account(desk: Desk) -> Transaction[Any]:
    account = await connected(desk)
    await desk.database.run(accounts.pause_account(account.id, signed(), desk.clock()))
    await parked_job(desk, account.id)
    return accounts.resume_account(account.id, signed(), desk.clock())


async def remove_account(desk: Desk) -> Transaction[Any]:
    account = await connected(desk)
    await desk.database.run(accounts.pause_account(account.id, signed(), desk.clock()))
    await parked_job(desk, account.id)
    return accounts.remove_account(account.id, signed(), desk.clock())


async def lose_consent(desk: Desk) -> Transaction[Any]:
    account = await connected(desk)
    return accounts.lose_consent(account.id, desk.clock(), "revoked; connect it again", signed(), desk.clock())


async def note_refresh(desk: Desk) -> Transaction[Any]:
    account = await connected(desk)
    return accounts.note_refresh(account.id, desk.clock(), desk.clock.forward(60))


async def reseal(desk: Desk) -> Transaction[Any]:
    account = await connected(desk)
    stored = StoredSecret(account.id, accounts.REFRESH_TOKEN, Sealed("key1", f"sealed {ADA}"))
    return secret_keys.reseal([Resealed(stored, Sealed("key2", "again"))], desk.clock())


async def drop_key(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await reseal(desk))
    return secret_keys.drop_key("key1", signed(), desk.clock())


CASES: list[Case] = [
    connect_account,
    pause_account,
    resume_account,
    remove_account,
    lose_consent,
    note_refresh,
    reseal,
    drop_key,
]
