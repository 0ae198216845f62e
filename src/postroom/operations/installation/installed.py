"""How this program was installed, and so which command replaces it. Postroom never replaces itself."""

import json
import shlex
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
        constrained = f'pipx install --force --pip-args="--constraint $PWD/{CONSTRAINTS}" {WHEEL}'
        return constrained if origin else "pipx upgrade postroom"
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
        return "pipx uninstall postroom"
    if in_container:
        return "remove the container, its image and its volume"
    return f"{shlex.quote(str(prefix / 'bin' / 'pip'))} uninstall postroom"


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
