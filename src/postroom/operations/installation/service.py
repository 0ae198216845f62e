"""Let systemd start Postroom: write the units, switch them on, look at them, and take them away again.

Only files that carry our mark are replaced or removed, and the data stays where it is in any case.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from postroom.core.errors import BadInput, PostroomError
from postroom.operations.installation.service_units import (
    MARK,
    USER,
    ServicePart,
    ServicePlan,
    account_text,
    unit_name,
    unit_text,
)

UNIT = ".service"
BOOTED = Path("/run/systemd/system")
HOMES = (Path("/root"), Path("/home"), Path("/run/user"))
INSTEAD = "have its own service manager (such as launchd or OpenRC) run `postroom serve`, or use the container image"


@dataclass(frozen=True, slots=True)
class UnitFile:
    """One file of a service. The text is what belongs there."""

    path: Path
    text: str

    @property
    def state(self) -> str:
        """The effect of writing it: `new`, `changed` or `unchanged`; `foreign` if it is not ours to write."""
        try:
            found = self.path.read_text("utf-8")
        except FileNotFoundError:
            return "new"
        if not found.startswith(MARK):
            return "foreign"
        return "unchanged" if found == self.text else "changed"


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """The systemd of the machine, or of one user. With a `root`, files are written below it and nothing is started."""

    for_user: bool
    root: Path | None
    environ: Mapping[str, str]

    @property
    def units(self) -> Path:
        if not self.for_user:
            return self._below(Path("/etc/systemd/system"))
        home = Path(self.environ.get("HOME") or Path.home())
        return self._below(Path(self.environ.get("XDG_CONFIG_HOME") or home / ".config") / "systemd/user")

    @property
    def accounts(self) -> list[Path]:
        """The file that makes the account of the machine's services."""
        return [] if self.for_user else [self._below(Path("/etc/sysusers.d")) / f"{USER}.conf"]

    def check(self) -> None:
        """Raise PostroomError if it is not there or may not be changed."""
        if self.root is not None:
            return
        if not shutil.which("systemctl") or not BOOTED.is_dir():
            raise PostroomError(f"systemd does not run on this machine; {INSTEAD}")
        if not self.for_user and os.geteuid() != 0:
            problem = "the machine's services belong to root"
            raise BadInput("postroom service", problem, "run it with sudo, or give --user for a service of your own")

    def call(self, *arguments: str) -> str:
        """Call systemctl, and return its answer. Raises PostroomError if it refuses."""
        return _call("systemctl", *(["--user"] if self.for_user else []), *arguments)

    def _below(self, path: Path) -> Path:
        return path if self.root is None else self.root / path.relative_to("/")


def running_program() -> Path:
    """The program `postroom` of this installation, as a service starts it."""
    called = shutil.which(sys.argv[0])
    if called is not None and Path(called).name == "postroom":
        return Path(called).absolute()
    return Path(sys.executable).absolute().with_name("postroom")


def planned_files(manager: ServiceManager, plan: ServicePlan) -> list[UnitFile]:
    """The files of the service. Raises PostroomError if one is not ours, or the service could not start."""
    if manager.root is None and not plan.for_user:
        _check_program(plan.program)
    files = [UnitFile(each, account_text()) for each in manager.accounts]
    files.append(UnitFile(manager.units / unit_name(plan.part), unit_text(plan)))
    for each in files:
        if each.state == "foreign":
            raise BadInput(str(each.path), "was not written by Postroom", "move it away, or keep it and use it instead")
    return files


def install(manager: ServiceManager, plan: ServicePlan, files: Iterable[UnitFile]) -> None:
    """Write the files, and start the service now and with the machine."""
    for each in files:
        each.path.parent.mkdir(parents=True, exist_ok=True)
        each.path.write_text(each.text, "utf-8")
        each.path.chmod(0o644)
    if manager.root is not None:
        return
    for each in manager.accounts:
        _call("systemd-sysusers", str(each))
    manager.call("daemon-reload")
    manager.call("enable", unit_name(plan.part))
    manager.call("restart", unit_name(plan.part))


def installed(manager: ServiceManager) -> list[Path]:
    """Our files. Those of other origin, under the same names, are left out."""
    places = [manager.units / unit_name(part) for part in get_args(ServicePart)]
    return [each for each in [*places, *manager.accounts] if UnitFile(each, "").state == "changed"]


def uninstall(manager: ServiceManager, files: Iterable[Path]) -> None:
    """Stop the services and remove these files. The account stays: the data belongs to it."""
    for each in files:
        if manager.root is None and each.suffix == UNIT:
            manager.call("disable", "--now", each.name)
        each.unlink()
    if manager.root is None:
        manager.call("daemon-reload")


def state_of(manager: ServiceManager, unit: Path) -> str:
    """Return its state in the words of systemd, such as `active` or `failed`."""
    if manager.root is not None:
        return "written"
    return manager.call("show", "--property=ActiveState", "--value", unit.name).strip()


def _check_program(program: Path) -> None:
    """The service may not look into homes, and runs under an account of its own."""
    for each in (program, program.resolve(), Path(sys.executable).resolve()):
        if any(each.is_relative_to(home) for home in HOMES):
            problem = f"{each} is in a home folder, which the machine's service cannot read"
            remedy = "install Postroom for all users, for example in /opt/postroom, or give --user"
            raise BadInput("postroom service", problem, remedy)


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["it said nothing"]
        raise PostroomError(f"`{' '.join(command)}` failed: {said[0]}")
    return done.stdout
