"""`postroom actions`: actions that are done, waiting or failed, and why each was decided."""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer

from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.core.lifecycle import ACTION
from postroom.manage import actions
from postroom.manage.actions import ActionView, ExplainedDecision

app = command_group("Show what was done with messages, and why.")

COLUMNS = ("id", "action_type", "state", "actor", "rule_name", "sender", "subject", "undone", "created_at", "error")


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--state", help="Only actions in this state, such as failed.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List actions, newest first."""
    if state is not None and state not in ACTION.states:
        raise BadInput("--state", f"there is no state {state!r}", f"use one of {', '.join(sorted(ACTION.states))}")
    found = call(context, settings_for(data_dir), actions.list_actions, limit, state)
    show_list(found, COLUMNS, as_json=as_json)


@app.command()
def explain(
    context: typer.Context,
    message_id: Annotated[UUID, typer.Argument(metavar="MESSAGE", help="The id of the message.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Explain a message: what was decided, by whom and why, what was done, and what you did yourself in the mailbox."""
    found = call(context, settings_for(data_dir), actions.explain, message_id)
    decided, done = [_decision(each) for each in found.decisions], [_action(each) for each in found.actions]
    if as_json:
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
