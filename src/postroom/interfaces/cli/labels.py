"""`postroom labels`: the labels of the mailboxes, their purpose, and whether the classifier may use them."""

from typing import Annotated

import typer

from postroom.interfaces.cli.session import Session, command_group

app = command_group("List labels; describe what they are for, and allow or deny them to the classifier.")

COLUMNS = ("name", "account", "kind", "available_to_classifier", "description")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The label's name (in any case) or id.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Only in this account; default: all.")
]


@app.command("list")
def list_(session: Session, account: Account = None) -> None:
    """List the labels of all mailboxes, as they were last seen there."""
    from postroom.operations.accounts.labels import list_labels

    session.show_list(session.call(list_labels, account), COLUMNS)


@app.command()
def sync(session: Session, account: Account = None) -> None:
    """Check the labels of the mailboxes now, by jobs, instead of within half a minute. Safe to repeat."""
    from postroom.operations.accounts.labels import sync_labels

    session.show_list(session.call(sync_labels, account), ("account", "job_id"))


@app.command()
def describe(
    session: Session,
    name: Name,
    description: Annotated[
        str, typer.Argument(metavar="TEXT", help="What it is for; an empty text removes the description.")
    ],
    account: Account = None,
) -> None:
    """Describe what a label is for; the model reads it."""
    _edit(session, name, account, description=description)


@app.command()
def allow(session: Session, name: Name, account: Account = None) -> None:
    """Allow the classifier to use a label. Safe to repeat."""
    _edit(session, name, account, available=True)


@app.command()
def deny(session: Session, name: Name, account: Account = None) -> None:
    """Forbid the classifier to use a label; rules may still use it. Safe to repeat."""
    _edit(session, name, account, available=False)


def _edit(
    session: Session, name: str, account: str | None, *, description: str | None = None, available: bool | None = None
) -> None:
    from postroom.operations.accounts.labels import edit_labels

    changed = session.act(edit_labels, name, account, description=description, available=available)
    session.show_list(changed, COLUMNS)
