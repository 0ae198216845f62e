"""`postroom labels`: the labels of the mailboxes, what they are for, and whether the classifier may use them."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_list
from postroom.cli.running import with_database
from postroom.core.errors import NotFound

if TYPE_CHECKING:
    from postroom.store.engine.database import Database
    from postroom.store.labels import AccountLabel

app = command_group("Look at labels; say what they are for, and whether the classifier may use them.")

COLUMNS = ("name", "account", "kind", "available_to_classifier", "description")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The label, by its name in any case, or by its id.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Only in this account; otherwise in all.")
]


@app.command("list")
def list_(context: typer.Context, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the labels of all mailboxes, as they were last seen there."""

    async def listing(database: "Database") -> "list[AccountLabel]":
        return await _labels(database, account)

    found = with_database(application_of(context), settings_for(data_dir), listing)
    show_list([asdict(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def sync(context: typer.Context, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Have the labels of mailboxes looked at now, by jobs, and not only every half minute. Safe to repeat."""

    async def asking(database: "Database") -> list[dict[str, object]]:
        from postroom.manage.accounts import find_account
        from postroom.store.accounts import list_accounts
        from postroom.store.job_builders import labels_job
        from postroom.store.jobs import enqueue_many

        named = [await find_account(database, account)] if account is not None else None
        found = [each for each in named or await database.run(list_accounts()) if each.state == "active"]
        if not found:
            raise NotFound("there is no account in use; `postroom account list` shows those there are")
        enqueued = await database.run(enqueue_many([labels_job(each.id) for each in found], datetime.now(UTC)))
        return [{"account": each.email, "job_id": job.id} for each, job in zip(found, enqueued, strict=True)]

    asked = with_database(application_of(context), settings_for(data_dir), asking)
    show_list(asked, ("account", "job_id"), as_json=as_json)


@app.command()
def describe(
    context: typer.Context,
    name: Name,
    description: Annotated[str, typer.Argument(metavar="TEXT", help="What it is for; an empty text takes it away.")],
    account: Account = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say what a label is for: the model reads it."""
    _edit(context, data_dir, name, account, description, None, as_json)


@app.command()
def allow(
    context: typer.Context, name: Name, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Let the classifier use a label. Safe to repeat."""
    _edit(context, data_dir, name, account, None, True, as_json)


@app.command()
def deny(
    context: typer.Context, name: Name, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Keep a label from the classifier; rules may still use it. Safe to repeat."""
    _edit(context, data_dir, name, account, None, False, as_json)


def _edit(
    context: typer.Context,
    data_dir: Path | None,
    name: str,
    account: str | None,
    description: str | None,
    available: bool | None,
    as_json: bool,
) -> None:
    async def editing(database: "Database") -> "list[AccountLabel]":
        from postroom.store.labels import edit_labels

        wanted = name.casefold()
        labels = await _labels(database, account)
        found = [each for each in labels if each.name.casefold() == wanted or each.provider_label_id == name]
        if not found:
            raise NotFound(f"there is no label {name!r}; `postroom labels list` shows those there are")
        signed, now = operator_signature(), datetime.now(UTC)
        return await database.run(edit_labels(found, description, available, signed, now))

    changed = with_database(application_of(context), settings_for(data_dir), editing)
    show_list([asdict(each) for each in changed], COLUMNS, as_json=as_json)


async def _labels(database: "Database", account: str | None) -> "list[AccountLabel]":
    from postroom.manage.accounts import find_account
    from postroom.store.labels import list_all_labels

    found = await database.run(list_all_labels())
    if account is None:
        return found
    owner = (await find_account(database, account)).id
    return [each for each in found if each.account_id == owner]
