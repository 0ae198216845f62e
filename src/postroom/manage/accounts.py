"""Finds accounts, pauses and resumes them, and has their mailboxes looked at."""

from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.mail.account_repair import consent_command, reactivate_command, repair_in, resume_command
from postroom.core.mail.accounts import normalised_address
from postroom.manage.pausing import forbid
from postroom.store import accounts
from postroom.store.accounts import AccountView
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.job_builders import labels_job, sync_job
from postroom.store.jobs import enqueue_many

__all__ = [
    "AccountSync",
    "AccountView",
    "find_account",
    "gmail_account",
    "list_accounts",
    "pause_account",
    "resume_account",
    "sync_account",
]


class AccountSync(NamedTuple):
    """The job that looks at the mailbox of an account."""

    account: AccountView
    job_id: UUID


async def list_accounts(database: Database) -> list[AccountView]:
    """Every account there ever was."""
    return await database.run(accounts.list_accounts())


async def gmail_account(database: Database, email: str) -> AccountView | None:
    """The Gmail account of an address, in whatever spelling, if there ever was one."""
    found = await database.run(accounts.accounts_with_address(normalised_address(email)))
    return next((account for account in found if account.provider == "gmail"), None)


async def find_account(database: Database, name: str) -> AccountView:
    """The account that a person means: by its id, or by its address."""
    try:
        return await database.run(accounts.load_account(UUID(name)))
    except ValueError:
        pass
    try:
        found = await database.run(accounts.accounts_with_address(normalised_address(name)))
    except BadInput:
        found = []
    if not found:
        raise NotFound(f"there is no account {name}; `postroom account list` shows those there are")
    if len(found) > 1:
        ids = ", ".join(str(account.id) for account in found)
        raise Conflict("account", f"several have the address {name}", f"name one by its id: {ids}")
    return found[0]


async def pause_account(database: Database, name: str, signed: Signature, clock: Clock = wall_clock) -> AccountView:
    """Leaves an account alone, with the reason of the signature. Once this answers, nothing is changed in it."""
    account = await find_account(database, name)
    return await forbid(database, accounts.pause_account(account.id, signed, clock()))


async def resume_account(database: Database, name: str, signed: Signature, clock: Clock = wall_clock) -> AccountView:
    """Uses an account again: its jobs go on."""
    account = await find_account(database, name)
    if account.state == "removed":
        remedy = f"connect it again with `{consent_command(account.email, None)}`"
        raise BadInput("account", f"{account.email} was removed", remedy)
    return await forbid(database, accounts.resume_account(account.id, signed, clock()))


async def sync_account(database: Database, name: str, clock: Clock = wall_clock) -> AccountSync:
    """Has the mailbox and its labels looked at now."""
    account = await find_account(database, name)
    if account.state != "active":
        raise BadInput("account", f"{account.email} {_not_in_use(account)}", _use_again(account))
    jobs = [sync_job(account.id), labels_job(account.id)]
    looking, _ = await database.run(enqueue_many(jobs, clock()))
    return AccountSync(account, looking.id)


def _not_in_use(account: AccountView) -> str:
    repair = repair_in(account.state_reason, account.email)
    match account.state:
        case "paused":
            return "is paused"
        case "removed":
            return "was removed"
        case _:
            return "has lost its consent" if repair is None else f"cannot be used: {repair.problem}"


def _use_again(account: AccountView) -> str:
    """What has to be done before anything can be asked of the mailbox."""
    if repair := repair_in(account.state_reason, account.email):
        return f"{repair.remedy}, then run `{resume_command(account.email)}`"
    level = account.consent.level if account.consent else None
    return f"run `{reactivate_command(account.state, account.email, level)}` first"
