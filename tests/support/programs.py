"""System programs that tests need: found, or installed if permitted; never a reason to skip a test."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


class NoProgramError(RuntimeError):
    """A program that the tests need is not there, and we may not install it."""


@cache
def system_program(name: str, package: str | None = None) -> str:
    """Where it is. A missing one is installed by root from its package, by default the one of its name, and an error
    for anybody else.
    """
    found, package = shutil.which(name), package or name
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(name, package)
        found = shutil.which(name)
    if found is None:
        raise NoProgramError(
            f"these tests need `{name}` on PATH; install it, for instance with "
            f"`apt-get install --no-install-recommends {package}`, or run the tests as root to have it installed"
        )
    return found


@cache
def unpacked_packages(name: str, packages: tuple[str, ...]) -> Path:
    """The root of a file tree with these packages, unpacked beside the system: for a program that cannot be installed
    together with another one. It is made once and kept in the folder for temporary files.
    """
    root = Path(tempfile.gettempdir()) / f"postroom-tests-{name}-{os.geteuid()}"
    with _one_at_a_time():
        if not root.exists():
            if not shutil.which("apt-get"):
                raise NoProgramError(f"these tests need {name}, from the packages {', '.join(packages)}, and apt-get")
            with tempfile.TemporaryDirectory(prefix=f"postroom-tests-{name}-") as folder:
                _run(["apt-get", "update"], folder, needed=os.geteuid() == 0)
                _run(["apt-get", "download", *packages], folder)
                for package in sorted(Path(folder).glob("*.deb")):
                    _run(["dpkg", "-x", str(package), f"{folder}/root"], folder)
                Path(folder, "root").chmod(0o755)
                shutil.move(f"{folder}/root", root)
    return root


@contextmanager
def _one_at_a_time() -> Generator[None]:
    """Two test workers may want something at once; the second finds it there."""
    with (Path(tempfile.gettempdir()) / "postroom-tests-install.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _install(program: str, package: str) -> None:
    with _one_at_a_time():
        if shutil.which(program) is None:
            _run(["apt-get", "update"])
            _run(["apt-get", "install", "-y", "--no-install-recommends", package])


def _run(command: list[str], folder: str | None = None, needed: bool = True) -> None:
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | quiet)
    if done.returncode != 0 and needed:
        raise NoProgramError(f"`{' '.join(command)}` failed; do it by hand. It said:\n{done.stderr[-2000:]}")
