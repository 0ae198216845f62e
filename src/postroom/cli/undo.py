"""`postroom undo`: take back one action, or everything that a rule, a batch or a period did."""

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
from postroom.manage.undo import UndoSelection, undo_action, undo_selection

app = one_command()


@app.command()
def undo(
    context: typer.Context,
    action: Annotated[
        UUID | None, typer.Argument(metavar="ACTION", help="One action, as `postroom actions list` shows it.")
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
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Undo actions: restore exactly what was changed, and keep what you have changed yourself since."""
    chosen_by = [action, rule, batch, since]
    if sum(each is not None for each in chosen_by) == 0:
        raise BadInput("ACTION", "is missing", "name an action, or give --rule, --batch or --since")
    if action is not None and any(each is not None for each in (rule, batch, since, until)):
        raise BadInput("ACTION", "cannot be combined with --rule, --batch, --since or --until", "give one or the other")
    settings, signed = settings_for(data_dir), operator_signature()
    if action is not None:
        undone = call(context, settings, undo_action, action, signed, dry_run=dry_run)
    else:
        selection = UndoSelection(rule, batch, _moment("--since", since), _moment("--until", until), account)
        given = {"rule": rule, "batch": batch, "since": since, "until": until, "account": account}
        as_given = {name: str(value) for name, value in given.items() if value is not None}
        undone = call(context, settings, undo_selection, selection, signed, as_given=as_given, dry_run=dry_run)
    would = "would be" if dry_run else "are being"
    line = f"{undone.actions} actions on {undone.messages} messages {would} undone."
    show_line({**undone._asdict(), "dry_run": dry_run}, line, as_json=as_json)


def _moment(option: str, given: str | None) -> datetime | None:
    return None if given is None else read_moment(option, given, datetime.now(UTC), ahead=False)
