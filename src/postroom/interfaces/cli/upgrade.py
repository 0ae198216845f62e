"""`postroom upgrade`: a backup, the migrations and a check, or what they would be."""

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.counted import counted
from postroom.core.errors import DatabaseInUse
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.running import run_briefly
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument

if TYPE_CHECKING:
    from postroom.operations.installation.checks import Check
    from postroom.operations.installation.upgrades import Upgraded, UpgradePlan

app = one_command()


@app.command()
def upgrade(
    session: Session,
    check: Annotated[bool, Argument("Only say what would be done, and what changed since the version before.")] = False,
    no_backup: Annotated[bool, Argument("Make no backup first: you have another.")] = False,
) -> None:
    """Back up, bring the database up to the version of this program, and check it.

    Run it after you have replaced the program and while Postroom is stopped. If anything fails before the end, the
    database is as it was. `postroom restore --replace` goes back to the backup.
    """
    from postroom.operations.installation import health, upgrades
    from postroom.operations.installation.database import is_created
    from postroom.operations.installation.installed import install_command

    settings = session.settings
    in_use = run_briefly(upgrades.in_use_by(settings)) if is_created(settings) else None
    if check:
        plan, command = session.call(upgrades.plan_upgrade, settings, in_use), install_command()
        session.show_line({**asdict(plan), "install": command}, _plan_lines(session, plan, command))
        return
    if in_use is not None:
        raise DatabaseInUse(f"the data is in use {in_use}; stop Postroom first, then run `postroom upgrade` again")
    with progress(session.as_json) as report:
        done = session.call(upgrades.upgrade, settings, backs_up=not no_backup, progress=report)
    failed = [each for each in session.call(health.schema_checks) if each.verdict == "fail"]
    session.show_line(
        {"since": done.since, "applied": done.applied, "backup": done.backup and str(done.backup), "failed": failed},
        _done_lines(session, done, failed),
    )
    if failed:
        raise typer.Exit(1)


def _plan_lines(session: Session, plan: "UpgradePlan", command: str) -> str:
    from postroom.backup.disk_space import in_mib

    made = "none yet" if plan.backup_at is None else f"{plan.backup_at.astimezone():%Y-%m-%d %H:%M}"
    lines = [
        f"program      {plan.program}; to install another version: {command}",
        f"database     {plan.database}, {counted(len(plan.pending), 'migration')} to apply"
        + "".join(f"\n             {name}" for name in plan.pending),
        f"last backup  {made}",
    ]
    if plan.room is not None:
        verdict = "enough" if plan.room.is_enough else "not enough; free some first"
        lines.append(
            f"space        a backup needs {in_mib(plan.room.needed)}; {in_mib(plan.room.free)} free: {verdict}"
        )
    if plan.changes:
        lines += ["", f"Changes since {plan.database}:", *plan.changes]
    if plan.in_use is not None:
        after = f"stop Postroom (in use {plan.in_use}), then run `{session.command_line('upgrade')}`"
    else:
        after = f"run `{session.command_line('upgrade')}`"
    return "\n".join([*lines, "", f"Next: {after}" if plan.pending else "Nothing to do: the database is up to date."])


def _done_lines(session: Session, done: "Upgraded", failed: "list[Check]") -> str:
    if not done.applied:
        return "up to date"
    lines = [] if done.backup is None else [f"backup   {done.backup}"]
    lines += [f"applied  {name}" for name in done.applied]
    lines += [f"fail     {each.name}: {each.found} -> {each.remedy}" for each in failed] or [
        "checked  the database is intact"
    ]
    if done.backup is not None:
        back = session.command_line(f"restore --replace {shlex.quote(str(done.backup))}")
        lines.append(f"To go back: install Postroom {done.since} again and run `{back}`.")
    return "\n".join([*lines, f"Next: {'see' if failed else 'start Postroom again, and see'} `postroom doctor`"])
