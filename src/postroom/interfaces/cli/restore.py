"""`postroom restore`: restore a backup while no process runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli.backup_output import manifest_row
from postroom.interfaces.cli.operator import operator_signature
from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.running import run_briefly
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument
from postroom.words.backups import RESTORED, TO_LOOK_AT

if TYPE_CHECKING:
    from postroom.backup.archive import Manifest
    from postroom.backup.restore import Restored

app = one_command()


@app.command()
def restore(
    session: Session,
    file: Annotated[Path, Argument("A file written by `postroom backup`.", typed_as="FILE")],
    check: Annotated[bool, Argument("Only verify the backup; change nothing.")] = False,
    replace: Annotated[
        bool, Argument("Restore over existing data, which is kept under another name, not deleted.")
    ] = False,
) -> None:
    """Restore a backup into an empty data folder or database, while no Postroom process runs on it.

    Everything is checked before anything is changed. The restored database is paused until `postroom resume`, and
    keeps what the replaced one forbade. Before mail leaves again, it is compared with the sent mail, and anything that
    may have been sent since the backup waits for you (`postroom outbound list --state unknown`).
    """
    from postroom.operations.installation import backups
    from postroom.operations.installation.vault import vault_of

    settings = session.settings
    if check:
        with progress(session.as_json) as report:
            checked = backups.check(file, report)
        _show_checked(session, file, checked)
        return
    with progress(session.as_json) as report:
        done = run_briefly(backups.restore(settings, file, replace, operator_signature(), report))
    missing = backups.missing_keys(done.manifest, vault_of(settings))
    found = {
        "restored": str(file),
        "created_at": done.manifest.created_at,
        "rows": sum(done.manifest.rows.values()),
        "epoch": done.epoch,
        "set_aside": done.set_aside,
        "paused": True,
        "kept_forbidden": None if done.carried is None else done.carried.as_counts(),
        "keys_restored": done.keys_restored,
        "keys_missing": missing,
    }
    if session.as_json:
        show_json(found)
        return
    typer.echo(f"restored {found['rows']:,} rows from {done.manifest.created_at.astimezone():%Y-%m-%d %H:%M:%S}")
    for each in done.set_aside:
        typer.echo(f"set aside: {each}")
    if missing:
        typer.echo(
            f"missing: the keys {', '.join(missing)}; put keys.json into {settings.data_dir}, or connect them again"
        )
    _show_paused(done)


def _show_paused(done: "Restored") -> None:
    if done.carried is not None:
        kept = ", ".join(f"{RESTORED[name]} ({count})" for name, count in done.carried.as_counts().items() if count)
        typer.echo(f"kept from the replaced database, forbidden since the backup: {kept or 'nothing'}")
    elif done.set_aside:
        typer.echo("the replaced database could not be read: what you have forbidden since the backup is unknown")
    typer.echo(
        "paused: start Postroom, which compares sent mail with the restored database and changes nothing. All is "
        "as it was at the time of the backup. Review it, then run `postroom resume`:"
    )
    for command, what in TO_LOOK_AT.items():
        typer.echo(f"  postroom {command:<33} {what}")


def _show_checked(session: Session, file: Path, manifest: "Manifest") -> None:
    moment, rows = manifest.created_at.astimezone(), sum(manifest.rows.values())
    line = f"{file} is intact: {rows:,} rows of {manifest.dialect} from {moment:%Y-%m-%d %H:%M:%S}"
    session.show_line(manifest_row(file, manifest, whole=True), line)
