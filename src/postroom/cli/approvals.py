"""`postroom approvals`: actions that wait for your approval, and your answers."""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import Limit, Reason
from postroom.cli.output import show_json, show_one
from postroom.cli.session import Session, command_group
from postroom.manage import approvals
from postroom.manage.approvals import AnsweredApproval, Approval

app = command_group("List actions that wait for your approval; approve or reject them.")

COLUMNS = ("id", "what", "to_whom", "sender", "subject", "decided_by", "why", "expires_at")

Id = Annotated[UUID, typer.Argument(metavar="ID", help="The id of the action, as `postroom approvals list` shows it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@app.command("list")
def list_(session: Session, limit: Limit = 50) -> None:
    """List the actions that wait for your approval, those that expire first at the top."""
    found = session.call(approvals.list_waiting, limit)
    session.show_list([_row(each) for each in found], COLUMNS)


@app.command()
def show(session: Session, id: Id) -> None:
    """Show one action in full: exactly what would be done, who would receive it, and why."""
    shown = session.call(approvals.show, id)
    show_json(_row(shown)) if session.as_json else show_one(_whole(shown))


@app.command()
def approve(session: Session, id: Id, yes: Yes = False) -> None:
    """Approve an action: it is shown, and done when you confirm. If it has changed since, it is not done."""
    shown = session.call(approvals.show, id)
    if not yes and shown.is_waiting:
        show_one(_whole(shown))
        typer.confirm("Do this?", abort=True)
    _show_answer(id, session.call(approvals.approve, shown, operator_signature()), session)


@app.command()
def reject(session: Session, id: Id, reason: Reason = None) -> None:
    """Reject an action, so that it is not done."""
    answered = session.call(approvals.reject, id, operator_signature(reason))
    _show_answer(id, answered, session)


def _show_answer(id: UUID, answered: AnsweredApproval, session: Session) -> None:
    session.show_line({"id": id, "state": answered.state}, f"{id}  {approvals.in_words(answered)}")


def _row(approval: Approval) -> dict[str, Any]:
    return {**asdict(approval), **asdict(approvals.notice_of(approval))}


def _whole(approval: Approval) -> dict[str, Any]:
    """Return everything about an approval, uncut, so that it can be answered."""
    row = _row(approval)
    names = ("id", "account", "what", "to_whom", "sender", "subject", "parameters", "decided_by", "why", "state")
    return {name: row[name] for name in (*names, "expires_at", "answer", "action_hash")}
