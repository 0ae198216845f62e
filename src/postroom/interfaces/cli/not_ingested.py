"""`postroom connector refused` and `postroom connector retry`: mail that was not ingested, and another attempt."""

from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.session import Session

COLUMNS = ("account", "message_id", "state", "reason", "since", "next_try_at")
JOB_COLUMNS = ("message_id", "job_id", "asked_before")


def refused(session: Session) -> None:
    """List the mail that connectors could not deliver: refused for good, or set aside for now."""
    from postroom.operations.connectors.not_ingested import list_not_ingested

    session.show_list(list_not_ingested(session.settings.data_dir), COLUMNS)


def retry(
    session: Session,
    account: Annotated[str, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Whose mail it is.")],
    message: Annotated[
        list[str] | None,
        typer.Option("--message", metavar="ID", help="A message, by its Gmail id; repeatable."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Everything that `postroom connector refused` lists.")
    ] = False,
) -> None:
    """Ingest messages once more, up to a hundred per job. Safe to repeat."""
    from postroom.operations.connectors.not_ingested import retry_ingest

    ids = message or []
    if ids and everything:
        raise BadInput("--message", "cannot be combined with --all", "give one of the two")
    if not ids and not everything:
        raise BadInput("--message", "and --all are both missing", "give one of the two")
    session.show_list(session.act(retry_ingest, session.settings, account, ids), JOB_COLUMNS)
