"""`postroom undo`: take back one action, or everything that a rule, a batch or a period did, or that was hidden."""

from typing import Annotated
from uuid import UUID

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.short_ids import short_id
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.actions.undo import (
    UndoSelection,
    check_action,
    preview_undo,
    undo_action,
    undo_selection,
    undo_words,
)
from postroom.operations.mail.mail_ids import find_action
from postroom.operations.mail.mail_lines import MailQuestion, list_lines
from postroom.operations.operation import Argument
from postroom.triage.act.approval_notice import notice_of

app = one_command()

MOST_SHOWN = 1_000
HIDDEN_COLUMNS = ("at", "from", "subject", "what", "by")


@app.command()
def undo(
    session: Session,
    action: Annotated[
        str | None,
        Argument("One action: its id, or the short one that `postroom mail why` shows.", typed_as="ACTION"),
    ] = None,
    *,
    selection: UndoSelection,
    yes: Annotated[bool, Argument("With --by: do not show it first and ask.")] = False,
    dry_run: Annotated[bool, Argument("Only count what would be undone.")] = False,
) -> None:
    """Undo actions: restore exactly what was changed, and keep what you have changed yourself since."""
    if action is None:
        _undo_all(session, selection, yes=yes, dry_run=dry_run)
    elif selection != UndoSelection():
        options = "--rule, --batch, --hidden, --by, --since, --until or --account"
        raise BadInput("ACTION", f"cannot be combined with {options}", "give one or the other")
    else:
        _undo_one(session, session.call(find_action, action), dry_run)


def _undo_all(session: Session, selection: UndoSelection, *, yes: bool, dry_run: bool) -> None:
    if selection.by is not None and not yes:
        _show_first(session, selection, is_asked=not dry_run)
    with progress(session.as_json):
        undone = session.act(undo_selection, selection, dry_run)
    would = "Would undo" if dry_run else "Undoing"
    line = f"{would} {counted(undone.actions, 'action')} on {counted(undone.messages, 'message')}."
    row = {**undone._asdict(), "dry_run": dry_run}
    if selection.hidden and dry_run and (undone.actions or undone.canceled):
        row["hidden"] = _show_hidden(session, selection)
    if undone.canceled:
        line += f" {'Would cancel' if dry_run else 'Canceled'} {counted(undone.canceled, 'action')} not yet done."
    session.show_line(row, line if undone.actions or undone.canceled else "Nothing to undo.")


def _show_hidden(session: Session, selection: UndoSelection) -> list[dict[str, object]]:
    """Show the mail that would be brought back, the newest first."""
    asked = MailQuestion(kind="mail", state="hidden", account=selection.account, since=selection.since)
    page = session.call(list_lines, asked, MOST_SHOWN)
    rows: list[dict[str, object]] = [
        {"at": each.at, "from": each.sender, "subject": each.subject, "what": each.what, "by": each.by}
        for each in page.lines
    ]
    if not session.as_json:
        session.show_list(rows, HIDDEN_COLUMNS)
    return rows


def _show_first(session: Session, selection: UndoSelection, *, is_asked: bool) -> None:
    """Show the newest of what would be undone, and ask."""
    found = session.call(preview_undo, selection)
    for each in found.newest:
        notice = notice_of(each)
        typer.echo(f"{short_id(each.id)}  {cell(notice.what)}  {cell(notice.sender)}  {cell(notice.subject)}", err=True)
    if (more := found.undone.actions - len(found.newest)) > 0:
        typer.echo(f"and {counted(more, 'more action')}", err=True)
    if is_asked and found.undone.actions:
        typer.confirm(f"Undo {counted(found.undone.actions, 'action')}?", abort=True, err=True)


def _undo_one(session: Session, id: UUID, dry_run: bool) -> None:
    row = {"actions": 1, "messages": 1, "dry_run": dry_run}
    if dry_run:
        session.call(check_action, id)
        return session.show_line(row, "Would undo 1 action.")
    undo = session.act(undo_action, id)
    session.show_line({**row, "state": undo.state, "job_id": str(undo.job_id)}, undo_words(undo))
