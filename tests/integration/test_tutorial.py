"""The first quarter of an hour, walked as it is written, in an empty home: the demo, then one's own mailbox on a real
Dovecot. How to install is walked by `test_install.py`.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from support.closed_home import open_home
from support.documents import DOCS
from support.imap_mailbox import Beside
from support.imap_server import PASSWORD, ImapServer, authority
from support.patience import PATIENCE_S
from support.terminal import Terminal, at_terminal
from support.until import until_seen as until

PAGE = DOCS / "tutorial" / "first-quarter-of-an-hour.md"
# A comment before a block names it.
BLOCK = re.compile(r"^<!-- ([^\n]*) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = dict(BLOCK.findall(PAGE.read_text("utf-8")))
DONE = '"state": "completed"'
PORT = {"POSTROOM_WEB_PORT": "8025"}
QUESTION = re.compile(r"^(.*?(?:\[1\]|\[y/n\]|Mail address|Password): )(.*)$", re.MULTILINE)
# They differ from one mailbox, and one day, to the next.
DIFFERS = (
    (re.compile(r"^(?:Looking for the mail server|Server:).*\n", re.MULTILINE), ""),
    (re.compile(r"^  - Mail (?:is sent|cannot be sent).*\n", re.MULTILINE), ""),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "TIME"),
    (re.compile(r"once#\S+"), "once#…"),
    (re.compile(r"\r?\x1b\[K(?:Reading[^\x1b]*)?"), ""),
)
BULK = "List-Id: <news.{0}>\nList-Unsubscribe: <https://{0}/leave>\n"
MAIL = (
    ("Kino Nord <programme@kino-nord.example>", "The programme of the week", (1, 8)),
    ("Gardening Weekly <news@gardening.example>", "Ten plants for dry soil", (2, 9)),
    ("Bike Shop <offers@bikes.example>", "20 % off all lights", (3, 5)),
    ("Shop <orders@shop.example>", "Your receipt for order 1042", (4,)),
    ("Bank <no-reply@bank.example>", "New sign-in to your account", (6,)),
    ("Ida <ida@friends.example>", "Lunch on Thursday?", (1,)),
    ("Jon <jon@friends.example>", "The photos", (7,)),
)


@pytest.fixture
def mailbox(dovecot: ImapServer) -> Iterator[Beside]:
    made = Beside(dovecot, dovecot.new_user())
    now = datetime.now(UTC)
    for sender, subject, ages in MAIL:
        for days in ages:
            at = now - timedelta(days=days, minutes=1)
            domain = sender.rpartition("@")[2].rstrip(">")
            bulk = BULK.format(domain) if "friends" not in domain and len(ages) > 1 else ""
            head = f"From: {sender}\nTo: ada@example.com\nSubject: {subject}\nDate: {format_datetime(at)}\n{bulk}"
            content = f"{head}Message-ID: <{days}@{domain}>\n\nHello\n".replace("\n", "\r\n").encode()
            made.client.append("INBOX", "", f'"{at:%d-%b-%Y %H:%M:%S} +0000"', content)
    yield made
    made.close()


def home(folder: Path) -> dict[str, str]:
    """The environment of somebody who has just installed Postroom."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return open_home(folder) | {"PATH": path, "POSTROOM_WEB_PORT": "0"}


def run(script: str, folder: Path) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=home(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, (script, ended.stdout, ended.stderr)
    return ended.stdout


def comparable(text: str) -> str:
    for pattern, meant in DIFFERS:
        text = pattern.sub(meant, text)
    return text


def typed_at(terminal: Terminal, block: str) -> None:
    """Answer each question as the page does."""
    for question, typed in QUESTION.findall(block):
        terminal.read_until(question)
        terminal.type(f"{PASSWORD if question == 'Password: ' else typed}\n")


def test_the_demo_runs_as_written(tmp_path: Path) -> None:
    with subprocess.Popen(
        ["bash", "-c", f"exec {BLOCKS['demo']}"], cwd=tmp_path, env=home(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert any("connector.looked_back" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)


def test_a_mailbox_is_set_up_as_written_and_what_was_done_is_undone(
    tmp_path: Path, dovecot: ImapServer, mailbox: Beside
) -> None:
    ca_file = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(ca_file))
    options = ("--imap-host", "127.0.0.1", "--imap-port", str(dovecot.tls_port), "--ca-file", str(ca_file))
    command, _, block = BLOCKS["init"].partition("\n")
    assert command == "$ postroom init"
    with at_terminal(tmp_path, "init", *options, "--user", mailbox.user, home=home(tmp_path), more=PORT) as terminal:
        typed_at(terminal, block)
        said = terminal.read_to_end()
    assert comparable(said) == comparable(block)
    assert PASSWORD not in said
    assert len(mailbox.ids("INBOX")) == 10
    with at_terminal(tmp_path, *BLOCKS["serve"].split()[1:], home=home(tmp_path)) as terminal:
        until(lambda: (len(mailbox.ids("INBOX")), len(mailbox.ids("Archive"))) == (5, 5))
        until(lambda: run("postroom actions list --json", tmp_path).count(DONE) == 6)
        assert "5" in run(BLOCKS["beside serve"], tmp_path)
        until(lambda: (len(mailbox.ids("INBOX")), len(mailbox.ids("Archive"))) == (10, 0))
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_to_end()


def test_a_script_gives_its_answers_as_options(tmp_path: Path, dovecot: ImapServer, mailbox: Beside) -> None:
    ca_file = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(ca_file))
    options = f"--imap-host 127.0.0.1 --imap-port {dovecot.tls_port} --ca-file {ca_file} --user {mailbox.user}"
    assert BLOCKS["script"].startswith("pass show mail/ada | ")
    script = BLOCKS["script"].replace("pass show mail/ada", f"echo {PASSWORD}").replace("init", f"init {options}")
    run(script, tmp_path)
    rules = run("postroom rules list", tmp_path)
    assert "Newsletters" in rules
    assert "Receipts" in rules
