"""`postroom reclassify`: decides anew about messages, with the rules and the model of today."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.session import Session, one_command
from postroom.core.errors import BadInput
from postroom.manage import reclassify as manage

app = one_command()


@app.command()
def reclassify(
    session: Session,
    messages: Annotated[list[UUID] | None, typer.Argument(metavar="MESSAGE...", help="Ids of messages.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="All that nobody decided about since: a span such as 7d, or a time."),
    ] = None,
) -> None:
    """Decide again. What was done before stays done; `postroom undo` takes it back.

    What follows is one batch, which `postroom undo --batch` takes back. Nothing is sent twice.
    """
    if not messages and since is None:
        raise BadInput("MESSAGE", "is missing", "name messages, or give --since")
    start = None if since is None else read_moment("--since", since, datetime.now(UTC), ahead=False)
    count, batch = session.call(manage.reclassify, messages or (), start, operator_signature(), since_as_given=since)
    line = f"{count} messages are being decided about anew."
    line += f"\n`postroom undo --batch {batch}` takes back what follows." if count else ""
    session.show_line({"messages": count, "batch_id": str(batch)}, line)
