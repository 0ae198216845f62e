"""`postroom resume`: ends what `postroom pause` began."""

from datetime import UTC, datetime

import typer

from postroom.cli.accounts_named import account_named
from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.pause import Account
from postroom.cli.running import run_transaction

app = one_command()


@app.command()
def resume(context: typer.Context, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Let changes to mailboxes go on; what has waited is done now."""
    from postroom.store.pauses import ALL
    from postroom.store.pauses import resume as store_resume

    application, settings = application_of(context), settings_for(data_dir)
    scope = ALL if account is None else str(account_named(application, settings, account).id)
    released = run_transaction(application, settings, store_resume(scope, operator_signature(), datetime.now(UTC)))
    if as_json:
        show_json({"was_paused": released is not None, "jobs_released": released or 0})
    elif released is None:
        typer.echo("Nothing was paused.")
    else:
        typer.echo(f"Resumed; {released} jobs that waited go on.")
