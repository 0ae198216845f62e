"""`postroom suppression`: addresses that get no more mail of a tenant."""

from typing import Annotated

import typer

from postroom.interfaces.cli.options import Limit, Reason
from postroom.interfaces.cli.session import Session, command_group

app = command_group("List addresses that get no more mail; add or remove some.")

COLUMNS = ("tenant", "address", "cause", "detail", "created_at", "expires_at")
STRIKE_COLUMNS = ("tenant", "address", "days", "last_at", "last_reply")

Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant whose mail is concerned.")]
Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="The address, such as ada@example.com.")]


@app.command("list")
def list_(
    session: Session,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only those of this tenant.")] = None,
    limit: Limit = 50,
) -> None:
    """List suppressed addresses, newest first."""
    from postroom.operations.outbound.suppressions import list_suppressions

    session.show_list(session.call(list_suppressions, tenant, limit), COLUMNS)


@app.command()
def strikes(
    session: Session,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only those of this tenant.")] = None,
    limit: Limit = 50,
) -> None:
    """List addresses that were refused without a reason, and on how many days. They still get mail."""
    from postroom.operations.outbound.suppressions import list_strikes

    rule = session.settings.outbound.strike_rule
    session.show_list(session.call(list_strikes, tenant, limit, rule), STRIKE_COLUMNS)


@app.command()
def add(session: Session, tenant: Tenant, address: Address, reason: Reason = None) -> None:
    """Send nothing of a tenant to this address. Safe to repeat."""
    from postroom.operations.outbound.suppressions import suppress

    session.because(reason).act(suppress, tenant, address)
    session.show_result(address, "suppressed")


@app.command()
def remove(session: Session, tenant: Tenant, address: Address) -> None:
    """Let mail of a tenant go to this address again, and forget its strikes."""
    from postroom.operations.outbound.suppressions import unsuppress

    session.act(unsuppress, tenant, address)
    session.show_result(address, "not suppressed any more")
