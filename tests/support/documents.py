"""The commands of the documents, run as they are written: in a home of their own, beside a demo that is running.

A page is a script: its blocks of `sh`, and the lines after `$ ` in those of `console`, run in order in one bash. An id
that stands for any is filled in where the command is run: `ID`, or the beginning of one with an ellipsis, is the first
of the list of its noun. Questions are answered with yes. A command that serves is stopped once it is ready.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.patience import PATIENCE_S
from support.warm_start import warm_address

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# `postroom` as the pages call it.
SHIM = f"""#!/bin/sh
exec {sys.executable} -S -c "import sys; sys.path[0] = '{ROOT / "tests"}'; import support.documented_command" "$@"
"""
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
# Before each command the shell says which one it is, so that a failure names it.
TRACED = "set -euo pipefail\nexec < <(yes)\nPS4='\n>>> '\nset -x\n"


@dataclass(frozen=True, slots=True)
class Setting:
    """Whatever a page takes for granted: commands that run before and after its own, texts that stand for others, files
    with the content of other blocks, by a text in each, and blocks that cannot run here, by a text in each, with the
    reason. `shown` are texts of the page's output that its commands must print.
    """

    before: str = ""
    after: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    excepted: Mapping[str, str] = field(default_factory=dict[str, str])
    shown: tuple[str, ...] = ()


def commands_in(page: Path) -> list[str]:
    """The commands of each block of a page."""
    found = BLOCK.findall(page.read_text("utf-8"))
    return [body if language == "sh" else "\n".join(PROMPT.findall(body)) + "\n" for language, body in found]


def content_of(page: Path, text: str) -> str:
    """The only block with this text."""
    (found,) = [body for body in ANY_BLOCK.findall(page.read_text("utf-8")) if text in body]
    return found


class Home:
    """A home in which the commands of pages run. `more` is added to their environment."""

    def __init__(self, folder: Path, more: Mapping[str, str]) -> None:
        self.port = ""
        self.folder, self._programs = folder, folder / "bin"
        self._programs.mkdir()
        shim = self._programs / "postroom"
        shim.write_text(SHIM)
        shim.chmod(0o755)
        # The same program, as a page writes it for those who have a clone.
        (folder / ".venv").mkdir()
        (folder / ".venv/bin").symlink_to(self._programs)
        python = self._programs / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("POSTROOM_", "XDG_"))}
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**kept, "HOME": str(folder), "PATH": path, "WARM_START": warm_address(), **more}

    def run(self, script: str) -> str:
        """Run a script of a page; what it printed."""
        ended = subprocess.run(
            ["bash", "-c", TRACED + script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        last = ended.stderr.rpartition("\n>>> ")[2]
        assert ended.returncode == 0, f"ended with {ended.returncode}:\n{last}\n{ended.stdout[-500:]}"
        return ended.stdout
