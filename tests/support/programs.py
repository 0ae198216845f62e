"""System programs that tests need: found, or installed if permitted; never a reason to skip a test."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path


class NoProgramError(RuntimeError):
    """A program that the tests need is not there, and we may not install it."""


@cache
def system_program(name: str) -> str:
    """Where it is. A missing one is installed by root from the package of its name, and an error for anybody else."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(name)
        found = shutil.which(name)
    if found is None:
        raise NoProgramError(
            f"these tests need `{name}` on PATH; install it, for instance with "
            f"`apt-get install --no-install-recommends {name}`, or run the tests as root to have it installed"
        )
    return found


def _install(package: str) -> None:
    """One after another: two test workers may want it at once, and the second finds it installed."""
    with (Path(tempfile.gettempdir()) / "postroom-tests-install.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if shutil.which(package) is None:
            _install_in_turn(package)


def _install_in_turn(package: str) -> None:
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", package]):
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        )
        if done.returncode != 0:
            raise NoProgramError(
                f"`{' '.join(command)}` failed; install {package} by hand. It said:\n{done.stderr[-2000:]}"
            )
