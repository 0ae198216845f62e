"""Find, list, pause and resume accounts, and sync their mailboxes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.access import ANSWER_AGAIN, OPERATE, READ, STEER
from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.mail.account_repair import connect_command, reactivate_command, repair_in, resume_command
from postroom.core.mail.accounts import normalised_address
from postroom.core.suggestions import did_you_mean
from postroom.operations.actions.pausing import forbid_and_wait
from postroom.operations.caller import Caller
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import Argument, command, form, post
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView as AccountView
from postroom.store.accounts.mailbox_jobs import ask_for_sync
from postroom.store.engine.database import Database
from postroom.store.mail.mail import ACTS_ON_ALL
from postroom.words.connectors import account_state

AccountName = Annotated[str, Argument("The address or the id of the account.", typed_as="ID_OR_ADDRESS")]
LINE = "{email}  {state}"


class AccountSync(NamedTuple):
    """The job that syncs an account's mailbox."""

    account: AccountView
    job_id: UUID


def acting_words(acts_from: datetime | None) -> str:
    """Whether an account acts, and since when."""
    if acts_from is None:
        return "not yet"
    return "on all mail" if acts_from <= ACTS_ON_ALL else f"since {acts_from:%Y-%m-%d %H:%M} UTC"


def account_row(account: AccountView) -> Mapping[str, object]:
    """An account as commands show it: its consent or its servers are among its own fields."""
    consent, servers = account.consent, account.servers
    return {
        "id": account.id,
        "provider": account.provider,
        "email": account.email,
        "endpoint_identity": account.endpoint_identity,
        "state": account.state,
        "state_reason": account.state_reason,
        "level": consent and consent.level,
        "scopes": sorted(consent.scopes) if consent else [],
        "granted_at": consent and consent.granted_at,
        "refreshed_at": consent and consent.refreshed_at,
        "dies_at": consent and consent.dies_at,
        "imap_host": servers and servers.imap_host,
        "smtp_host": servers and servers.smtp_host,
        "labels_as": servers and servers.labels_as,
        "acts": acting_words(account.acts_from),
        "acts_from": account.acts_from,
        "authserv_ids": servers.authserv_ids.split() if servers else [],
        "created_at": account.created_at,
        "updated_at": account.updated_at,
    }


def _cells(account: AccountView) -> Mapping[str, object]:
    """An account as people read it."""
    needs_repair = bool(repair_in(account.state_reason, account.email))
    state = account_state(account.state, account.sign_in, needs_repair=needs_repair)
    return {**account_row(account), "state": state}


@CONNECTORS.operation(
    READ,
    command(
        "account list",
        *("id", "provider", "email", "state", "acts", "level", "imap_host", "granted_at", "refreshed_at"),
        "state_reason",
        row=account_row,
        cells=_cells,
    ),
)
async def list_accounts(database: Database, /) -> list[AccountView]:
    """List the accounts, also those that were removed: state, reason, and what you have consented to."""
    return await database.run(accounts.list_accounts())


async def account_of(database: Database, provider: str, email: str) -> AccountView | None:
    """Return the provider's account of an address, in any spelling, removed or not; None if there is none."""
    found = await database.run(accounts.accounts_with_address(normalised_address(email)))
    return next((account for account in found if account.provider == provider), None)


async def find_account(database: Database, name: str) -> AccountView:
    """Find the account with this id or address."""
    try:
        return await database.run(accounts.load_account(UUID(name)))
    except ValueError:
        pass
    try:
        found = await database.run(accounts.accounts_with_address(normalised_address(name)))
    except BadInput:
        found = []
    if not found:
        raise NotFound(f"there is no account {name}; `postroom account list` lists them")
    if len(used := [account for account in found if account.state != "removed"]) == 1:
        return used[0]
    if len(found) > 1:
        ids = ", ".join(str(account.id) for account in found)
        raise Conflict("account", f"several have the address {name}", f"name one by its id: {ids}")
    return found[0]


