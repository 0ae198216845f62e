"""`postroom uninstall`: what there is of Postroom on this machine, and how each part goes away."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.errors import BadInput, DatabaseInUse
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.running import run_briefly
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument

if TYPE_CHECKING:
    from postroom.settings.reading import Settings

app = one_command()
LABELS = "Your mailboxes stay as they are. Labels that Postroom has set remain; delete them there if you like."


@app.command()
def uninstall(
    session: Session,
    disconnect: Annotated[
        bool, Argument("Remove all accounts: revoke consents where that is possible, and wipe the secrets.")
    ] = False,
    delete_data: Annotated[
        bool, Argument("Delete the data folder's content: stored mail, rules, history, keys. Asks for its name.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Say what there is of Postroom on this machine, and how to remove it. Nothing is removed without an option.

    Deletes only what Postroom itself keeps in its data folder, follows no symbolic link, and leaves the settings, your
    backups and your mailboxes alone.
    """
    from postroom.operations.installation import removal

    settings = session.settings
    if not disconnect and not delete_data:
        _show_parts(session, settings)
        return
    folder = settings.data_dir.absolute()
    if delete_data:
        _check_deletable(settings, folder)
    if not yes:
        _ask(session, folder.name if delete_data else "yes")
        if delete_data:  # it may have been started while the question waited
            _check_deletable(settings, folder)
    removed = _remove_accounts(session) if disconnect else []
    left = removal.delete_data(folder) if delete_data else []
    lines = [*removed, *(f"left: {each}" for each in left), LABELS]
    row = {"disconnected": removed, "deleted": str(folder) if delete_data else None, "left": list(map(str, left))}
    if delete_data:
        lines.insert(len(removed), f"deleted the data in {folder}")
    session.show_line(row, "\n".join(lines))


def _show_parts(session: Session, settings: "Settings") -> None:
    from postroom.operations.accounts.accounts import list_accounts
    from postroom.operations.installation import removal
    from postroom.operations.installation.database import is_created
    from postroom.operations.installation.installed import uninstall_command
    from postroom.settings.locations import locations_of_command

    accounts = session.call(list_accounts) if is_created(settings) else []
    emails = [each.email for each in accounts if each.state != "removed"]
    file, services = locations_of_command(session.data_dir).file, removal.services()
    row = {
        "data": str(settings.data_dir),
        "postgresql": settings.database_url is not None,
        "settings": None if file is None else str(file),
        "services": [str(each) for files in services.values() for each in files],
        "accounts": emails,
        "program": uninstall_command(),
    }
    command = session.command_line
    steps = [
        *((f"stop the service: {command(words)}", ", ".join(map(str, files))) for words, files in services.items()),
        (f"keep a copy: {command('backup --with-keys FILE')}", ""),
        *([(f"disconnect the mailboxes: {command('uninstall --disconnect')}", ", ".join(emails))] if emails else []),
        (f"delete the data: {command('uninstall --delete-data')}", str(settings.data_dir)),
        *([("delete the database: DROP SCHEMA postroom, switchboard CASCADE", "")] if settings.database_url else []),
        *([] if file is None else [(f"delete the settings: rm {shlex.quote(str(file))}", "")]),
        (f"remove the program: {uninstall_command()}", ""),
    ]
    lines = [f"{number}. {step}{about and f'  ({about})'}" for number, (step, about) in enumerate(steps, 1)]
    session.show_line(row, "\n".join(["Stop Postroom, then, as far as you like:", *lines, LABELS]))


def _check_deletable(settings: "Settings", folder: Path) -> None:
    from postroom.operations.installation.upgrades import in_use_by
    from postroom.system.private_files import holds_data

    if folder.is_symlink():
        raise BadInput("--data-dir", f"{folder} is a symbolic link", "name the folder that it leads to")
    if not holds_data(folder):
        raise BadInput("--data-dir", f"{folder} holds no data of Postroom", "look for it with `postroom doctor`")
    if (who := run_briefly(in_use_by(settings))) is not None:
        raise DatabaseInUse(f"the data is in use {who}; stop Postroom first")


def _ask(session: Session, wanted: str) -> None:
    if session.as_json or not sys.stdin.isatty():
        raise BadInput("--yes", "is missing, and there is no terminal to ask on", "give it if you are sure")
    if typer.prompt(f"This cannot be undone. Type {wanted} to go on", err=True) != wanted:
        raise typer.Abort


def _remove_accounts(session: Session) -> list[str]:
    """Remove all accounts; return what became of each."""
    from postroom.operations.accounts.accounts import list_accounts
    from postroom.operations.accounts.connecting import remove_account, what_remains

    removed: list[str] = []
    for each in session.call(list_accounts):
        if each.state != "removed":
            done = session.ask(remove_account, account=str(each.id))
            removed += [f"disconnected {each.email}", *what_remains(done)]
    return removed
