"""`postroom undo`: take back one action, or everything that a rule, a batch or a period did."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.session import Session, one_command
from postroom.core.errors import BadInput
from postroom.manage.mail_ids import find_action
from postroom.manage.undo import UndoSelection, undo_action, undo_selection

app = one_command()


@app.command()
def undo(
    session: Session,
    action: Annotated[
        str | None,
        typer.Argument(metavar="ACTION", help="One action: its id, or the short one that `postroom mail why` shows."),
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="Everything that the rule of this name did.")] = None,
    batch: Annotated[UUID | None, typer.Option("--batch", help="Everything of this batch.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Everything done since then: a span such as 7d, or a time with its offset."),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="The end of the period; default: now.")] = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="ADDRESS", help="Only in the mailbox of this account.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be undone.")] = False,
) -> None:
    """Undo actions: restore exactly what was changed, and keep what you have changed yourself since."""
    chosen_by = [action, rule, batch, since]
    if sum(each is not None for each in chosen_by) == 0:
        raise BadInput("ACTION", "is missing", "name an action, or give --rule, --batch or --since")
    if action is not None and any(each is not None for each in (rule, batch, since, until)):
        raise BadInput("ACTION", "cannot be combined with --rule, --batch, --since or --until", "give one or the other")
    signed = operator_signature()
    if action is not None:
        undone = session.call(undo_action, session.call(find_action, action), signed, dry_run=dry_run)
    else:
        selection = UndoSelection(rule, batch, _moment("--since", since), _moment("--until", until), account)
        given = {"rule": rule, "batch": batch, "since": since, "until": until, "account": account}
        as_given = {name: str(value) for name, value in given.items() if value is not None}
        undone = session.call(undo_selection, selection, signed, as_given=as_given, dry_run=dry_run)
    would = "would be" if dry_run else "are being"
    line = f"{undone.actions} actions on {undone.messages} messages {would} undone."
    session.show_line({**undone._asdict(), "dry_run": dry_run}, line)


def _moment(option: str, given: str | None) -> datetime | None:
    return None if given is None else read_moment(option, given, datetime.now(UTC), ahead=False)
