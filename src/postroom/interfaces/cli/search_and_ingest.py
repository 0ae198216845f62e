"""`postroom search-and-ingest`: search a mailbox for old mail, and ingest what is found."""

from typing import Annotated

import typer

from postroom.core.errors import PostroomError
from postroom.core.mail.mailbox_requests import MOST_FOUND
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.connectors.on_demand import OnDemandResult, search_from_command_line

app = one_command()

COLUMNS = ("outcome", "date", "sender", "subject", "reason")


class NotSearched(PostroomError):
    """The mailbox was not searched, or not to the end."""


@app.command()
def search_and_ingest(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A search as in the mailbox's own search box.")],
    most: Annotated[
        int, typer.Option("--max", help=f"How many messages at most, 1 to {MOST_FOUND}; the newest.")
    ] = MOST_FOUND,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="ID_OR_ADDRESS", help="Whose mailbox; not needed if there is one only."),
    ] = None,
) -> None:
    """Search a mailbox, and store what is found so that it can be searched and read here.

    The mailbox is not changed, and nothing is done with the mail. Repeating a search ingests nothing twice.
    """
    result = session.act(search_from_command_line, account, query, most)
    if session.as_json:
        show_json(result)
    elif result.state == "answered":
        _print(session, result)
    if result.state != "answered":
        why = "" if result.error is None else f": {result.error}"
        raise NotSearched(f"the search is {result.state}{why}; {result.remedy}")


def _print(session: Session, result: OnDemandResult) -> None:
    session.show_list(result.messages, COLUMNS)
    more = "; the mailbox has more, so narrow the search" if result.more else ""
    typer.echo(f"\n{len(result.messages)} found in {cell(result.account)}, {result.count('new')} of them new{more}.")
