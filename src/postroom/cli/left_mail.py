"""`postroom connector refused` and `postroom connector retry`: mail that was left out, and another try at it.

What was refused or set aside stands in the folders of the connectors, below the data folder.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, settings_for
from postroom.cli.output import show_list
from postroom.cli.running import with_database
from postroom.core.errors import BadInput
from postroom.core.mail.account_repair import consent_command

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.store.accounts import AccountView
    from postroom.store.engine.database import Database

COLUMNS = ("account", "message_id", "state", "reason", "since", "next_try_at")
JOB_COLUMNS = ("message_id", "job_id", "asked_before")
PREFIX = "gmail-"
# Of one transaction.
AT_ONCE = 1_000


@dataclass(frozen=True)
class LeftMessage:
    """A message that was left out: refused for good, or set aside and tried again."""

    account: str
    message_id: str
    state: str
    reason: str
    since: datetime | str
    next_try_at: datetime | None = None


def refused(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the mail that connectors could not hand in: what was refused for good, and what is set aside for now."""
    found = _left_in(settings_for(data_dir).data_dir)
    show_list([vars(each) for each in found], COLUMNS, as_json=as_json)


def retry(
    context: typer.Context,
    account: Annotated[str, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Whose mail it is.")],
    message: Annotated[
        list[str] | None,
        typer.Option("--message", metavar="ID", help="A message by Gmail's id of it; may be repeated."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that `postroom connector refused` lists.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Have messages taken in once more, up to a hundred by one job. Safe to repeat."""
    if message and everything:
        raise BadInput("--message", "and --all exclude each other", "give one of the two")
    if not message and not everything:
        raise BadInput("--message", "is missing, and --all too", "give one of the two")
    for id in message or ():
        _check_id(id)
    settings = settings_for(data_dir)

    async def asking(database: "Database") -> list[dict[str, object]]:
        from postroom.manage.accounts import find_account

        found = await find_account(database, account)
        if found.state == "removed":
            remedy = f"connect it again with `{consent_command(found.email, None)}`"
            raise BadInput("--account", f"{found.email} was removed", remedy)
        ids = message or [each.message_id for each in _left_in(settings.data_dir) if _is_of(found, each)]
        return await _ask(database, found, list(dict.fromkeys(ids)))

    show_list(with_database(application_of(context), settings, asking), JOB_COLUMNS, as_json=as_json)


async def _ask(database: "Database", account: "AccountView", ids: list[str]) -> list[dict[str, object]]:
    from postroom.store.mailbox_jobs import ask_for_messages

    rows: list[dict[str, object]] = []
    for at in range(0, len(ids), AT_ONCE):
        some = ids[at : at + AT_ONCE]
        enqueued = await database.run(ask_for_messages(account.id, some, datetime.now(UTC)))
        for id, job in zip(some, enqueued, strict=True):
            rows.append({"message_id": id, "job_id": job.id, "asked_before": job.duplicate})
    return rows


def _left_in(data_dir: "Path") -> list[LeftMessage]:
    folders = sorted((data_dir / "connectors").glob(f"{PREFIX}*"))
    return [each for folder in folders for each in _of_connector(folder)]


def _of_connector(folder: "Path") -> Iterator[LeftMessage]:
    from postroom.connectors.mail.refused import refused_in
    from postroom.connectors.mail.set_aside import set_aside_in

    account = folder.name.removeprefix(PREFIX)
    for each in refused_in(folder):
        yield LeftMessage(account, each.id, "refused", each.reason, _moment(each.at))
    for each in set_aside_in(folder):
        yield LeftMessage(account, each.id, "set_aside", each.reason, each.since, each.again_at)


def _is_of(account: "AccountView", left: LeftMessage) -> bool:
    from postroom.core.mail.accounts import same_mailbox

    return same_mailbox(left.account, account.email)


def _check_id(id: str) -> None:
    from postroom.core.mail.mailbox_requests import is_message_id

    if not is_message_id(id):
        raise BadInput("--message", f"{id[:80]!r} is not an id of Gmail", "give one of `postroom connector refused`")


def _moment(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
