"""`postroom proposals`: rules that Postroom has learned to propose from what you do by hand. You decide."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import cell, show_json, show_list, show_one
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.store.proposals import ProposalView

app = command_group("Look at rules that Postroom proposes from what you do by hand; accept or dismiss them.")

COLUMNS = ("id", "account", "name", "then", "why", "count", "state", "created_at")
STATES = ("open", "accepted", "dismissed", "all")
Id = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal, as `postroom proposals list` shows it.")]


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str, typer.Option("--state", help="open, accepted, dismissed or all.")] = "open",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many, newest first.")] = 100,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List proposed rules, and how often you did by hand what each would do."""
    from postroom.store.proposals import list_proposals

    if state not in STATES:
        raise BadInput("--state", f"{state!r} is unknown", f"use one of {', '.join(STATES)}")
    wanted = None if state == "all" else state
    found = run_transaction(application_of(context), settings_for(data_dir), list_proposals(wanted, limit))
    show_list([_row(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one proposal: the rule as a file would have it, and its evidence."""
    from postroom.core.rules.documents import write_documents
    from postroom.store.proposals import load_proposal

    found = run_transaction(application_of(context), settings_for(data_dir), load_proposal(id))
    if as_json:
        show_json(asdict(found))
        return
    row = _row(found)
    show_one({name: row[name] for name in (*COLUMNS, "messages", "rule_id")})
    typer.echo()
    typer.echo("\n".join(cell(line) for line in write_documents([found.draft], "yaml").splitlines()))


@app.command()
def accept(
    context: typer.Context,
    id: Id,
    active: Annotated[bool, typer.Option("--active", help="Let it act at once, and not in shadow first.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make the rule. It runs in shadow until `postroom shadow end --rule NAME`, unless it is to act at once."""
    from postroom.store.engine.ids import new_id
    from postroom.store.proposals import accept_proposal

    verb = accept_proposal(id, new_id(), not active, operator_signature(), datetime.now(UTC))
    found, name = run_transaction(application_of(context), settings_for(data_dir), verb)
    mode: Literal["active", "shadow"] = "active" if active else "shadow"
    if as_json:
        show_json({"id": found.id, "rule": name, "rule_id": found.rule_id, "mode": mode})
        return
    typer.echo(f"{cell(name)}  " + ("acts now" if active else "decides in shadow now"))


@app.command()
def dismiss(
    context: typer.Context,
    id: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for whoever wonders later.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Refuse a proposal; it is not made again."""
    from postroom.store.proposals import dismiss_proposal

    verb = dismiss_proposal(id, operator_signature(reason), datetime.now(UTC))
    found = run_transaction(application_of(context), settings_for(data_dir), verb)
    show_json({"id": found.id, "state": found.state}) if as_json else typer.echo(f"{found.id}  dismissed")


def _row(view: "ProposalView") -> dict[str, Any]:
    why = {"repeated": "you do it by hand", "taken_back": "you took it back"}
    return {
        "id": view.id,
        "account": view.account,
        "name": view.rule["name"],
        "then": view.rule["then"],
        "why": why.get(str(view.evidence.get("kind")), "-"),
        "count": view.evidence.get("count"),
        "state": view.state,
        "created_at": view.created_at,
        "rule": view.rule,
        "messages": view.evidence.get("messages"),
        "evidence": view.evidence,
        "rule_id": view.rule_id,
    }
