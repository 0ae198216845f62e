"""`postroom protect`: senders, domains and labels whose mail no rule, model or agent ever changes."""

from typing import Annotated, Literal

import typer

from postroom.interfaces.cli.session import Session, command_group

app = command_group("Protect senders, domains and labels: their mail is never changed.")

COLUMNS = ("kind", "value", "reason", "created_at")
ProtectedKind = Annotated[
    Literal["sender", "domain", "label"], typer.Argument(metavar="KIND", help="sender, domain or label.")
]
Value = Annotated[str, typer.Argument(metavar="VALUE", help="An address, a domain, or a label's name.")]


@app.command("list")
def list_(session: Session) -> None:
    """List what is protected."""
    from postroom.operations.actions.protection import list_protected

    session.show_list(session.call(list_protected), COLUMNS)


@app.command()
def add(
    session: Session,
    kind: ProtectedKind,
    value: Value,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the record.")] = "",
) -> None:
    """Never change mail from this sender or domain, or with this label. Once this command returns, no process does."""
    from postroom.operations.actions.protection import protect

    kept = session.because(reason or None).act(protect, kind, value, reason)
    _show(kind, kept, "protected", session)


@app.command()
def remove(session: Session, kind: ProtectedKind, value: Value) -> None:
    """Remove a protection."""
    from postroom.operations.actions.protection import unprotect

    session.act(unprotect, kind, value)
    _show(kind, value, "not protected any more", session)


def _show(kind: str, value: str, result: str, session: Session) -> None:
    session.show_line({"kind": kind, "value": value, "result": result}, f"{kind} {value}  {result}")
