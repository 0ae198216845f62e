"""`make release`: the same commit makes the same files, and one that is not ready makes none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.documents import DOCS, commands_in
from support.installing import ROOT, run
from support.postgres import free_port

DATED = "## [0.1.0] – 2026-11-19\n\n- Everything.\n"
AUTHOR = {f"GIT_{who}_{what}": "ada@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
RELEASED = {
    "SHA256SUMS",
    "constraints.txt",
    "postroom-0.1.0-py3-none-any.whl",
    "postroom-0.1.0.tar.gz",
    "postroom-browser.cdx.json",
    "postroom-python.cdx.json",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the code as it is, as one commit."""
    folder = tmp_path / "clone"
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT).splitlines()
    for name in (each for each in listed if (ROOT / each).is_file()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    commit(folder, "init", "--quiet")
    return folder


def commit(folder: Path, *before: str) -> None:
    for arguments in (before, ("add", "--all"), ("commit", "--quiet", "--message", "As it is")):
        if arguments:
            run(["git", *arguments], folder, os.environ | AUTHOR)


def release(folder: Path, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    """Run it with this environment's tools; the database of vulnerabilities cannot be reached."""
    closed = os.environ | {"POSTROOM_AUDIT_OSV_URL": f"http://127.0.0.1:{free_port()}/"}
    command = [sys.executable, folder / "build_hooks/release.py"]
    return subprocess.run(
        command, cwd=folder.parent, env=closed, capture_output=True, text=True, umask=umask, check=False
    )


@pytest.mark.soak
def test_the_same_commit_makes_the_same_files_in_another_folder_at_another_time(clone: Path, tmp_path: Path) -> None:
    changelog = clone / "CHANGELOG.md"
    changelog.write_text(f"# Changelog\n\n{DATED}")
    commit(clone)
    run(["git", "clone", "--quiet", clone, tmp_path / "elsewhere"], tmp_path)
    made: list[dict[str, bytes]] = []
    for folder, umask in ((clone, 0o022), (tmp_path / "elsewhere", 0o077)):
        done = release(folder, umask)
        assert done.returncode == 0, done.stdout + done.stderr
        made.append({each.name: each.read_bytes() for each in (folder / "dist").iterdir()})
        assert b"requirements.lock: not checked: " in made[-1].pop("audit.txt")
    run(["bash", "-c", commands_in(DOCS / "how-to/install.md")[0]], clone)
    assert made[0].keys() == RELEASED
    assert made[0] == made[1]


@pytest.mark.soak
def test_a_commit_that_is_not_ready_makes_nothing(clone: Path) -> None:
    changelog = clone / "CHANGELOG.md"
    changelog.write_text("# Changelog\n")
    dirty = release(clone)
    commit(clone)
    missing = release(clone)
    assert "commit or remove these changes first:\n M CHANGELOG.md" in dirty.stdout
    assert "CHANGELOG.md has no dated entry for 0.1.0" in missing.stdout
    assert (dirty.returncode, missing.returncode, (clone / "dist").exists()) == (1, 1, False)
