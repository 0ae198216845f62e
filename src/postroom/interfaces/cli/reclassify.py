"""`postroom reclassify`: decide again about messages, with today's rules and model."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.core.moments import read_moment
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.mail import reclassify as manage

app = one_command()


@app.command()
def reclassify(
    session: Session,
    messages: Annotated[list[UUID] | None, typer.Argument(metavar="MESSAGE...", help="Ids of messages.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="All messages without a decision since then: a span such as 7d, or a time."),
    ] = None,
) -> None:
    """Decide again. Earlier actions stay done; `postroom undo` takes them back.

    The resulting actions form one batch for `postroom undo --batch`. Nothing is sent twice.
    """
    if not messages and since is None:
        raise BadInput("MESSAGE", "is missing", "name messages, or give --since")
    start = None if since is None else read_moment("--since", since, datetime.now(UTC), ahead=False)
    count, batch = session.act(manage.reclassify, messages or (), start, since_as_given=since)
    line = f"{count} messages are being decided again."
    line += f"\n`postroom undo --batch {batch}` takes back the resulting actions." if count else ""
    session.show_line({"messages": count, "batch_id": str(batch)}, line)
