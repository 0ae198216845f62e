"""Postroom as strangers install it: from files, into an empty home, with the Pythons that this machine has."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from support.documents import DOCS, ROOT, commands_in
from support.patience import PATIENCE_S

PROGRAMS = Path(sys.executable).parent
UV = PROGRAMS / "uv"
# With the tools of this environment, which are locked.
BUILD = (UV, "build", "--quiet", "--no-build-isolation", "--no-create-gitignore", "--python", sys.executable)
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
TOO_OLD = "3.10"
# The commands of the page, by installer.
_, *_BLOCKS = commands_in(DOCS / "how-to/install.md")
INSTALL = {"uv": _BLOCKS[0], "pipx": _BLOCKS[2], "pip": _BLOCKS[4]}
REMOVE = {"uv": _BLOCKS[1], "pipx": _BLOCKS[3], "pip": _BLOCKS[5]}


def run(command: Sequence[str | Path], folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command that must succeed; what it printed."""
    ended = attempt(command, folder, environment)
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


def attempt(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S * 4, check=False
    )


@cache
def python_of(version: str) -> Path | None:
    """The interpreter of a version, if this machine has it; none is fetched."""
    check = f"import sys; assert sys.version.startswith('{version}.')"
    ours = str(Path(sys.base_prefix) / f"bin/python{version}")
    for found in (shutil.which(ours), shutil.which(f"python{version}"), *_found_by_uv(version)):
        if found and attempt([found, "-c", check], ROOT).returncode == 0:
            return Path(run([found, "-c", "import sys; print(sys.executable)"], ROOT).strip())
    return None


def _found_by_uv(version: str) -> list[str]:
    return attempt([UV, "python", "find", "--no-python-downloads", "--no-project", version], ROOT).stdout.split()


def empty_home(folder: Path, programs: Mapping[str, Path] | None = None) -> dict[str, str]:
    """The environment of somebody who has these programs and has never used them; uv's cache of downloads is shared."""
    ours = ("POSTROOM_", "XDG_", "VIRTUAL_ENV", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    found = folder / "programs"
    found.mkdir()
    for name, program in (programs or {}).items():
        (found / name).symlink_to(program)
    path = os.pathsep.join(str(each) for each in (folder / ".local/bin", found, "/usr/local/bin", "/usr/bin", "/bin"))
    downloads = run([UV, "cache", "dir"], ROOT).strip()
    return kept | {"HOME": str(folder), "PATH": path, "UV_CACHE_DIR": downloads, "UV_PYTHON_DOWNLOADS": "never"}


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def build_release(into: Path) -> Path:
    """The wheel and the sdist of the code as it is, and the constraints, as `make release` names them."""
    run([*BUILD, "--out-dir", into, ROOT], ROOT)
    (into / "constraints.txt").write_text(release().constraints((ROOT / "requirements-discord.lock").read_text()))
    return into


def next_release(dist: Path) -> None:
    """Replace the wheel of a release by that of the version after it."""
    shutil.unpack_archive(only(dist, "*.tar.gz"), dist)
    source = only(dist, "postroom-*/")
    (source / "PKG-INFO").unlink()  # else the build takes the version from there
    module = source / "src/postroom/__init__.py"
    module.write_text(re.sub(r'(__version__ = ".+)"', r'\1.post1"', module.read_text()))
    only(dist, "*.whl").unlink()
    run([*BUILD, "--wheel", "--out-dir", dist, source], dist)


@cache
def release() -> ModuleType:
    """`build_hooks/release.py` as a module; the folder is no package."""
    sys.path.insert(0, str(ROOT / "build_hooks"))
    try:
        return importlib.import_module("release")
    finally:
        sys.path.remove(str(ROOT / "build_hooks"))
