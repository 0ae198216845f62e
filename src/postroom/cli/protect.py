"""`postroom protect`: senders, domains and labels whose mail no rule, model or agent ever touches."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list
from postroom.cli.running import run_transaction, with_database
from postroom.core.errors import NotFound

app = command_group("Protect senders, domains and labels: mail of theirs is never touched.")

COLUMNS = ("kind", "value", "reason", "created_at")
ProtectedKind = Annotated[
    Literal["sender", "domain", "label"], typer.Argument(metavar="KIND", help="sender, domain or label.")
]
Value = Annotated[str, typer.Argument(metavar="VALUE", help="An address, a domain, or a label's name.")]


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List what is protected."""
    from postroom.store.protection import list_protected

    rows = run_transaction(application_of(context), settings_for(data_dir), list_protected())
    show_list([asdict(row) for row in rows], COLUMNS, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    kind: ProtectedKind,
    value: Value,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever wonders later.")] = "",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Never touch mail of this sender or domain, or with this label. Once this answers, no process does."""
    from postroom.manage.pausing import forbid
    from postroom.store.protection import protect

    transaction = protect(kind, value, reason, operator_signature(reason or None), datetime.now(UTC))
    kept = with_database(
        application_of(context), settings_for(data_dir), lambda database: forbid(database, transaction)
    )
    _confirm(kind, kept, "protected", as_json)


@app.command()
def remove(
    context: typer.Context, kind: ProtectedKind, value: Value, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Protect it no longer."""
    from postroom.store.protection import unprotect

    transaction = unprotect(kind, value, operator_signature(), datetime.now(UTC))
    if not run_transaction(application_of(context), settings_for(data_dir), transaction):
        raise NotFound(f"the {kind} {value!r} is not protected; `postroom protect list` shows what is")
    _confirm(kind, value, "not protected any more", as_json)


def _confirm(kind: str, value: str, result: str, as_json: bool) -> None:
    show_json({"kind": kind, "value": value, "result": result}) if as_json else typer.echo(f"{kind} {value}  {result}")
