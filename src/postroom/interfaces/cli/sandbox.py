"""`postroom sandbox`: the Gmail emulator alone."""

from pathlib import Path
from typing import Annotated

import typer

from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import Session, one_command

app = one_command()


@app.command()
def sandbox(
    session: Session,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 picks a free one.")] = 8026,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the sample mailbox and of faults.")] = 2026,
    mail: Annotated[
        Path | None,
        typer.Option("--mail", help="Mail of your own instead of the sample: an mbox, a Maildir or a folder of .eml."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="The address of the mailbox's owner.")] = None,
    units_per_minute: Annotated[
        int, typer.Option("--units-per-minute", min=0, help="Google's quota for a user; 0: unlimited.")
    ] = 6000,
    search_lag_s: Annotated[
        float, typer.Option("--search-lag", min=0, help="Seconds until a search finds new mail.")
    ] = 2.0,
) -> None:
    """Run the Gmail emulator alone, on a sample mailbox or on mail of your own.

    Point `gmail.base_url` at the address it prints. It answers to the access token in `gmail.token`.
    """
    work = session.application.sandbox(
        session.settings,
        port=port,
        seed=seed,
        mail=mail,
        user=user,
        units_per_minute=units_per_minute,
        search_lag_s=search_lag_s,
        ready=session.announce("The sandbox mailbox is at"),
        report=lambda text: typer.echo(text, err=True),
    )
    run_until_stopped(work)
