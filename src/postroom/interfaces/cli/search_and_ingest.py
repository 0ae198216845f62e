"""`postroom search-and-ingest`: search a mailbox for old mail, and ingest what is found."""

from typing import TYPE_CHECKING

import typer

from postroom.core.errors import PostroomError
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.table import command_of

if TYPE_CHECKING:
    from postroom.operations.connectors.on_demand import OnDemandResult

NAME = "search-and-ingest"
COLUMNS = ("outcome", "date", "sender", "subject", "reason")


class NotSearched(PostroomError):
    """The mailbox was not searched, or not to the end."""


def _show(session: Session, result: "OnDemandResult") -> None:
    """Show it. Raises NotSearched without an answer."""
    if session.as_json:
        show_json(result)
    elif result.state == "answered":
        session.show_list(result.messages, COLUMNS)
        more = "; the mailbox has more, so narrow the search" if result.more else ""
        typer.echo(
            f"\n{len(result.messages)} found in {cell(result.account)}, {result.count('new')} of them new{more}."
        )
    if result.state != "answered":
        why = "" if result.error is None else f": {result.error}"
        raise NotSearched(f"the search is {result.state}{why}; {result.remedy}")


app = command_of(NAME, "connectors.on_demand", **{NAME: _show})
