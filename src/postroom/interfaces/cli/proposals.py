"""`postroom proposals`: rules that Postroom proposes from what you do by hand. You decide."""

from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.core.lifecycle import ProposalState
from postroom.core.rules.documents import write_documents
from postroom.interfaces.cli.output import cell, show_json, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.rules import proposals
from postroom.operations.rules.proposals import ProposalView

app = command_group("List rules that Postroom proposes from what you do by hand; accept or dismiss them.")

COLUMNS = ("id", "account", "name", "then", "why", "count", "state", "created_at")
STATES: tuple[ProposalState | Literal["all"], ...] = ("open", "accepted", "dismissed", "all")
Id = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal, as `postroom proposals list` shows it.")]


@app.command("list")
def list_(
    session: Session,
    state: Annotated[str, typer.Option("--state", help="open, accepted, dismissed or all.")] = "open",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many, newest first.")] = 100,
) -> None:
    """List proposed rules, and how often you did by hand what each would do."""
    if state not in STATES:
        raise BadInput("--state", f"{state!r} is unknown", f"use one of {', '.join(STATES)}")
    wanted = None if state == "all" else state
    found = session.call(proposals.list_proposals, wanted, limit)
    session.show_list([_row(each) for each in found], COLUMNS)


@app.command()
def show(session: Session, id: Id) -> None:
    """Show one proposal: the rule as it would stand in a file, and the evidence for it."""
    found = session.call(proposals.load_proposal, id)
    if session.as_json:
        show_json(found)
        return
    row = _row(found)
    show_one({name: row[name] for name in (*COLUMNS, "messages", "rule_id")})
    typer.echo()
    typer.echo("\n".join(cell(line) for line in write_documents([found.draft], "yaml").splitlines()))


@app.command()
def accept(
    session: Session,
    id: Id,
    active: Annotated[bool, typer.Option("--active", help="Let it act at once instead of in shadow first.")] = False,
) -> None:
    """Create the rule. It runs in shadow until `postroom shadow end --rule NAME`, unless --active is given."""
    accepted = session.act(proposals.accept, id, active=active)
    made, name = accepted.proposal, accepted.rule
    row = {"id": made.id, "rule": name, "rule_id": made.rule_id, "mode": "active" if active else "shadow"}
    session.show_line(row, f"{cell(name)}  " + ("acts now" if active else "decides in shadow now"))


add_commands(app, "proposals", "rules.proposals")


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
