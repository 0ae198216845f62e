"""`postroom actions`: actions that are done, waiting or failed, and why each was decided."""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.core.lifecycle import ACTION
from postroom.interfaces.cli.options import Limit
from postroom.interfaces.cli.output import show_json, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.actions import actions
from postroom.operations.actions.actions import ActionView, ExplainedDecision
from postroom.words.states import state_of

app = command_group("Show what was done with messages, and why.")

COLUMNS = ("id", "action_type", "became", "actor", "rule_name", "sender", "subject", "created_at", "error")


@app.command("list")
def list_(
    session: Session,
    state: Annotated[str | None, typer.Option("--state", help="Only actions in this state, such as failed.")] = None,
    limit: Limit = 50,
) -> None:
    """List actions, newest first."""
    if state is not None and state not in ACTION.states:
        raise BadInput("--state", f"there is no state {state!r}", f"use one of {', '.join(sorted(ACTION.states))}")
    found = session.call(actions.list_actions, limit, state)
    session.show_list([{**asdict(each), "became": state_of(each.state, each.undone)[0]} for each in found], COLUMNS)


@app.command()
def explain(
    session: Session, message_id: Annotated[UUID, typer.Argument(metavar="MESSAGE", help="The id of the message.")]
) -> None:
    """Explain a message: what was decided, by whom and why, what was done, and what you did yourself in the mailbox."""
    found = session.call(actions.explain, message_id)
    decided, done = [_decision(each) for each in found.decisions], [_action(each) for each in found.actions]
    if session.as_json:
        show_json({"decisions": decided, "actions": done})
        return
    if not decided and not done:
        typer.echo("Nothing has been decided about this message.")
    for row in (*decided, *done):
        show_one(row)
        typer.echo("")


def _decision(explained: ExplainedDecision) -> dict[str, Any]:
    view, answer = explained.view, explained.answer
    by_hand = {"agreed": None, "you": None} if answer is None else {"agreed": answer.agreed, "you": answer.what}
    return {**asdict(view.decision), "created_at": view.created_at, **by_hand}


def _action(view: ActionView) -> dict[str, Any]:
    names = ("id", "action_type", "parameters", "state", "actor", "rationale", "safety", "undo_hint", "undone", "error")
    row = asdict(view)
    return {name: row[name] for name in names}
