"""`postroom demo`: the whole program on a sandbox mailbox."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli.options import Port
from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import Session, command_line, one_command
from postroom.words.demo import THINGS

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.compose.application import Ready

app = one_command()

LOOK_AROUND = (
    ("mail list", "mail, and what was done with it"),
    ("rules list", "the sample rules"),
    ("actions list", "everything that was done; `undo` takes it back"),
    ("model status", "the model, here a stand-in"),
)


@app.command()
def demo(
    session: Session,
    port: Port = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of earlier demos first.")] = False,
) -> None:
    """Try Postroom on a sandbox mailbox in which mail keeps arriving. No account and no network are needed.

    The mailbox and all data are kept in a folder of their own, and the next demo uses them again.
    """
    from postroom.operations.installation.demo import demo_folder

    ready = _announcement(session, demo_folder(session.settings.data_dir))
    run_until_stopped(
        session.application.demo(
            session.settings, port=port, fresh=fresh, ready=ready, invite=session.invite, presses=session.presses
        )
    )


def _announcement(session: Session, folder: "Path") -> "Ready":
    announce, is_known = session.announce("Postroom is at"), False

    def ready(address: str) -> None:
        nonlocal is_known
        announce(address)
        if session.as_json or is_known:
            return
        is_known = True
        typer.echo(f"\n{len(THINGS)} things to try there:")
        for number, each in enumerate(THINGS, 1):
            typer.echo(f"  {number}. {each.title}")
        commands = [(command_line(words, folder), says) for words, says in LOOK_AROUND]
        typer.echo("\nLook around from another terminal:")
        for line, says in commands:
            typer.echo(f"  {line}\n      {says}")
        typer.echo(f"\nIts data stays in {folder} for the next demo. To start over:")
        typer.echo(f"  {command_line('demo --fresh', session.data_dir)}")

    return ready
