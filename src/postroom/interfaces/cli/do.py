"""`postroom do`: actions of your own on mail."""

from typing import Annotated

import typer

from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.session import Session, one_command

app = one_command()

STILL_QUEUED = "It has not been done yet. Actions are carried out by `postroom serve`: is it running?"


@app.command()
def do(
    session: Session,
    actions: Annotated[
        list[str],
        typer.Argument(
            metavar="ACTION",
            help='Such as archive, "apply_label Receipts", mark_read, "snooze 3d". Up to ten, done in this order.',
        ),
    ],
    message: Annotated[
        list[str],
        typer.Option("--message", metavar="ID", help="The message, by its short id or any other; repeatable."),
    ],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done, up to 30 s.")] = True,
    yes: Yes = False,
) -> None:
    """Do something with mail yourself: archive it, label it, snooze it. It can be undone like everything else.

    Several actions are one: done together, and taken back together. What cannot be undone is asked about first.
    """
    from postroom.operations.mail import mail_actions
    from postroom.settings.safety import policy_of

    steps = mail_actions.read_actions(actions)
    if not yes and mail_actions.cannot_be_undone(steps):
        many = f" {len(message)} messages" if len(message) > 1 else ""
        typer.confirm(f"{mail_actions.in_words(steps).capitalize()}{many}: that cannot be undone. Do this?", abort=True)
    policy, late = policy_of(session.settings), False
    for name in message:
        outcome = session.act(mail_actions.request_action, name, steps, policy)
        if wait:
            outcome = session.call(mail_actions.wait_for_outcome, outcome)
            late = late or outcome.state in ("queued", "executing")
        session.show_line(outcome, f"{cell(name)}  {cell(outcome.what)}")
        if outcome.undo_id is not None and not session.as_json:
            typer.echo(f"To take it back: {session.command_line(f'undo {outcome.undo_id}')}")
        if outcome.state in ("failed", "canceled", "rejected", "expired"):
            raise typer.Exit(1)
    if late:
        typer.echo(STILL_QUEUED, err=True)
