"""`postroom approvals`: actions that wait for your approval, and your answers."""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_line, show_list, show_one
from postroom.cli.running import call
from postroom.manage import approvals
from postroom.manage.approvals import AnsweredApproval, Approval

app = command_group("List actions that wait for your approval; approve or reject them.")

COLUMNS = ("id", "what", "to_whom", "sender", "subject", "decided_by", "why", "expires_at")

Id = Annotated[UUID, typer.Argument(metavar="ID", help="The id of the action, as `postroom approvals list` shows it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the actions that wait for your approval, those that expire first at the top."""
    found = call(context, settings_for(data_dir), approvals.list_waiting, limit)
    show_list([_row(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one action in full: exactly what would be done, who would receive it, and why."""
    shown = call(context, settings_for(data_dir), approvals.show, id)
    show_json(_row(shown)) if as_json else show_one(_whole(shown))


@app.command()
def approve(
    context: typer.Context, id: Id, yes: Yes = False, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Approve an action: it is shown, and done when you confirm. If it has changed since, it is not done."""
    settings = settings_for(data_dir)
    shown = call(context, settings, approvals.show, id)
    if not yes and shown.is_waiting:
        show_one(_whole(shown))
        typer.confirm("Do this?", abort=True)
    _show_answer(id, call(context, settings, approvals.approve, shown, operator_signature()), as_json)


@app.command()
def reject(
    context: typer.Context,
    id: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept with the record.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Reject an action, so that it is not done."""
    answered = call(context, settings_for(data_dir), approvals.reject, id, operator_signature(reason))
    _show_answer(id, answered, as_json)


def _show_answer(id: UUID, answered: AnsweredApproval, as_json: bool) -> None:
    show_line({"id": id, "state": answered.state}, f"{id}  {approvals.in_words(answered)}", as_json=as_json)


def _row(approval: Approval) -> dict[str, Any]:
    return {**asdict(approval), **asdict(approvals.notice_of(approval))}


def _whole(approval: Approval) -> dict[str, Any]:
    """Return everything about an approval, uncut, so that it can be answered."""
    row = _row(approval)
    names = ("id", "account", "what", "to_whom", "sender", "subject", "parameters", "decided_by", "why", "state")
    return {name: row[name] for name in (*names, "expires_at", "answer", "action_hash")}
