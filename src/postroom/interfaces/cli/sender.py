"""`postroom sender`: the users who may submit mail, their passwords, and throttles."""

import sys
from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands

app = command_group("Add the users who may submit mail, list them, throttle and release them.")

add_commands(app, "sender", "outbound.senders")

Username = Annotated[str, typer.Argument(metavar="USERNAME", help="The name that the sender logs in with.")]


@app.command()
def add(
    session: Session,
    username: Username,
    domain: Annotated[
        str | None, typer.Option("--domain", help="The sender's domain; default: that of the username.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="The tenant of a new domain; default: one of the domain's name.")
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(
            "--address",
            help="An address or pattern, such as *@example.com, that may be written in From; repeatable. Default: the "
            "username, or all of the domain.",
        ),
    ] = None,
    plan: Annotated[
        str, typer.Option("--plan", help="standard, free (low priority), or team and enhanced_protection (high).")
    ] = "standard",
    weight: Annotated[float, typer.Option("--weight", help="The share against other senders of the domain.")] = 1.0,
    limit: Annotated[
        int | None, typer.Option("--limit", help="Messages per day; default: `outbound.daily_limit`.")
    ] = None,
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password, or read it from stdin; without one, no login.")
    ] = False,
) -> None:
    """Add a sender. The password is never an argument: it is asked for without echo, or read from stdin."""
    from postroom.operations.outbound.senders import WantedSender, add_sender

    secret = _password() if password else None
    wanted = WantedSender(username, domain, tenant, address or (), plan, weight, limit, secret)
    made = session.act(add_sender, wanted)
    session.show_line(made, f"{made.username}  added to the tenant {made.tenant}, plan {made.plan}")


@app.command()
def password(session: Session, username: Username) -> None:
    """Set a new password, asked for without echo or read from stdin. The former one is no longer accepted."""
    from postroom.operations.outbound.senders import set_password

    session.act(set_password, username, _password())
    session.show_result(username, "password set", key="username")


def _password() -> str:
    """Ask twice at a terminal, without echo; otherwise read the first line of stdin."""
    if sys.stdin.isatty():
        return typer.prompt("Password", hide_input=True, confirmation_prompt="Once more", err=True)
    text = sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    if not text:
        remedy = "run the command at a terminal, or write the password to its stdin"
        raise BadInput("sender", "the password is missing, since stdin is empty", remedy)
    return text
