"""How this program was installed, and so which command replaces it. Postroom never replaces itself."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

WHEEL = "postroom-VERSION-py3-none-any.whl"


def install_command() -> str:
    """The command that installs another version in place of this one, as this installation was made."""
    in_container = any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))
    return command_for(Path(sys.prefix), _origin(), in_container=in_container)


def command_for(prefix: Path, origin: dict[str, Any], *, in_container: bool = False) -> str:
    """`origin` is what the installer has recorded (PEP 610): empty if the package came from an index."""
    if origin.get("dir_info", {}).get("editable"):
        clone = shlex.quote(unquote(urlsplit(str(origin["url"])).path))
        return f"git -C {clone} pull && make -C {clone} setup"
    package = WHEEL if origin else "postroom"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {package}" if origin else "uv tool upgrade postroom"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {package}" if origin else "pipx upgrade postroom"
    if in_container:
        return "start a container of the new image on the same volume"
    return f"{shlex.quote(str(prefix / 'bin' / 'python'))} -m pip install --upgrade {package}"


def _origin() -> dict[str, Any]:
    try:
        return json.loads(distribution("postroom").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
