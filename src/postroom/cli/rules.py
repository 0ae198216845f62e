"""`postroom rules`: the deterministic rules, in the order in which they are tried."""

from dataclasses import asdict

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_list
from postroom.cli.running import run_transaction

app = command_group("Look at the rules.")

COLUMNS = ("id", "name", "scope", "priority", "enabled", "action", "disabled_reason")


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the deterministic rules in the order in which they are tried: the first that matches decides."""
    from postroom.store.rules import list_rules

    found = run_transaction(application_of(context), settings_for(data_dir), list_rules())
    show_list([asdict(rule) for rule in found], COLUMNS, as_json=as_json)
