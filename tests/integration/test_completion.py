"""Tab completes commands, options and choices in a real shell."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.command import postroom

WRAPPER = f"""#!/bin/sh
exec {sys.executable} -c 'from postroom.app import main; main()' "$@"
"""
TAB = """
PATH=$PWD:$PATH
eval "$(cat script)"
COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_postroom_completion postroom
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("postroom jo", "jobs"), ("postroom jobs li", "list"), ("postroom jobs list --state fa", "failed")],
)
def test_bash_completes(tmp_path: Path, typed: str, offered: str) -> None:
    (tmp_path / "script").write_text(postroom(tmp_path, "completion", "bash").stdout)
    program = tmp_path / "postroom"
    program.write_text(WRAPPER)
    program.chmod(0o755)
    found = subprocess.run(
        ["bash", "--norc", "-c", TAB, "bash", typed], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (found.stdout.split(), found.stderr) == ([offered], "")


@pytest.mark.parametrize(("shell", "word"), [("zsh", "compdef"), ("fish", "complete --command postroom")])
def test_other_shells_have_a_script(tmp_path: Path, shell: str, word: str) -> None:
    said = postroom(tmp_path, "completion", shell)
    assert word in said.stdout
    assert said.stderr == ""
