"""For each writing verb of accounts and secret keys: a database in which it has something to do."""

from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.mail.accounts import parking_key
from postroom.core.mail.secret_fields import PASSWORD, REFRESH_TOKEN
from postroom.core.mail.servers import MailServers
from postroom.store.accounts import accounts, secret_keys
from postroom.store.accounts.accounts import AccountView, Consent, GivenAccess
from postroom.store.accounts.secret_keys import Resealed, StoredSecret
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.vault.sealing import Sealed
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

ADA = "ada@example.com"
SCOPES = frozenset({"https://www.googleapis.com/auth/gmail.modify"})


def consent(granted_at: datetime) -> Consent:
    return Consent("client", "organise", SCOPES, granted_at)


async def connected(setup: JobSetup, email: str = ADA, key_id: str = "key1") -> AccountView:
    id, sealed = new_id(), Sealed(key_id, f"sealed {email}")
    return await setup.database.run(
        accounts.connect_account(
            id, "gmail", email, GivenAccess({REFRESH_TOKEN: sealed}, consent(setup.clock())), signed(), setup.clock()
        )
    )


def servers(given_at: datetime, user_name: str = ADA) -> MailServers:
    return MailServers(
        imap_host="imap.example.com",
        imap_port=993,
        imap_security="tls",
        smtp_host="smtp.example.com",
        smtp_port=587,
        smtp_security="starttls",
        user_name=user_name,
        sign_in="password",
        labels_as="keywords",
        files_sent_mail=True,
        given_at=given_at,
        trusted_certificates=None,
    )


async def connected_imap(setup: JobSetup, email: str = ADA, key_id: str = "key1") -> AccountView:
    sealed = {PASSWORD: Sealed(key_id, f"sealed {email}")}
    connecting = accounts.connect_account(
        new_id(), "imap", email, GivenAccess(sealed, servers=servers(setup.clock(), email)), signed(), setup.clock()
    )
    return await setup.database.run(connecting)


async def parked_job(setup: JobSetup, id: UUID) -> UUID:
    """A job that waits for the account."""
    job = await setup.claimed()
    await setup.database.run(jobs.park(job.claim, parking_key(id), "no consent", setup.clock()))
    return job.id


async def connect_account(setup: JobSetup) -> Transaction[Any]:
    account = await connected(setup)
    await setup.database.run(
        accounts.lose_consent(account.id, setup.clock(), "revoked; connect it again", signed(), setup.clock())
    )
    await parked_job(setup, account.id)
    now = setup.clock.forward(60)
    given = GivenAccess({REFRESH_TOKEN: Sealed("key2", "new")}, consent(now), servers(now))
    return accounts.connect_account(account.id, "gmail", ADA, given, signed(), now)


async def act_from(setup: JobSetup) -> Transaction[Any]:
    return accounts.act_from((await connected(setup)).id, setup.clock(), signed(), setup.clock())


async def pause_account(setup: JobSetup) -> Transaction[Any]:
    return accounts.pause_account((await connected(setup)).id, signed(), setup.clock())


async def resume_account(setup: JobSetup) -> Transaction[Any]:
    account = await connected(setup)
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    await parked_job(setup, account.id)
    return accounts.resume_account(account.id, signed(), setup.clock())


async def remove_account(setup: JobSetup) -> Transaction[Any]:
    account = await connected(setup)
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    await parked_job(setup, account.id)
    return accounts.remove_account(account.id, signed(), setup.clock())


async def lose_consent(setup: JobSetup) -> Transaction[Any]:
    account = await connected(setup)
    return accounts.lose_consent(account.id, setup.clock(), "revoked; connect it again", signed(), setup.clock())


async def refuse_sign_in(setup: JobSetup) -> Transaction[Any]:
    account = await connected_imap(setup)
    return accounts.refuse_sign_in(account.id, setup.clock(), "wrong; give a new one", signed(), setup.clock())


async def note_refresh(setup: JobSetup) -> Transaction[Any]:
    account = await connected(setup)
    return accounts.note_refresh(account.id, setup.clock(), setup.clock.forward(60))


async def reseal(setup: JobSetup) -> Transaction[Any]:
    account = await connected(setup)
    stored = StoredSecret(account.id, REFRESH_TOKEN, Sealed("key1", f"sealed {ADA}"))
    return secret_keys.reseal([Resealed(stored, Sealed("key2", "again"))], setup.clock())


async def drop_key(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await reseal(setup))
    return secret_keys.drop_key("key1", signed(), setup.clock())


CASES: list[Case] = [
    connect_account,
    act_from,
    pause_account,
    resume_account,
    remove_account,
    lose_consent,
    refuse_sign_in,
    note_refresh,
    reseal,
    drop_key,
]
