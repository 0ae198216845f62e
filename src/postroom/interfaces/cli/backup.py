"""`postroom backup`: everything in one file, while Postroom runs."""

from pathlib import Path
from typing import Annotated

import typer

from postroom.interfaces.cli.backup_output import keys_line, manifest_row
from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.running import run_briefly
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument

app = one_command()


@app.command()
def backup(
    session: Session,
    file: Annotated[Path, Argument("The file to write; it must not exist yet.", typed_as="FILE")],
    with_keys: Annotated[
        bool, Argument("Include the key file. Anyone who has the backup can then decrypt the accounts' secrets.")
    ] = False,
) -> None:
    """Back up the database and the connectors' state into one file, while Postroom runs.

    The copy is a consistent snapshot and is verified. The output names the keys that decrypt the accounts' secrets;
    they are included only on request. Settings are not included.
    """
    from postroom.operations.accounts.keys import keys_in_use
    from postroom.operations.installation.backups import back_up
    from postroom.operations.installation.database import is_created

    settings = session.settings
    needed = session.call(keys_in_use) if is_created(settings) else []
    with progress(session.as_json) as report:
        made = run_briefly(back_up(settings, file.absolute(), needed, with_keys, report))
    size = file.stat().st_size
    if session.as_json:
        show_json(manifest_row(file, made, bytes=size))
        return
    typer.echo(f"{file}  {size:,} bytes, {sum(made.rows.values()):,} rows of {made.dialect}, verified")
    typer.echo(keys_line(made, settings.data_dir))
