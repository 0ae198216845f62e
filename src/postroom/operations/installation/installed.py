"""How this program was installed, and so which command replaces it. Postroom never replaces itself."""

import json
import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

WHEEL, CONSTRAINTS = "dist/postroom-*.whl", "dist/constraints.txt"
"""Of a release, as docs/how-to/install.md installs it."""


def install_command() -> str:
    """The command that installs another version in place of this one, as this installation was made."""
    return command_for(Path(sys.prefix), _origin(), in_container=_in_container())


def uninstall_command() -> str:
    """The command that removes the program."""
    return removal_for(Path(sys.prefix), _origin(), in_container=_in_container())


def command_for(prefix: Path, origin: dict[str, Any], *, in_container: bool = False) -> str:
    """`origin` is what the installer has recorded (PEP 610): empty if the package came from an index."""
    if clone := _clone(origin):
        return f"git -C {clone} pull && make -C {clone} setup"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --constraints {CONSTRAINTS} {WHEEL}" if origin else "uv tool upgrade postroom"
    if (prefix / "pipx_metadata.json").exists():
        constrained = f'install --force --pip-args="--constraint $PWD/{CONSTRAINTS}" {WHEEL}'
        return f"{_pipx(prefix)} {constrained if origin else 'upgrade postroom'}"
    if in_container:
        return "start a container of the new image on the same volume"
    pip = f"{shlex.quote(str(prefix / 'bin' / 'pip'))} install"
    return f"{pip} --constraint {CONSTRAINTS} {WHEEL}" if origin else f"{pip} --upgrade postroom"


def removal_for(prefix: Path, origin: dict[str, Any], *, in_container: bool = False) -> str:
    if clone := _clone(origin):
        return f"delete the clone, {clone}"
    if (prefix / "uv-receipt.toml").exists():
        return "uv tool uninstall postroom"
    if (prefix / "pipx_metadata.json").exists():
        return f"{_pipx(prefix)} uninstall postroom"
    if in_container:
        return "remove the container, its image and its volume"
    return f"{shlex.quote(str(prefix / 'bin' / 'pip'))} uninstall postroom"


def _pipx(prefix: Path) -> str:
    """`pipx`, with the places that it needs to know if it has installed this for all users."""
    place = prefix.parents[1]
    if place.is_relative_to(Path.home()):
        return "pipx"
    called = shutil.which("postroom")
    commands = [] if called is None else [f"PIPX_BIN_DIR={shlex.quote(str(Path(called).parent))}"]
    as_root = [] if os.access(prefix, os.W_OK) else ["sudo"]
    return " ".join([*as_root, f"PIPX_HOME={shlex.quote(str(place))}", *commands, "pipx"])


def _clone(origin: dict[str, Any]) -> str | None:
    """The folder of a clone that is installed as it stands, quoted for a shell."""
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return shlex.quote(unquote(urlsplit(str(origin["url"])).path))


def _in_container() -> bool:
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))


def _origin() -> dict[str, Any]:
    try:
        return json.loads(distribution("postroom").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
