"""`postroom pause`: nothing is changed in any mailbox until `postroom resume`."""

from typing import Annotated

import typer

from postroom.cli.accounts_named import account_named
from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import with_database

app = one_command()

Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="Only in the mailbox of this account; else in all.")
]


@app.command()
def pause(
    context: typer.Context,
    reason: Annotated[str, typer.Option("--reason", help="Why; shown wherever something waits.")] = "by the user",
    account: Account = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Stop every change to mailboxes. Once this answers, nothing more is changed or sent by any process; it tells how
    many requests were on their way. Mail still comes in and is decided on; what is to be done waits."""
    from postroom.manage.pausing import stop
    from postroom.store.pauses import ALL

    application, settings = application_of(context), settings_for(data_dir)
    scope = ALL if account is None else str(account_named(application, settings, account).id)
    signed = operator_signature(reason)
    stopped = with_database(application, settings, lambda database: stop(database, scope, reason, signed))
    set_pause = stopped.pause
    if as_json:
        show_json(
            {
                "scope": set_pause.scope,
                "reason": set_pause.reason,
                "since": set_pause.since,
                "on_wire": stopped.on_wire,
                "silent_processes": stopped.silent,
            }
        )
    else:
        where = "any mailbox" if account is None else f"the mailbox of {account}"
        typer.echo(f"Paused: nothing is changed in {where} until `postroom resume`; {stopped.told()}.")
