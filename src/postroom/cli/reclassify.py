"""`postroom reclassify`: decide again about messages, with today's rules and model."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_line
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.manage import reclassify as manage

app = one_command()


@app.command()
def reclassify(
    context: typer.Context,
    messages: Annotated[list[UUID] | None, typer.Argument(metavar="MESSAGE...", help="Ids of messages.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="All messages without a decision since then: a span such as 7d, or a time."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Decide again. Earlier actions stay done; `postroom undo` takes them back.

    The resulting actions form one batch for `postroom undo --batch`. Nothing is sent twice.
    """
    if not messages and since is None:
        raise BadInput("MESSAGE", "is missing", "name messages, or give --since")
    start = None if since is None else read_moment("--since", since, datetime.now(UTC), ahead=False)
    count, batch = call(
        context,
        settings_for(data_dir),
        manage.reclassify,
        messages or (),
        start,
        operator_signature(),
        since_as_given=since,
    )
    line = f"{count} messages are being decided again."
    line += f"\n`postroom undo --batch {batch}` takes back the resulting actions." if count else ""
    show_line({"messages": count, "batch_id": str(batch)}, line, as_json=as_json)
