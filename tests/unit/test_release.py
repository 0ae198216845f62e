"""What `make release` refuses, and what it lists."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from support.installing import ROOT, release

built: Any = release()
DATED = "## [1.2.0] – 2026-11-19\n\n- Undo is faster.\n"


def test_uncommitted_changes_are_named():
    built.check_tree("")
    with pytest.raises(built.Refused, match=r"commit or remove these changes first:\n M README\.md\n\?\? notes$"):
        built.check_tree(" M README.md\n?? notes\n")


@pytest.mark.parametrize(
    "changelog",
    ["", DATED.replace("1.2.0", "1.2.1"), DATED.replace("1.2.0", "1x2.0"), "## [1.2.0] – not released yet\n"],
)
def test_a_version_without_a_dated_entry_is_refused(changelog: str):
    with pytest.raises(built.Refused, match=r"no dated entry for 1\.2\.0: begin it with `## \[1\.2\.0\] – \d{4}-"):
        built.check_changelog(f"# Changelog\n\n{changelog}", "1.2.0")


def test_changes_outside_of_the_entry_are_refused():
    built.check_changelog(f"## [Unreleased]\n\n{DATED}", "1.2.0")
    with pytest.raises(built.Refused, match="move them into the entry for 1"):
        built.check_changelog(f"## [Unreleased]\n\n### Added\n\n- Something.\n\n{DATED}", "1.2.0")


def test_constraints_are_the_locked_versions_with_their_conditions_and_without_hashes():
    hashed = " \\\n    --hash=sha256:aa\n    # via postroom\n"
    lock = f"apsw==3.54{hashed}uvloop==1 ; sys_platform != 'win32'{hashed}"
    assert built.constraints(lock) == "apsw==3.54\nuvloop==1 ; sys_platform != 'win32'\n"
    whole = built.constraints((ROOT / built.SHIPPED).read_text("utf-8"))
    assert "\napsw==" in whole
    assert "--hash" not in whole


def test_checksums_cover_what_anyone_can_build_again(tmp_path: Path):
    for name in ("postroom.whl", "audit.txt", "SHA256SUMS"):
        (tmp_path / name).write_text(name)
    assert built.checksums(tmp_path) == f"{hashlib.sha256(b'postroom.whl').hexdigest()}  postroom.whl\n"
