"""`postroom proposals`: rules that Postroom proposes from what you do by hand. You decide."""

from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import cell, show_json, show_line, show_list, show_one
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.core.lifecycle import ProposalState
from postroom.core.rules.documents import write_documents
from postroom.manage import proposals
from postroom.manage.proposals import ProposalView

app = command_group("List rules that Postroom proposes from what you do by hand; accept or dismiss them.")

COLUMNS = ("id", "account", "name", "then", "why", "count", "state", "created_at")
STATES: tuple[ProposalState | Literal["all"], ...] = ("open", "accepted", "dismissed", "all")
Id = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal, as `postroom proposals list` shows it.")]


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str, typer.Option("--state", help="open, accepted, dismissed or all.")] = "open",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many, newest first.")] = 100,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List proposed rules, and how often you did by hand what each would do."""
    if state not in STATES:
        raise BadInput("--state", f"{state!r} is unknown", f"use one of {', '.join(STATES)}")
    wanted = None if state == "all" else state
    found = call(context, settings_for(data_dir), proposals.list_proposals, wanted, limit)
    show_list([_row(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one proposal: the rule as it would stand in a file, and the evidence for it."""
    found = call(context, settings_for(data_dir), proposals.load_proposal, id)
    if as_json:
        show_json(found)
        return
    row = _row(found)
    show_one({name: row[name] for name in (*COLUMNS, "messages", "rule_id")})
    typer.echo()
    typer.echo("\n".join(cell(line) for line in write_documents([found.draft], "yaml").splitlines()))


@app.command()
def accept(
    context: typer.Context,
    id: Id,
    active: Annotated[bool, typer.Option("--active", help="Let it act at once instead of in shadow first.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create the rule. It runs in shadow until `postroom shadow end --rule NAME`, unless --active is given."""
    accepted = call(context, settings_for(data_dir), proposals.accept, id, operator_signature(), active=active)
    made, name = accepted.proposal, accepted.rule
    row = {"id": made.id, "rule": name, "rule_id": made.rule_id, "mode": "active" if active else "shadow"}
    show_line(row, f"{cell(name)}  " + ("acts now" if active else "decides in shadow now"), as_json=as_json)


@app.command()
def dismiss(
    context: typer.Context,
    id: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept with the record.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Dismiss a proposal; it is not made again."""
    found = call(context, settings_for(data_dir), proposals.dismiss, id, operator_signature(reason))
    show_line({"id": found.id, "state": found.state}, f"{found.id}  dismissed", as_json=as_json)


def _row(view: ProposalView) -> dict[str, Any]:
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
