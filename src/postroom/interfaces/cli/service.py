"""`postroom service`: let systemd start Postroom."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.installation import service
from postroom.operations.installation.service import ServiceManager
from postroom.operations.installation.service_units import USER, ServicePart, ServicePlan, unit_name
from postroom.settings.locations import CONFIG, SERVICE_DATA_DIR

ForUser = Annotated[
    bool, typer.Option("--user", help="A service of your own, with your data folder, instead of one of the machine.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and change nothing.")]
Root = Annotated[
    Path | None,
    typer.Option("--root", metavar="FOLDER", help="Write below this folder, as for an image, and start nothing."),
]

app = command_group("Start Postroom with this machine, as a service of systemd.")


@app.command()
def install(
    session: Session,
    part: Annotated[
        ServicePart, typer.Argument(metavar="PART", help="`serve`, `worker` or `submission`: the command it runs.")
    ] = "serve",
    user: ForUser = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    root: Root = None,
) -> None:
    """Write the unit of a service, start it, and let it start with the machine. Safe to repeat.

    Shows what it will write, and asks. A file that Postroom did not write is never replaced. The machine's service runs
    as the user `postroom` and keeps its data in /var/lib/postroom.
    """
    manager = ServiceManager(user, root, os.environ)
    if session.data_dir is not None and not user:
        problem = f"the machine's service keeps its data in {SERVICE_DATA_DIR}"
        raise BadInput("--data-dir", problem, "leave it out, or give --user")
    if not dry_run:
        manager.check()
    settings = session.settings if user else session.settings_with({"data_dir": SERVICE_DATA_DIR})
    if user and (file := _file_of_this_folder(session.data_dir)):
        problem = f"the settings in {file} are read in this folder only, where no service runs"
        raise BadInput("--user", problem, "run `postroom doctor` here: it says how to move them")
    named = os.environ.get(CONFIG) if user else None
    plan = ServicePlan(
        part,
        service.running_program(),
        settings.data_dir.absolute(),
        settings.jobs.drain_s,
        user,
        None if named is None else Path(named).expanduser().absolute(),
    )
    files = service.planned_files(manager, plan)
    if not session.as_json:
        for each in files:
            typer.echo(f"{each.path}  ({each.state})\n\n{each.text}")
    if not dry_run:
        if not yes:
            _ask(session, "Write these files and start the service?")
        service.install(manager, plan, files)
    row = {"unit": unit_name(part), "files": [{"path": str(each.path), "text": each.text} for each in files]}
    session.show_line(row, "Nothing was written." if dry_run else _what_next(manager, plan))


@app.command()
def uninstall(session: Session, user: ForUser = False, yes: Yes = False, root: Root = None) -> None:
    """Stop the services that `postroom service install` has set up, and remove their files. The data stays."""
    manager = ServiceManager(user, root, os.environ)
    manager.check()
    files = service.installed(manager)
    if not session.as_json:
        typer.echo("\n".join(map(str, files)) or "no service of Postroom is installed")
    if files and not yes:
        _ask(session, "Stop and remove them?")
    service.uninstall(manager, files)
    session.show_line({"removed": [str(each) for each in files]}, "Removed." if files else "Nothing was removed.")


@app.command()
def status(session: Session, user: ForUser = False, root: Root = None) -> None:
    """Show the services that `postroom service install` has set up, and how they do."""
    manager = ServiceManager(user, root, os.environ)
    manager.check()
    rows = [
        {"unit": each.name, "state": service.state_of(manager, each), "file": str(each)}
        for each in service.installed(manager)
        if each.suffix == service.UNIT
    ]
    session.show_list(rows, ("unit", "state", "file"))


def _file_of_this_folder(data_dir: Path | None) -> Path | None:
    """The settings file that is read because the command is run in its folder, if that is so."""
    from postroom.settings.locations import locations_of_command

    locations = locations_of_command(data_dir)
    return locations.file if locations.file in locations.in_cwd else None


def _ask(session: Session, question: str) -> None:
    if session.as_json or not sys.stdin.isatty():
        raise BadInput("--yes", "is missing, and there is no terminal to ask on", "look at the files, and give --yes")
    typer.confirm(question, abort=True)


def _what_next(manager: ServiceManager, plan: ServicePlan) -> str:
    """Return the next steps, once the service runs."""
    if manager.root is not None:
        return "Written. Nothing was started."
    if plan.for_user:
        return "Started. To keep it running while you are signed out: `loginctl enable-linger`."
    command = f"sudo -u {USER} {plan.program}"
    return f"Started. To sign in: `{command} person add NAME --role admin --data-dir {SERVICE_DATA_DIR}` prints a link."
