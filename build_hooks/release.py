"""Everything that is published of a version, into `dist/`: `make release`.

Built from the last commit alone, in a folder of its own, and dated by that commit: whoever builds the commit again with
the same tools gets the same bytes. The wheel is made from the sdist, so the sdist is complete. `audit.txt` records what
`make audit` found on that day; SHA256SUMS lists the other files, and is written last.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from audit import FAULTS
from constraints import SHIPPED, constraints

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
AUDIT, CONSTRAINTS, CHECKSUMS = "audit.txt", "constraints.txt", "SHA256SUMS"


class Refused(Exception):
    """This commit cannot be released; the message says what to do first."""


def check_tree(changed: str) -> None:
    """Refuse what `git status` lists: the release would lack it."""
    if changed.strip():
        raise Refused(f"commit or remove these changes first:\n{changed.rstrip()}")


def check_changelog(text: str, version: str) -> None:
    """Refuse a version whose changes are not written down."""
    if not re.search(rf"^## \[{re.escape(version)}\] – \d{{4}}-\d\d-\d\d$", text, re.MULTILINE):
        today = datetime.now(UTC).date()
        raise Refused(f"CHANGELOG.md has no dated entry for {version}: begin it with `## [{version}] – {today}`")
    if re.search(r"^## \[Unreleased\]\s+(?!## \[)\S", text, re.MULTILINE):
        raise Refused(f"CHANGELOG.md lists changes under Unreleased: move them into the entry for {version}")


def checksums(folder: Path) -> str:
    """All files but the record of a day, as `sha256sum --check` reads them."""
    files = sorted(each for each in folder.iterdir() if each.name not in (AUDIT, CHECKSUMS))
    return "".join(f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files)


def build(root: Path, into: Path) -> None:
    """The sdist from the last commit, and the wheel from that sdist."""
    uv = Path(sys.executable).parent / "uv"
    with tempfile.TemporaryDirectory(prefix="postroom-release-") as scratch:
        source = Path(scratch) / "postroom"
        _git(root, "clone", "--quiet", "--depth=1", root.as_uri(), str(source))
        command = [uv, "build", "--quiet", "--no-build-isolation", "--no-create-gitignore", "--python", sys.executable]
        dated = os.environ | {"SOURCE_DATE_EPOCH": _git(root, "log", "-1", "--format=%ct").strip()}
        subprocess.run([*command, "--out-dir", into, source], env=dated, check=True)


def audit(root: Path, into: Path, version: str) -> int:
    """The bills of materials, and a record of what is known today about what they list."""
    command = [sys.executable, "build_hooks/audit.py", "--into", into.name]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True)
    commit = _git(root, "rev-parse", "HEAD").strip()
    (into / AUDIT).write_text(
        f"Postroom {version}, commit {commit}, audited on {datetime.now(UTC).date()}\n{done.stdout}", encoding="utf-8"
    )
    return done.returncode


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    version = VERSION.findall((ROOT / "src/postroom/__init__.py").read_text("utf-8"))[0]
    dist = ROOT / "dist"
    try:
        check_tree(_git(ROOT, "status", "--porcelain"))
        check_changelog((ROOT / "CHANGELOG.md").read_text("utf-8"), version)
    except Refused as refused:
        print(f"Postroom {version} cannot be released: {refused}")
        return 1
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    build(ROOT, dist)
    (dist / CONSTRAINTS).write_text(constraints((ROOT / SHIPPED).read_text("utf-8")), encoding="utf-8")
    outcome = audit(ROOT, dist, version)
    (dist / CHECKSUMS).write_text(checksums(dist), encoding="utf-8")
    print((dist / AUDIT).read_text("utf-8") + (dist / CHECKSUMS).read_text("utf-8"), end="")
    if outcome == FAULTS:
        print(f"Known vulnerabilities: read dist/{AUDIT} before you publish this.")
        return 1
    print(f"Postroom {version} is in dist/. Next: git tag v{version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
