"""`postroom sender`: the users who may submit mail, their passwords, and throttles."""

from dataclasses import replace
from typing import Annotated

from postroom.interfaces.cli.parameters import Without
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.interfaces.cli.typed_secrets import typed_secret
from postroom.operations.operation import Argument
from postroom.operations.outbound.senders import Username, WantedSender, add_sender, set_password

app = command_group("Add the users who may submit mail, list them, throttle and release them.")
add_commands(app, "sender", "outbound.senders")


@app.command()
def add(
    session: Session,
    wanted: Annotated[WantedSender, Without("password")],
    password: Annotated[bool, Argument("Ask for a password, or read it from stdin; without one, no login.")] = False,
) -> None:
    """Add a sender. The password is never an argument: it is asked for without echo, or read from stdin."""
    made = session.act(add_sender, replace(wanted, password=_password()) if password else wanted)
    session.show_line(made, f"{made.username}  added to the tenant {made.tenant}, plan {made.plan}")


@app.command()
def password(session: Session, username: Username) -> None:
    """Set a new password, asked for without echo or read from stdin. The former one is no longer accepted."""
    session.act(set_password, username, _password())
    session.show_result(username, "password set", key="username")


def _password() -> str:
    return typed_secret("Password", once_more="Once more")
