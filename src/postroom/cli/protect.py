"""`postroom protect`: senders, domains and labels whose mail no rule, model or agent ever changes."""

from typing import Annotated, Literal

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_line, show_list
from postroom.cli.running import call

app = command_group("Protect senders, domains and labels: their mail is never changed.")

COLUMNS = ("kind", "value", "reason", "created_at")
ProtectedKind = Annotated[
    Literal["sender", "domain", "label"], typer.Argument(metavar="KIND", help="sender, domain or label.")
]
Value = Annotated[str, typer.Argument(metavar="VALUE", help="An address, a domain, or a label's name.")]


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List what is protected."""
    from postroom.manage.protection import list_protected

    show_list(call(context, settings_for(data_dir), list_protected), COLUMNS, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    kind: ProtectedKind,
    value: Value,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the record.")] = "",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Never change mail from this sender or domain, or with this label. Once this command returns, no process does."""
    from postroom.manage.protection import protect

    signed = operator_signature(reason or None)
    kept = call(context, settings_for(data_dir), protect, kind, value, reason, signed)
    _show(kind, kept, "protected", as_json)


@app.command()
def remove(
    context: typer.Context, kind: ProtectedKind, value: Value, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Remove a protection."""
    from postroom.manage.protection import unprotect

    call(context, settings_for(data_dir), unprotect, kind, value, operator_signature())
    _show(kind, value, "not protected any more", as_json)


def _show(kind: str, value: str, result: str, as_json: bool) -> None:
    show_line({"kind": kind, "value": value, "result": result}, f"{kind} {value}  {result}", as_json=as_json)
