"""Mail that connectors could not deliver, and another attempt at it.

The connectors' folders below the data folder record it: what was refused for good, and what is set aside and
tried again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from postroom.core.access import OPERATE
from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.mail.account_repair import connect_command
from postroom.core.mail.accounts import same_mailbox
from postroom.core.mail.mailbox_requests import is_message_id
from postroom.core.mail.providers import PROVIDERS
from postroom.core.views import Untrusted
from postroom.mailboxes.following.refused import refused_in
from postroom.mailboxes.following.set_aside import set_aside_in
from postroom.operations.accounts.accounts import AccountName, find_account
from postroom.operations.caller import Caller
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import Argument, dialogue, form, post
from postroom.operations.people.audit import next_entry
from postroom.settings.reading import Settings
from postroom.store.accounts.mailbox_jobs import ask_for_messages

# Per transaction, and per request of a program.
AT_ONCE = 1_000
MessageIds = Annotated[
    Sequence[Annotated[str, Argument()]], Argument("The mailbox's ids of messages; none for all.", most=AT_ONCE)
]


@dataclass(frozen=True, slots=True)
class NotIngested:
    """A message that a connector could not deliver."""

    account: str
    message_id: Untrusted[str]
    state: Literal["refused", "set_aside"]
    reason: Untrusted[str]
    since: datetime | str
    next_try_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IngestRetry:
    """The job that ingests a message once more; an earlier request may have created it."""

    message_id: str
    job_id: UUID
    asked_before: bool


def list_not_ingested(data_dir: Path) -> list[NotIngested]:
    """List the mail that the connectors of all mailboxes have not ingested."""
    found = ((data_dir / "connectors").glob(f"{provider}-*") for provider in PROVIDERS)
    return [each for folders in found for folder in sorted(folders) for each in _of_connector(folder)]


def _describe_retries(retries: Sequence[IngestRetry], _given: Mapping[str, Any]) -> str:
    return f"Fetching {counted(len(retries), 'message')} once more."


@CONNECTORS.operation(
    OPERATE,
    post("/connectors/retry", status=202),
    form("/connectors/retry", _describe_retries),
    dialogue("connector retry"),
)
async def retry_ingest(
    by: Caller, settings: Settings, /, account: AccountName, messages: MessageIds = ()
) -> list[IngestRetry]:
    """Fetch once more mail that was refused or set aside. Safe to repeat: `asked_before` names earlier requests."""
    for id in messages:
        if not is_message_id(id):
            remedy = "give one of `postroom connector refused`"
            raise BadInput("--message", f"{id[:80]!r} is not the id of a message", remedy)
    owner = await find_account(by.database, account)
    if owner.state == "removed":
        remedy = f"connect it again with `{connect_command(owner.provider, owner.email)}`"
        raise BadInput("--account", f"{owner.email} was removed", remedy)
    known = list_not_ingested(settings.data_dir)
    left_out = (each.message_id for each in known if same_mailbox(each.account, owner.email))
    wanted = list(dict.fromkeys(messages or left_out))
    retries: list[IngestRetry] = []
    for at in range(0, len(wanted), AT_ONCE):
        some = wanted[at : at + AT_ONCE]
        jobs = await by.run(ask_for_messages(owner.id, some, next_entry(by.signature), by.clock()))
        retries += [IngestRetry(id, job.id, job.duplicate) for id, job in zip(some, jobs, strict=True)]
    return retries


def _of_connector(folder: Path) -> Iterator[NotIngested]:
    account = folder.name.partition("-")[2]
    for each in refused_in(folder):
        yield NotIngested(account, each.id, "refused", each.reason, _moment(each.at))
    for each in set_aside_in(folder):
        yield NotIngested(account, each.id, "set_aside", each.reason, each.since, each.again_at)


def _moment(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
