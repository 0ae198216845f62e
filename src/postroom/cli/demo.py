"""`postroom demo`: the whole program on a sandbox mailbox."""

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, Port, announce, one_command, settings_for
from postroom.cli.running import run_until_stopped

app = one_command()


@app.command()
def demo(context: typer.Context, port: Port = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Try Postroom on a sandbox mailbox in which mail keeps arriving. No account and no network are needed."""
    settings = settings_for(data_dir)
    run_until_stopped(application_of(context).demo(settings, port=port, ready=announce("Postroom is at", as_json)))
