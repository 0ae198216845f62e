"""The labels of the mailboxes: their purpose, and whether the classifier may use them."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.errors import NotFound
from postroom.operations.accounts.accounts import find_account, list_accounts
from postroom.operations.caller import Caller
from postroom.operations.nouns import MAIL
from postroom.operations.operation import Argument, command
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import labels_job
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.mail import labels
from postroom.store.mail.labels import AccountLabel
from postroom.system.wall_clock import Clock

COLUMNS = ("name", "account", "kind", "available_to_classifier", "description")
LabelName = Annotated[str, Argument("The label's name (in any case) or id.")]
Account = Annotated[str | None, Argument("Only in this account (an id or an address); default: all.")]


@dataclass(frozen=True, slots=True)
class LabelSync:
    """The job that syncs an account's labels."""

    account: str
    job_id: UUID


@MAIL.operation(READ, command("labels list", *COLUMNS))
async def list_labels(database: Database, /, account: Account = None) -> list[AccountLabel]:
    """List the labels of all mailboxes, as they were last seen there."""
    found = await database.run(labels.list_all_labels())
    if account is None:
        return found
    owner = (await find_account(database, account)).id
    return [each for each in found if each.account_id == owner]


@MAIL.operation(OPERATE, command("labels sync", "account", "job_id"))
async def sync_labels(database: Database, clock: Clock, /, account: Account = None) -> list[LabelSync]:
    """Check the labels of the mailboxes now, by jobs, instead of within half a minute. Safe to repeat."""
    named = await list_accounts(database) if account is None else [await find_account(database, account)]
    found = [each for each in named if each.state == "active"]
    if not found:
        raise NotFound("there is no account in use; `postroom account list` lists them")
    enqueued = await database.run(enqueue_many([labels_job(each.id) for each in found], clock()))
    return [LabelSync(each.email, job.id) for each, job in zip(found, enqueued, strict=True)]


@MAIL.operation(OPERATE, command("labels describe {name} {description}", *COLUMNS))
async def describe_label(
    by: Caller,
    /,
    name: LabelName,
    description: Annotated[str, Argument("What it is for; an empty text removes the description.")],
    account: Account = None,
) -> list[AccountLabel]:
    """Describe what a label is for; the model reads it."""
    return await _edit_labels(by, name, account, description=description)


@MAIL.operation(OPERATE, command("labels allow {name}", *COLUMNS))
async def allow_label(by: Caller, /, name: LabelName, account: Account = None) -> list[AccountLabel]:
    """Allow the classifier to use a label. Safe to repeat."""
    return await _edit_labels(by, name, account, available=True)


@MAIL.operation(OPERATE, command("labels deny {name}", *COLUMNS))
async def deny_label(by: Caller, /, name: LabelName, account: Account = None) -> list[AccountLabel]:
    """Forbid the classifier to use a label; rules may still use it. Safe to repeat."""
    return await _edit_labels(by, name, account, available=False)


async def _edit_labels(
    by: Caller, name: str, account: str | None, *, description: str | None = None, available: bool | None = None
) -> list[AccountLabel]:
    """Change the labels with this name or id, in one account or in all; None leaves a field as it is."""
    wanted = name.casefold()
    known = await list_labels(by.database, account)
    found = [each for each in known if each.name.casefold() == wanted or each.provider_label_id == name]
    if not found:
        raise NotFound(f"there is no label {name!r}; `postroom labels list` lists them")
    return await by.run(labels.edit_labels(found, description, available, by.signature, by.clock()))
