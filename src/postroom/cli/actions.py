"""`postroom actions`: what was done, waits, or failed, and why it was decided."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput
from postroom.core.lifecycle import ACTION

if TYPE_CHECKING:
    from postroom.store.actions import ActionView
    from postroom.store.decisions import DecisionView
    from postroom.store.outcomes import OutcomeView

app = command_group("Look at what was done with messages, and why.")

COLUMNS = ("id", "action_type", "state", "actor", "rule_name", "sender", "subject", "undone", "created_at", "error")


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--state", help="Only actions in this state, such as failed.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List actions, the newest first."""
    if state is not None and state not in ACTION.states:
        raise BadInput("--state", f"there is no state {state!r}", f"use one of {', '.join(sorted(ACTION.states))}")
    from postroom.store.actions import list_actions

    found = run_transaction(application_of(context), settings_for(data_dir), list_actions(limit, state=state))
    show_list([asdict(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def explain(
    context: typer.Context,
    message_id: Annotated[UUID, typer.Argument(metavar="MESSAGE", help="The id of the message.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Tell what was decided about a message, by whom and why, what was done, and how you answered in the mailbox."""
    from postroom.store.actions import list_actions
    from postroom.store.decisions import decisions_about
    from postroom.store.outcomes import outcomes_of

    application, settings = application_of(context), settings_for(data_dir)
    decided = run_transaction(application, settings, decisions_about(message_id))
    done = run_transaction(application, settings, list_actions(100, message_id=message_id))
    found = run_transaction(application, settings, outcomes_of(message_id))
    answers = {each.decision_id: each for each in found}
    rows = [_decision(each, answers.get(each.decision.id)) for each in decided]
    if as_json:
        show_json({"decisions": rows, "actions": [_action(each) for each in done]})
        return
    if not decided and not done:
        typer.echo("Nothing was decided about it.")
    for row in rows:
        show_one(row)
        typer.echo("")
    for each in done:
        show_one(_action(each))
        typer.echo("")


def _decision(view: "DecisionView", answer: "OutcomeView | None") -> dict[str, Any]:
    told = {"agreed": None, "you": None} if answer is None else {"agreed": answer.agreed, "you": answer.what}
    return {**asdict(view.decision), "created_at": view.created_at, **told}


def _action(view: "ActionView") -> dict[str, Any]:
    names = ("id", "action_type", "parameters", "state", "actor", "rationale", "safety", "undo_hint", "undone", "error")
    row = asdict(view)
    return {name: row[name] for name in names}
