"""`postroom undo`: take back one action, or everything that a rule, a batch or a period did, or that was hidden."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.moments import read_moment
from postroom.core.short_ids import short_id
from postroom.interfaces.cli.output import cell
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
from postroom.triage.act.approval_notice import notice_of

app = one_command()

MOST_SHOWN = 1_000
HIDDEN_COLUMNS = ("at", "from", "subject", "what", "by")


@app.command()
def undo(
    session: Session,
    action: Annotated[
        str | None,
        typer.Argument(metavar="ACTION", help="One action: its id, or the short one that `postroom mail why` shows."),
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="Everything that the rule of this name did.")] = None,
    batch: Annotated[UUID | None, typer.Option("--batch", help="Everything of this batch.")] = None,
    hidden: Annotated[
        bool,
        typer.Option("--hidden", help="Everything that the model and agents have hidden without your approval."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Everything done since then: a span such as 7d, or a time with its offset."),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="The end of the period; default: now.")] = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="ADDRESS", help="Only in the mailbox of this account.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="NAME", help="Everything that this agent asked for: its token's name or id; or `model`."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --by: do not show it first and ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be undone.")] = False,
) -> None:
    """Undo actions: restore exactly what was changed, and keep what you have changed yourself since."""
    chosen_by = [action, rule, batch, since, hidden or None, by]
    if sum(each is not None for each in chosen_by) == 0:
        raise BadInput("ACTION", "is missing", "name an action, or give --rule, --batch, --hidden, --by or --since")
    if action is not None and any(each is not None for each in (*chosen_by[1:], until)):
        options = "--rule, --batch, --hidden, --by, --since or --until"
        raise BadInput("ACTION", f"cannot be combined with {options}", "give one or the other")
    if action is not None:
        return _undo_one(session, session.call(find_action, action), dry_run)
    selection = UndoSelection(rule, batch, _moment("--since", since), _moment("--until", until), account, hidden, by)
    given = {
        "rule": rule,
        "batch": batch,
        "hidden": hidden or None,
        "since": since,
        "until": until,
        "account": account,
        "by": by,
    }
    if by is not None and not yes:
        _show_first(session, selection, is_asked=not dry_run)
    as_given = {name: str(value) for name, value in given.items() if value is not None}
    undone = session.act(undo_selection, selection, as_given=as_given, dry_run=dry_run)
    would = "Would undo" if dry_run else "Undoing"
    line = f"{would} {counted(undone.actions, 'action')} on {counted(undone.messages, 'message')}."
    row = {**undone._asdict(), "dry_run": dry_run}
    if hidden and dry_run and (undone.actions or undone.canceled):
        row = {**row, "hidden": _show_hidden(session, selection)}
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


def _moment(option: str, given: str | None) -> datetime | None:
    return None if given is None else read_moment(option, given, datetime.now(UTC), ahead=False)
