"""`postroom approvals`: actions that wait for your approval, and your answers."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.short_ids import short_id
from postroom.interfaces.cli.options import Reason, Yes
from postroom.interfaces.cli.output import cell, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.actions.approvals import (
    GRACE_S,
    MOST_AT_ONCE,
    Answered,
    Approval,
    ApprovalGroup,
    ApprovalLine,
    ShownApproval,
    answer_approvals,
    approval_row,
    approve_action,
    group_lines,
    list_by,
    reject_action,
    show_approval,
    whole_row,
)
from postroom.operations.mail.mail_ids import ACTION
from postroom.operations.operation import Argument, Limit

app = command_group(
    "List actions that wait for your approval; approve or reject them. Each is shown with a short id, the last eight "
    "digits of its whole id. Commands take any beginning of it that is unique."
)
add_commands(app, "approvals", "actions.approvals")

COLUMNS = ("id", "what", "to_whom", "sender", "subject", "decided_by", "why", "expires_at")
MOST_IDS = 5


@app.command("list")
def list_(
    session: Session,
    limit: Limit = 50,
    by: Annotated[
        str | None,
        Argument("Only what this agent asked for: its token's name or id, or `model`.", typed_as="--by NAME"),
    ] = None,
    each: Annotated[bool, Argument("One line for each action.")] = False,
) -> None:
    """List the actions that wait for your approval, those that expire first at the top. Actions that do the same with
    mail of one sender, for the same cause, are one line."""
    found = session.ask(list_by, by=by, most=limit)
    if session.as_json:
        session.show_list([approval_row(line.approval) for line in found], COLUMNS)
        return
    groups = [[line] for line in found] if each else [group.members for group in group_lines(found)]
    session.show_list([_group_row(members) for members in groups], COLUMNS)


@app.command()
def approve(session: Session, id: Annotated[str, ACTION.typed], yes: Yes = False) -> None:
    """Approve an action: it is shown, and done when you confirm. If it has changed since, it is not done."""
    shown = session.ask(show_approval, action=id)
    if not yes and shown.is_waiting:
        show_one(whole_row(shown))
        typer.confirm("Do this?", abort=True)
    _show_answer(shown, session.act(approve_action, shown.id, shown.action_hash), session)


@app.command()
def reject(
    session: Session,
    ids: Annotated[Sequence[str], Argument("The actions: their short ids, or whole ones.", typed_as="[ID]...")] = (),
    by: Annotated[
        str | None, Argument("All that this agent asked for, by its token's name or id.", typed_as="--by NAME")
    ] = None,
    every: Annotated[bool, Argument("All that wait.", typed_as="--all")] = False,
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Reject actions, so that they are not done: some by their ids, or all that wait for one agent, or all. With --by
    and --all they are counted first, and you are asked."""
    if sum((bool(ids), by is not None, every)) != 1:
        raise BadInput("ID", "is missing, or given beside --by or --all", "give ids, --by NAME, or --all")
    signing = session.because(reason)
    if ids:
        for shown in [session.ask(show_approval, action=id) for id in ids]:
            _show_answer(shown, signing.act(reject_action, shown.id), session)
        return
    found = session.ask(list_by, by=by)
    if found and not yes:
        _ask_to_reject(group_lines(found))
    total = _reject_several(signing, found)
    session.show_line({"rejected": total}, f"Rejected {counted(total, 'action')}." if total else "Nothing waits.")


def _ask_to_reject(groups: Sequence[ApprovalGroup]) -> None:
    for group in groups:
        about = f"{cell(group.what)}, mail of {cell(group.sender)}, by {cell(group.decided_by)}"
        typer.echo(f"{len(group.members):>6}  {about}", err=True)
    number = sum(len(group.members) for group in groups)
    typer.confirm(f"Reject {counted(number, 'action')}?", abort=True, err=True)


def _reject_several(session: Session, lines: Sequence[ApprovalLine]) -> int:
    shown = [ShownApproval(each.approval.id, each.approval.action_hash) for each in lines]
    parts = [shown[start : start + MOST_AT_ONCE] for start in range(0, len(shown), MOST_AT_ONCE)]
    return sum(session.act(answer_approvals, "reject", part).counted for part in parts)


def _show_answer(shown: Approval, answered: Answered, session: Session) -> None:
    session.show_line({"id": shown.id, "state": answered.state}, f"{short_id(shown.id)}  {answered.said}")
    if answered.state == "rejected" and not session.as_json:
        back = session.command_line(f"approvals take-back {short_id(shown.id)}")
        typer.echo(f"To take it back within {GRACE_S} seconds: {back}")


def _group_row(members: Sequence[ApprovalLine]) -> dict[str, Any]:
    """One line for actions that are alike, with their short ids."""
    first = approval_row(members[0].approval)
    ids = ", ".join(short_id(each.approval.id) for each in members[:MOST_IDS])
    more = len(members) - MOST_IDS
    about = first["subject"] if len(members) == 1 else counted(len(members), "message")
    return {**first, "id": f"{ids} and {more} more" if more > 0 else ids, "subject": about}
