"""`postroom do`: actions of your own on mail."""

from collections.abc import Sequence
from typing import Annotated

import typer

from postroom.core.counted import counted
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.mail.mail import act_on_message
from postroom.operations.mail.mail_actions import cannot_be_undone, in_words, read_actions, wait_for_outcome
from postroom.operations.operation import Argument

app = one_command()

STILL_QUEUED = "It has not been done yet. Actions are carried out by `postroom serve`: is it running?"


@app.command()
def do(
    session: Session,
    actions: Annotated[
        Sequence[str],
        Argument(
            'Such as archive, "apply_label Receipts", mark_read, "snooze 3d". Up to ten, done in this order.',
            typed_as="ACTION",
        ),
    ],
    message: Annotated[
        Sequence[str],
        Argument("The message, by its short id or any other; repeatable.", typed_as="--message ID"),
    ],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done, up to 30 s.")] = True,
    yes: Yes = False,
) -> None:
    """Do something with mail yourself: archive it, label it, snooze it. It can be undone like everything else.

    Several actions are one: done together, and taken back together. What cannot be undone is asked about first.
    """
    steps, late = read_actions(actions), False
    if not yes and cannot_be_undone(steps):
        many = f" {counted(len(message), 'message')}" if len(message) > 1 else ""
        typer.confirm(f"{in_words(steps).capitalize()}{many}: that cannot be undone. Do this?", abort=True)
    for name in message:
        outcome = session.ask(act_on_message, message=name, actions=actions)
        if wait:
            outcome = session.call(wait_for_outcome, outcome)
            late = late or outcome.state in ("queued", "executing")
        session.show_line(outcome, f"{cell(name)}  {cell(outcome.what)}")
        if outcome.undo_id is not None and not session.as_json:
            typer.echo(f"To take it back: {session.command_line(f'undo {outcome.undo_id}')}")
        if outcome.state in ("failed", "canceled", "rejected", "expired"):
            raise typer.Exit(1)
    if late:
        typer.echo(STILL_QUEUED, err=True)