async def account_for(database: Database, name: str | None) -> AccountView:
    """Find the account with this address, id or endpoint identity; without a name, the only one there is."""
    known = [each for each in await database.run(accounts.list_accounts()) if each.state != "removed"]
    if name is None:
        if len(known) == 1:
            return known[0]
        remedy = f"name one of {', '.join(each.email for each in known)}" if known else "connect a mailbox first"
        raise BadInput("--account", "is missing", remedy)
    wanted = name.strip().lower()
    for each in known:
        if wanted in (each.email, each.endpoint_identity, str(each.id)):
            return each
    remedy = did_you_mean(wanted, [each.email for each in known], "`postroom account list` shows all")
    raise BadInput("--account", f"{name[:200]!r} is no account", remedy)


def _sync_row(sync: AccountSync) -> Mapping[str, object]:
    return {"account": sync.account.email, "job_id": sync.job_id}


@CONNECTORS.operation(
    STEER,
    post("/connectors/sync", status=202),
    form("/connectors/sync", "{account.email}: looking for new mail and changed labels now."),
    command("account sync {account}", row=_sync_row, line="{account}  will be checked by job {job_id}"),
)
async def sync_account(by: Caller, /, account: AccountName) -> AccountSync:
    """Look for new mail and changed labels now. Both are also looked for continuously. Safe to repeat."""
    found = await find_account(by.database, account)
    check_in_use(found)
    looking = await by.run(ask_for_sync(found.id, by.signature, by.clock()))
    return AccountSync(found, looking.id)


@CONNECTORS.operation(
    OPERATE,
    post("/connectors/pause"),
    form("/connectors/pause", "{email} is paused: nothing is read from it or changed in it until you resume."),
    command("account pause {account}", row=account_row, line=LINE),
    signs=True,
)
async def pause_account(by: Caller, /, account: AccountName) -> AccountView:
    """Stop using an account for a while: its jobs wait and nothing is lost. When it answers, nothing more is sent to
    the mailbox; what had left just before may still take effect. Safe to repeat."""
    found = await find_account(by.database, account)
    return await forbid_and_wait(by.database, accounts.pause_account(found.id, by.signature, by.clock()))


@CONNECTORS.operation(
    ANSWER_AGAIN,
    post("/connectors/resume"),
    form("/connectors/resume", "{email} is in use again; what waited for it goes on."),
    command("account resume {account}", row=account_row, line=LINE),
)
async def resume_account(by: Caller, /, account: AccountName) -> AccountView:
    """Use an account again: jobs that waited for it continue. Safe to repeat."""
    found = await find_account(by.database, account)
    if found.state == "removed":
        remedy = f"connect it again with `{connect_command(found.provider, found.email)}`"
        raise BadInput("account", f"{found.email} was removed", remedy)
    return await forbid_and_wait(by.database, accounts.resume_account(found.id, by.signature, by.clock()))


def check_in_use(account: AccountView) -> None:
    """Raise BadInput, which says what to do, unless the account is active."""
    if account.state != "active":
        raise BadInput("account", f"{account.email} {_not_in_use(account)}", _use_again(account))


def _not_in_use(account: AccountView) -> str:
    repair = repair_in(account.state_reason, account.email)
    match account.state:
        case "paused":
            return "is paused"
        case "removed":
            return "was removed"
        case _:
            if repair is not None:
                return f"cannot be opened: {repair.problem}"
            is_password = account.sign_in == "password"
            return "cannot be opened: the server refused its password" if is_password else "needs your consent"


def _use_again(account: AccountView) -> str:
    """Say what has to be done before the mailbox can be used."""
    if repair := repair_in(account.state_reason, account.email):
        return f"{repair.remedy}, then run `{resume_command(account.email)}`"
    level = account.consent.level if account.consent else None
    return f"run `{reactivate_command(account.state, account.email, level, account.provider)}` first"
