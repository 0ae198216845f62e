"""`postroom restore`: puts a backup in place, where no process runs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.backup_output import shown_progress
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import run_briefly

if TYPE_CHECKING:
    from postroom.backup.archive import Manifest
    from postroom.settings import Settings

app = one_command()


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `postroom backup` has made.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only look whether the backup is whole; change nothing.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Restore over what is there, which is set aside under another name, not deleted."
        ),
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup in place: into an empty data folder or database, while no Postroom process runs on it.

    Everything is checked before anything is changed. Before mail leaves again, sent mail is compared with the restored
    database, and what may have been sent since the backup waits for you (`postroom outbound list --state unknown`).
    """
    settings = settings_for(data_dir)
    if check:
        with shown_progress(as_json) as progress:
            from postroom.backup.archive import ArchiveReader

            reader = ArchiveReader(file, progress)
            reader.close()
        _show_checked(file, reader.manifest, as_json)
        return
    from postroom.backup.restore import Place, restore_backup

    url = settings.database_url.get_secret_value() if settings.database_url is not None else None
    place = Place(settings.data_dir.absolute(), url, replace)
    with shown_progress(as_json) as progress:
        done = run_briefly(restore_backup(file, place, operator_signature(), datetime.now(UTC), progress))
    missing = _missing_keys(done.manifest, settings)
    found = {
        "restored": str(file),
        "created_at": done.manifest.created_at,
        "rows": sum(done.manifest.rows.values()),
        "epoch": done.epoch,
        "set_aside": done.set_aside,
        "keys_restored": done.keys_restored,
        "keys_missing": missing,
    }
    if as_json:
        show_json(found)
        return
    typer.echo(f"restored {found['rows']:,} rows from {done.manifest.created_at.astimezone():%Y-%m-%d %H:%M:%S}")
    for each in done.set_aside:
        typer.echo(f"set aside: {each}")
    if missing:
        typer.echo(
            f"missing: the keys {', '.join(missing)}; put keys.json into {settings.data_dir}, or connect accounts anew"
        )
    typer.echo("start Postroom: it compares sent mail with the restored database before any mail leaves")


def _show_checked(file: Path, manifest: "Manifest", as_json: bool) -> None:
    rows = sum(manifest.rows.values())
    if as_json:
        show_json({"file": str(file), "whole": True, "created_at": manifest.created_at, "rows": rows,
            "database": manifest.dialect, "keys_needed": manifest.keys_needed,
            "keys_included": manifest.keys_included})  # fmt: skip
    else:
        moment = manifest.created_at.astimezone()
        typer.echo(f"{file} is whole: {rows:,} rows of {manifest.dialect} from {moment:%Y-%m-%d %H:%M:%S}")


def _missing_keys(manifest: "Manifest", settings: "Settings") -> list[str]:
    from postroom.google import vault_of

    here = {key.id for key in vault_of(settings).known_keys()}
    return [id for id in manifest.keys_needed if id not in here]
