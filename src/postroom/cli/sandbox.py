"""`postroom sandbox`: the Gmail emulator alone."""

from typing import Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, announce, one_command, settings_for
from postroom.cli.running import run_until_stopped

app = one_command()


@app.command()
def sandbox(
    context: typer.Context,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")] = 8026,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the sample mailbox.")] = 2026,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Run the Gmail emulator alone, on a sample mailbox. Point `gmail.base_url` at the address it prints.

    It answers to the access token in `gmail.token`.
    """
    settings = settings_for(data_dir)
    ready = announce("The sandbox mailbox is at", as_json)
    run_until_stopped(application_of(context).sandbox(settings, port=port, seed=seed, ready=ready))
