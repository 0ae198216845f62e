"""The labels of the mailboxes: their purpose, and whether the classifier may use them."""

from dataclasses import dataclass
from uuid import UUID

from postroom.core.errors import NotFound
from postroom.operations.accounts.accounts import find_account, list_accounts
from postroom.operations.caller import Caller
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import labels_job
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.mail import labels
from postroom.store.mail.labels import AccountLabel


@dataclass(frozen=True, slots=True)
class LabelSync:
    """The job that syncs an account's labels."""

    account: str
    job_id: UUID


async def list_labels(database: Database, account: str | None = None) -> list[AccountLabel]:
    """List the labels of one account, or of all, as they were last seen there."""
    found = await database.run(labels.list_all_labels())
    if account is None:
        return found
    owner = (await find_account(database, account)).id
    return [each for each in found if each.account_id == owner]


async def sync_labels(database: Database, account: str | None = None, clock: Clock = wall_clock) -> list[LabelSync]:
    """Sync the labels of one account now, or of all that are in use."""
    named = await list_accounts(database) if account is None else [await find_account(database, account)]
    found = [each for each in named if each.state == "active"]
    if not found:
        raise NotFound("there is no account in use; `postroom account list` lists them")
    enqueued = await database.run(enqueue_many([labels_job(each.id) for each in found], clock()))
    return [LabelSync(each.email, job.id) for each, job in zip(found, enqueued, strict=True)]


async def edit_labels(
    by: Caller, name: str, account: str | None, *, description: str | None = None, available: bool | None = None
) -> list[AccountLabel]:
    """Change the labels with this name or id, in one account or in all; None leaves a field as it is."""
    wanted = name.casefold()
    known = await list_labels(by.database, account)
    found = [each for each in known if each.name.casefold() == wanted or each.provider_label_id == name]
    if not found:
        raise NotFound(f"there is no label {name!r}; `postroom labels list` lists them")
    return await by.run(labels.edit_labels(found, description, available, by.signature, by.clock()))
