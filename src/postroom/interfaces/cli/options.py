"""Options that several commands share, and the setup that every command begins with."""

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from postroom.settings.reading import Settings

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="FOLDER",
        readable=False,  # one that is not gets a better answer later
        help="The folder for all of Postroom's data (POSTROOM_DATA_DIR); `postroom doctor` names the default.",
    ),
]
Host = Annotated[str | None, typer.Option("--host", help="The address to serve on (`web.host`).")]
Port = Annotated[int | None, typer.Option("--port", help="The port to serve on; 0 picks a free one (`web.port`).")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept with the record.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: one object, or one per line for lists.")]


def settings_for(
    data_dir: Path | None, overrides: Mapping[str, object] | None = None, *, as_json: bool = False
) -> "Settings":
    """Read the settings with this command's options applied, and set up logging."""
    _load_structlog_alone()
    from postroom.settings.reading import load_settings, secrets_of
    from postroom.telemetry.logs import configure_logging

    settings = load_settings({"data_dir": data_dir, **(overrides or {})})
    configure_logging(settings.log, secrets=secrets_of(settings))
    if not as_json and sys.stderr.isatty():
        _advise_moving(data_dir, settings.data_dir)
    return settings


def _advise_moving(named: Path | None, data_dir: Path) -> None:
    from postroom.settings.locations import advise_moving, locations_of_command

    if advice := advise_moving(locations_of_command(named), data_dir, os.environ):
        typer.echo(f"postroom: {advice}", err=True)


def _load_structlog_alone() -> None:
    """Import structlog as if rich were not installed: structlog would load it to draw tracebacks, which Postroom never
    does, and every command would take a third longer to start."""
    if not {"structlog", "rich"} & sys.modules.keys():
        sys.modules["rich"] = cast("Any", None)
        importlib.import_module("structlog")
        del sys.modules["rich"]
