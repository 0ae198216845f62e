"""`postroom tenant`: those on whose account mail is sent, with their domains and weights."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli.options import Reason
from postroom.interfaces.cli.session import Session, command_group

if TYPE_CHECKING:
    from postroom.operations.outbound.tenants import TenantView

app = command_group("Add tenants, list them, pause and resume them, set their weights.")

COLUMNS = ("id", "name", "domains", "senders", "weight", "state", "state_reason")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the tenant.")]


@app.command()
def add(
    session: Session,
    name: Name,
    domain: Annotated[
        list[str] | None,
        typer.Option("--domain", help="A domain that sends on the tenant's account; repeatable."),
    ] = None,
    weight: Annotated[
        float, typer.Option("--weight", help="The tenant's share against others, from 0.01 to 100.")
    ] = 1.0,
) -> None:
    """Add a tenant. A domain without a tenant is a tenant of its own; this groups several under one."""
    from postroom.operations.outbound.tenants import add_tenant

    _show(session, session.act(add_tenant, name, domain or [], weight))


@app.command("list")
def list_(session: Session) -> None:
    """List the tenants."""
    from postroom.operations.outbound.tenants import list_tenants

    session.show_list(session.call(list_tenants), COLUMNS)


@app.command()
def show(session: Session, name: Name) -> None:
    """Show one tenant."""
    from postroom.operations.outbound.tenants import load_tenant

    session.show_one(session.call(load_tenant, name))


@app.command()
def pause(session: Session, name: Name, reason: Reason = None) -> None:
    """Accept and send nothing for a tenant; mail that waits is kept. Safe to repeat."""
    from postroom.operations.outbound.tenants import pause_tenant

    _show(session, session.because(reason).act(pause_tenant, name))


@app.command()
def resume(session: Session, name: Name) -> None:
    """Accept and send mail of a tenant again. Safe to repeat."""
    from postroom.operations.outbound.tenants import resume_tenant

    _show(session, session.act(resume_tenant, name))


@app.command()
def weight(
    session: Session,
    name: Name,
    value: Annotated[float, typer.Argument(metavar="WEIGHT", help="From 0.01 to 100; 2 sends twice as much as 1.")],
) -> None:
    """Set a tenant's weight: its share while several tenants have mail waiting."""
    from postroom.operations.outbound.tenants import weigh_tenant

    _show(session, session.act(weigh_tenant, name, value))


def _show(session: Session, tenant: "TenantView") -> None:
    session.show_line(tenant, f"{tenant.name}  {tenant.state}, weight {tenant.weight:g}")
