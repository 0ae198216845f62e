"""`serve` and `demo` at a terminal: a few sentences, the link last and again on Enter, and no trouble without one."""

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from postroom.core.errors import DatabaseInUse
from postroom.operations.installation.removal import delete_data
from postroom.system.private_files import files_kept
from postroom.system.restore_lock import sharing_folder
from support.command import announced, postroom, running
from support.patience import PATIENCE_S
from support.signed_in import PASSWORD
from support.terminal import at_terminal

SIGN_IN = {"POSTROOM_WEB_SIGN_IN": "true"}
LINK = re.compile(r"http://localhost:\d+/sign-in/once#(\S+)")
AGAIN = "(Press Enter to see a link again.)"


def test_the_demo_shows_a_few_sentences_and_its_link_again_on_enter(tmp_path: Path) -> None:
    with at_terminal(tmp_path, "demo", "--port", "0", more=SIGN_IN) as terminal:
        first = terminal.read_until(AGAIN)
        terminal.read_until("The first mail is in.")
        terminal.type("\n")
        second = terminal.read_until(AGAIN)
        assert "Postroom is at http://" in second
        (one,), (other,) = LINK.findall(first), LINK.findall(second)
        assert one != other
        address = f"http://localhost:{re.findall(r':([0-9]+)/', first)[0]}"
        with httpx2.Client(base_url=address, headers={"Sec-Fetch-Site": "same-origin"}, timeout=PATIENCE_S) as http:
            fields = {"secret": other, "name": "mara", "password": PASSWORD}
            assert http.post("/sign-in/once/password", data=fields).status_code == 303
            fields["secret"] = one
            assert http.post("/sign-in/once/password", data=fields).status_code != 303, "one link works, once"
        terminal.type("\n")
        terminal.read_until("Postroom is at http://")
        terminal.process.send_signal(signal.SIGINT)
        shown = terminal.read_to_end()
    assert len(LINK.findall(shown)) == 2, "nobody needs a link once someone can sign in"
    assert shown.count("Look around from another terminal:") == 1
    assert terminal.process.returncode == 0
    logged = [line for line in shown.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert 3 <= len(logged) <= 12, shown
    assert "Connected to the mailbox." in shown
    assert "outbound.attempted" not in shown


def test_ctrl_d_at_the_terminal_ends_nothing(tmp_path: Path) -> None:
    with at_terminal(tmp_path, "serve", "--port", "0") as terminal:
        terminal.read_until("Postroom is at ")
        terminal.type("\x04\n")
        terminal.process.send_signal(signal.SIGINT)
        assert "Stopped." in terminal.read_to_end()
    assert terminal.process.returncode == 0


def test_data_that_is_in_use_by_the_time_of_the_answer_is_not_deleted(tmp_path: Path) -> None:
    assert postroom(tmp_path, "migrate").returncode == 0
    before = files_kept(tmp_path / "data")
    with at_terminal(tmp_path, "uninstall", "--delete-data") as terminal:
        terminal.read_until("Type data to go on: ")
        with sharing_folder(tmp_path / "data"):
            terminal.type("data\n")
            assert "the data is in use by another process" in terminal.read_to_end()
            with pytest.raises(DatabaseInUse):
                delete_data(tmp_path / "data")
    assert files_kept(tmp_path / "data") == before


def test_waiting_for_another_upgrade_is_said_and_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    with (tmp_path / "data/upgrade.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with at_terminal(tmp_path, "serve", "--port", "0") as terminal:
            terminal.read_until("Waiting for process ?, which upgrades the database.")
            terminal.press_until_end("\x03")
            assert terminal.process.returncode == 130
    assert postroom(tmp_path, "migrate").returncode == 0


def test_a_program_gets_the_link_once_and_json(tmp_path: Path) -> None:
    with running(tmp_path, "serve", "--port", "0", "--json", more=SIGN_IN) as process:
        announced(process)
        assert "sign_in_url" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said, log = process.communicate()
    assert said == ""
    assert all(line.startswith("{") for line in log.splitlines())


# A shell that starts a job in the background, and gives it the terminal once a line was typed.
SHELL = """
import fcntl, os, select, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen([sys.executable, "-c", sys.argv[1]], process_group=0, stderr=subprocess.PIPE)
job.stderr.readline()
os.write(2, b"type\\n")
select.select([0], [], [])
print("in the background", flush=True)
os.tcsetpgrp(0, job.pid)
sys.exit(job.wait())
"""
JOB = """
import asyncio, os
from postroom.interfaces.cli.enter import presses
async def main():
    asyncio.get_running_loop().call_soon(os.write, 2, b"listens\\n")
    async for _ in presses():
        print("pressed", flush=True)
        return
asyncio.run(main())
"""


def test_a_job_in_the_background_leaves_the_keys_to_the_shell(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, JOB],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    ) as shell:
        os.close(theirs)
        assert shell.stderr is not None
        assert shell.stderr.readline() == b"type\n"
        os.write(ours, b"\n")
        assert shell.wait(PATIENCE_S) == 0, "it was not stopped by SIGTTIN"
        assert os.read(ours, 4096).decode().split() == ["in", "the", "background", "pressed"]
    os.close(ours)
