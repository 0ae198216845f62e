"""`postroom labels`: the labels of the mailboxes, their purpose, and whether the classifier may use them."""

from pathlib import Path
from typing import Annotated

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_list
from postroom.cli.running import call

app = command_group("List labels; describe what they are for, and allow or deny them to the classifier.")

COLUMNS = ("name", "account", "kind", "available_to_classifier", "description")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The label's name (in any case) or id.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Only in this account; default: all.")
]


@app.command("list")
def list_(context: typer.Context, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the labels of all mailboxes, as they were last seen there."""
    from postroom.manage.labels import list_labels

    show_list(call(context, settings_for(data_dir), list_labels, account), COLUMNS, as_json=as_json)


@app.command()
def sync(context: typer.Context, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check the labels of the mailboxes now, by jobs, instead of within half a minute. Safe to repeat."""
    from postroom.manage.labels import sync_labels

    show_list(call(context, settings_for(data_dir), sync_labels, account), ("account", "job_id"), as_json=as_json)


@app.command()
def describe(
    context: typer.Context,
    name: Name,
    description: Annotated[
        str, typer.Argument(metavar="TEXT", help="What it is for; an empty text removes the description.")
    ],
    account: Account = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Describe what a label is for; the model reads it."""
    _edit(context, data_dir, name, account, as_json, description=description)


@app.command()
def allow(
    context: typer.Context, name: Name, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Allow the classifier to use a label. Safe to repeat."""
    _edit(context, data_dir, name, account, as_json, available=True)


@app.command()
def deny(
    context: typer.Context, name: Name, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Forbid the classifier to use a label; rules may still use it. Safe to repeat."""
    _edit(context, data_dir, name, account, as_json, available=False)


def _edit(
    context: typer.Context,
    data_dir: Path | None,
    name: str,
    account: str | None,
    as_json: bool,
    *,
    description: str | None = None,
    available: bool | None = None,
) -> None:
    from postroom.manage.labels import edit_labels

    settings, signed = settings_for(data_dir), operator_signature()
    changed = call(context, settings, edit_labels, name, account, signed, description=description, available=available)
    show_list(changed, COLUMNS, as_json=as_json)
