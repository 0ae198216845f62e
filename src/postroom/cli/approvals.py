"""`postroom approvals`: what waits for your yes, and your answers."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one
from postroom.cli.running import run_transaction, with_database
from postroom.core.errors import IllegalMove

if TYPE_CHECKING:
    from postroom.cli.application import Application
    from postroom.settings.reading import Settings
    from postroom.store.approvals import AnsweredApproval, Approval

app = command_group("Look at what waits for your approval, and approve or reject it.")

COLUMNS = ("id", "what", "to_whom", "sender", "subject", "decided_by", "why", "expires_at")

Id = Annotated[UUID, typer.Argument(metavar="ID", help="The id of the action, as `postroom approvals list` shows it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List what waits for your approval; what expires first stands first."""
    from postroom.store.approvals import list_waiting

    found = run_transaction(application_of(context), settings_for(data_dir), list_waiting(limit))
    show_list([_row(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one action in full: exactly what would be done, to whom it goes, and why."""
    shown = _shown(application_of(context), settings_for(data_dir), id)
    show_json(_row(shown)) if as_json else show_one(_whole(shown))


@app.command()
def approve(
    context: typer.Context, id: Id, yes: Yes = False, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Approve an action: it is shown, and done when you confirm. What is not as it was shown is not done."""
    application, settings = application_of(context), settings_for(data_dir)
    shown = _shown(application, settings, id)
    if not yes and shown.is_waiting:
        show_one(_whole(shown))
        typer.confirm("Do this?", abort=True)
    _tell(id, _answer(application, settings, shown), as_json)


@app.command()
def reject(
    context: typer.Context,
    id: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for whoever wonders later.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Reject an action: it is not done."""
    from postroom.store.approvals import reject_action
    from postroom.store.engine.clock import wall_clock

    transaction = reject_action(id, operator_signature(reason), wall_clock())
    _tell(id, run_transaction(application_of(context), settings_for(data_dir), transaction), as_json)


def _shown(application: "Application", settings: "Settings", id: UUID) -> "Approval":
    from postroom.store.approvals import show_approval

    return run_transaction(application, settings, show_approval(id))


def _answer(application: "Application", settings: "Settings", shown: "Approval") -> "AnsweredApproval":
    from postroom.act.approvals import Approvals
    from postroom.core.jobs.types import CATALOGUE
    from postroom.store.engine.clock import wall_clock

    signed = operator_signature()
    return with_database(
        application,
        settings,
        lambda database: Approvals(database, CATALOGUE, wall_clock).approve(shown.id, shown.action_hash, signed),
    )


def _tell(id: UUID, answered: "AnsweredApproval", as_json: bool) -> None:
    """An answer that could not count any more is a failure of the command, though it has ended the action."""
    from postroom.act.approvals import in_words

    if answered.state not in ("queued", "rejected"):
        raise IllegalMove(f"action {id}: {in_words(answered)}")
    if as_json:
        show_json({"id": id, "state": answered.state})
    else:
        typer.echo(f"{id}  {in_words(answered)}")


def _row(approval: "Approval") -> dict[str, Any]:
    from postroom.act.approval_notice import notice_of

    return {**asdict(approval), **asdict(notice_of(approval))}


def _whole(approval: "Approval") -> dict[str, Any]:
    """All that an approval is about, with nothing cut: it is shown so that it can be answered."""
    row = _row(approval)
    names = ("id", "account", "what", "to_whom", "sender", "subject", "parameters", "decided_by", "why", "state")
    return {name: row[name] for name in (*names, "expires_at", "answer", "action_hash")}
