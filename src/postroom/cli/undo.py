"""`postroom undo`: takes back one action, or everything that a rule, a batch or a time did."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.cli.accounts_named import account_named
from postroom.cli.application import application_of
from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import run_transaction, with_database
from postroom.core.errors import BadInput, NotFound

if TYPE_CHECKING:
    from postroom.cli.application import Application
    from postroom.settings.reading import Settings
    from postroom.store.audit import AuditEntry
    from postroom.store.undos import Undoable

app = one_command()


@app.command()
def undo(
    context: typer.Context,
    action: Annotated[
        UUID | None, typer.Argument(metavar="ACTION", help="One action, as `postroom actions list` shows it.")
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="Everything that the rule of this name did.")] = None,
    batch: Annotated[UUID | None, typer.Option("--batch", help="Everything of this batch.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Everything done since: a span such as 7d, or a time with its offset.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="And up to then; else up to now.")] = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="ADDRESS", help="Only in the mailbox of this account.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell how much it would be.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Undo: exactly what was changed is put back, and what you changed yourself meanwhile stays."""
    chosen_by = [action, rule, batch, since]
    if sum(each is not None for each in chosen_by) == 0:
        raise BadInput("ACTION", "is missing", "name an action, or give --rule, --batch or --since")
    if action is not None and any(each is not None for each in (rule, batch, since, until)):
        raise BadInput("ACTION", "stands beside --rule, --batch, --since or --until", "give one or the other")
    application, settings = application_of(context), settings_for(data_dir)
    chosen = (
        [_one(application, settings, action)]
        if action is not None
        else _many(application, settings, rule, batch, since, until, account)
    )
    messages = len({(each.account_id, each.message_id) for each in chosen})
    if not dry_run and chosen:
        given = {"rule": rule, "batch": batch, "since": since, "until": until, "account": account}
        selection = {name: str(value) for name, value in given.items() if value is not None}
        entry = _entry(action, {**selection, "actions": len(chosen), "messages": messages})
        _enqueue(application, settings, chosen, entry)
    if as_json:
        show_json({"actions": len(chosen), "messages": messages, "dry_run": dry_run})
    else:
        would = "would be" if dry_run else "are being"
        typer.echo(f"{len(chosen)} actions on {messages} messages {would} undone.")


def _one(application: "Application", settings: "Settings", id: UUID) -> "Undoable":
    from postroom.core.actions.undo import why_not_undoable
    from postroom.store.undos import Undoable, undo_candidate

    found = run_transaction(application, settings, undo_candidate(id))
    if found is None:
        raise NotFound(f"there is no action {id}; `postroom actions list` shows those there are")
    reason = why_not_undoable(found.action_type, found.state, found.hint)
    if found.undone in ("queued", "executing"):
        reason = "it is being undone"
    elif found.undone == "completed":
        reason = "it is undone already"
    if reason is not None:
        raise BadInput("ACTION", f"cannot be undone: {reason}", "`postroom actions list` shows what can")
    return Undoable(id, found.account_id, found.message_id)


def _many(
    application: "Application",
    settings: "Settings",
    rule: str | None,
    batch: UUID | None,
    since: str | None,
    until: str | None,
    account: str | None,
) -> "list[Undoable]":
    from postroom.act.undo_many import MOST
    from postroom.store.actions import FAR_AHEAD
    from postroom.store.undos import LONG_AGO, undoable

    now = datetime.now(UTC)
    if rule is not None:
        _check_rule(application, settings, rule)
    transaction = undoable(
        MOST,
        rule_name=rule,
        account_id=None if account is None else account_named(application, settings, account).id,
        batch_id=batch,
        since=LONG_AGO if since is None else read_moment("--since", since, now, ahead=False),
        until=FAR_AHEAD if until is None else read_moment("--until", until, now, ahead=False),
    )
    return run_transaction(application, settings, transaction)


def _check_rule(application: "Application", settings: "Settings", name: str) -> None:
    """A rule that was removed has left its name with what it decided."""
    from postroom.store.rules import list_rules
    from postroom.store.undos import has_decided

    if any(found.name == name for found in run_transaction(application, settings, list_rules())):
        return
    if not run_transaction(application, settings, has_decided(name)):
        raise NotFound(f"there is no rule {name!r}, and none has decided; `postroom rules list` shows those there are")


def _entry(action: UUID | None, wish: dict[str, object]) -> "AuditEntry":
    signed = operator_signature()
    if action is not None:
        return signed.under("action.undo", "action", str(action))
    return signed.under("actions.undo", "selection", str(signed.entry_id), after=wish)


def _enqueue(application: "Application", settings: "Settings", chosen: "list[Undoable]", entry: "AuditEntry") -> None:
    from postroom.act.undo_many import undo_these
    from postroom.core.jobs.types import CATALOGUE
    from postroom.store.engine.clock import wall_clock

    with_database(
        application, settings, lambda database: undo_these(database, CATALOGUE, chosen, wall_clock, entry=entry)
    )
