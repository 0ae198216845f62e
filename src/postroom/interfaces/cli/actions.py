"""`postroom actions`: actions that are done, waiting or failed, and why each was decided."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from postroom.interfaces.cli.output import show_json, show_one
from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.table import group_of

if TYPE_CHECKING:
    from postroom.operations.actions.actions import ActionView, ExplainedDecision, Explanation


def _explain(session: Session, found: "Explanation") -> None:
    decided, done = [_decision(each) for each in found.decisions], [_action(each) for each in found.actions]
    if session.as_json:
        show_json({"decisions": decided, "actions": done})
        return
    if not decided and not done:
        typer.echo("Nothing has been decided about this message.")
    for row in (*decided, *done):
        show_one(row)
        typer.echo("")


def _decision(explained: "ExplainedDecision") -> dict[str, Any]:
    view, answer = explained.view, explained.answer
    by_hand = {"agreed": None, "you": None} if answer is None else {"agreed": answer.agreed, "you": answer.what}
    return {**asdict(view.decision), "created_at": view.created_at, **by_hand}


def _action(view: "ActionView") -> dict[str, Any]:
    names = ("id", "action_type", "parameters", "state", "actor", "rationale", "safety", "undo_hint", "undone", "error")
    row = asdict(view)
    return {name: row[name] for name in names}


app = group_of("Show what was done with messages, and why.", "actions", "actions.actions", explain=_explain)
