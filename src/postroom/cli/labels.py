"""`postroom labels`: the labels of the mailboxes, what they are for, and whether the classifier may use them."""

from typing import Annotated

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.session import Session, command_group

app = command_group("Look at labels; say what they are for, and whether the classifier may use them.")

COLUMNS = ("name", "account", "kind", "available_to_classifier", "description")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The label, by its name in any case, or by its id.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Only in this account; otherwise in all.")
]


@app.command("list")
def list_(session: Session, account: Account = None) -> None:
    """List the labels of all mailboxes, as they were last seen there."""
    from postroom.manage.labels import list_labels

    session.show_list(session.call(list_labels, account), COLUMNS)


@app.command()
def sync(session: Session, account: Account = None) -> None:
    """Have the labels of mailboxes looked at now, by jobs, and not only every half minute. Safe to repeat."""
    from postroom.manage.labels import sync_labels

    session.show_list(session.call(sync_labels, account), ("account", "job_id"))


@app.command()
def describe(
    session: Session,
    name: Name,
    description: Annotated[str, typer.Argument(metavar="TEXT", help="What it is for; an empty text takes it away.")],
    account: Account = None,
) -> None:
    """Say what a label is for: the model reads it."""
    _edit(session, name, account, description=description)


@app.command()
def allow(session: Session, name: Name, account: Account = None) -> None:
    """Let the classifier use a label. Safe to repeat."""
    _edit(session, name, account, available=True)


@app.command()
def deny(session: Session, name: Name, account: Account = None) -> None:
    """Keep a label from the classifier; rules may still use it. Safe to repeat."""
    _edit(session, name, account, available=False)


def _edit(
    session: Session, name: str, account: str | None, *, description: str | None = None, available: bool | None = None
) -> None:
    from postroom.manage.labels import edit_labels

    signed = operator_signature()
    changed = session.call(edit_labels, name, account, signed, description=description, available=available)
    session.show_list(changed, COLUMNS)
