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
        shim.write_text(f"#!{sys.executable} -S\n{SHIM}")
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


SHIM = '''
import json, os, re, socket, sys, tempfile

SERVING = ("serve", "worker", "submission", "sandbox", "demo", "connector gmail", "connector redis-stream")
# Where another one is running already, these get a place of their own.
ALONE = ("serve", "sandbox", "demo")
NOUNS = {"undo": "actions", "do": "mail", "reclassify": "mail"}
UNKNOWN = re.compile("ID|01[0-9a-f]+…")
STOP = 2


def forked(arguments, files):
    """Run the command in a process of the warm start."""
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(chr(0) + os.environ["WARM_START"])
    content = json.dumps(request).encode() + b"\\n"
    socket.send_fds(connection, [content[:1]], files)
    connection.sendall(content[1:])
    answers = connection.makefile()
    return int(answers.readline()), answers


def first_id(noun):
    """The id of the first thing in the list of this noun."""
    reading, writing = os.pipe()
    _, answers = forked([noun, "list", "--json"], [0, writing, 2])
    os.close(writing)
    with os.fdopen(reading) as lines:
        found = [each for each in map(json.loads, lines) if each.get("became", "done") == "done"]
    if not found:
        sys.exit(f"there is no id for {noun}: the list is empty")
    return str(found[0].get("id", found[0].get("message_id")))


arguments = sys.argv[1:]
noun = NOUNS.get(arguments[0], arguments[0])
arguments = [first_id(noun) if UNKNOWN.fullmatch(each) else each for each in arguments]
if " ".join(arguments).startswith(SERVING):
    os.environ["POSTROOM_LOG_LEVEL"] = "info"
    if arguments[0] in ALONE:
        os.environ.update({"POSTROOM_DATA_DIR": tempfile.mkdtemp(dir=os.environ["HOME"]), "POSTROOM_WEB_PORT": "0"})
    reading, writing = os.pipe()
    # A worker says on its log alone that it has started.
    pid, answers = forked(arguments, [0, writing, writing if arguments[0] == "worker" else 2])
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = next(lines, "")
        if said:
            os.kill(pid, STOP)
        print(said + lines.read(), end="")
    code = int(answers.readline())
    code = 0 if said and code == 130 else code
else:
    pid, answers = forked(arguments, [0, 1, 2])
    code = int(answers.readline())
sys.exit(code if code >= 0 else 128 - code)
'''
