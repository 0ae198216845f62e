"""`postroom pause`: nothing is changed in any mailbox until `postroom resume`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from postroom.cli.accounts_named import account_named
from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import run_transaction

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
    """Stop every change to mailboxes at once. Mail still comes in and is decided on; what is to be done waits."""
    from postroom.store.pauses import ALL
    from postroom.store.pauses import pause as store_pause

    application, settings = application_of(context), settings_for(data_dir)
    scope = ALL if account is None else str(account_named(application, settings, account).id)
    signed = operator_signature(reason)
    set_pause = run_transaction(application, settings, store_pause(scope, reason, signed, datetime.now(UTC)))
    if as_json:
        show_json({"scope": set_pause.scope, "reason": set_pause.reason, "since": set_pause.since})
    else:
        where = "any mailbox" if account is None else f"the mailbox of {account}"
        typer.echo(f"Paused: nothing is changed in {where} until `postroom resume`.")
