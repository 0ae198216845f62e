"""`postroom serve`: the whole program in one process."""

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, Host, Port, announce, one_command, settings_for
from postroom.cli.running import run_until_stopped

app = one_command()


@app.command()
def serve(
    context: typer.Context, host: Host = None, port: Port = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Run Postroom: pages, mailbox and worker in one process. Ctrl-C stops it cleanly."""
    settings = settings_for(data_dir, {"web.host": host, "web.port": port})
    run_until_stopped(application_of(context).serve(settings, ready=announce("Postroom is at", as_json)))
