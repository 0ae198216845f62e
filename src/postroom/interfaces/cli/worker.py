"""`postroom worker`: run jobs only."""

from typing import Annotated

import typer

from postroom.interfaces.cli.options import DataDir, settings_for
from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import application_of, one_command

app = one_command()


@app.command()
def worker(
    context: typer.Context,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Jobs to run at the same time (`worker.concurrency`).")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run jobs only, beside other processes on the same PostgreSQL. Ctrl-C lets running jobs finish first."""
    settings = settings_for(data_dir, {"worker.concurrency": concurrency})
    run_until_stopped(application_of(context).worker(settings, concurrency=settings.worker.concurrency))
