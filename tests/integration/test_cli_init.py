"""`postroom init` at a terminal, on a real Dovecot: from nothing to a mailbox that is sorted, and every way to stop."""

import asyncio
import io
import json
import signal
import socket
import sqlite3
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from postroom.system.private_files import DATABASE
from support.command import announced, postroom, running
from support.imap_mailbox import Beside
from support.imap_server import PASSWORD, ImapServer, authority
from support.shell import Shell
from support.stored_password import store_password
from support.terminal import Terminal, at_terminal
from support.until import until_seen as until

OWNER = "mara@lindqvist.example"
BULK = "List-Id: <news.shop.example>\nList-Unsubscribe: <https://shop.example/leave>\n"
WAY, ADDRESS, SECRET, RULES, WHEN, LAST = (
    "How does Postroom reach your mailbox?",
    "Mail address: ",
    "Password: ",
    "Which starter rules do you want?",
    "From when?",
    "Switch it on? [y/n]: ",
)
CHOOSE = "Choose [1]: "
CTRL_C, CTRL_D = "\x03", "\x04"


class Owner:
    """Someone with a mailbox, and a folder for Postroom."""

    def __init__(self, folder: Path, server: ImapServer) -> None:
        self.folder, self.name = folder, server.new_user()
        self.beside = Beside(server, self.name)
        ca_file = folder / "ca.pem"
        authority().cert_pem.write_to_path(str(ca_file))
        self.server: tuple[str, ...] = ("--imap-host", "127.0.0.1", "--imap-port", str(server.tls_port))
        self.signing_in = ("--user", self.name, "--ca-file", str(ca_file))

    def receive(self, subject: str, sender: str, days: float, more: str = "") -> None:
        at = datetime.now(UTC) - timedelta(days=days)
        head = f"From: {sender}\nTo: {OWNER}\nSubject: {subject}\nDate: {format_datetime(at)}\n{more}"
        content = f"{head}Message-ID: <{abs(hash(subject))}@x.example>\n\nHello\n".replace("\n", "\r\n")
        self.beside.client.append("INBOX", "", f'"{at:%d-%b-%Y %H:%M:%S} +0000"', content.encode())

    def receive_usual(self) -> None:
        for days in (9, 3, 1):
            self.receive(f"Offer \x1b]0;{days}\x07", f"News <news{days}@shop.example>", days, BULK)
        self.receive("Lunch?", "Ida <ida@friends.example>", 2)

    def here(self, folder: str) -> int:
        return len(self.beside.ids(folder))

    @contextmanager
    def at_init(self, *words: str, **more: str) -> Generator[Terminal]:
        options = (*self.server, *self.signing_in, *words)
        with at_terminal(self.folder, "init", *options, more={"POSTROOM_WEB_SIGN_IN": "true", **more}) as terminal:
            yield terminal

    def asked(self, *words: str) -> list[dict[str, Any]]:
        """The answer of a command between two runs."""
        ended = postroom(self.folder, *words, "--json")
        assert ended.returncode == 0, ended.stderr
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def accounts(self) -> list[tuple[str, bool]]:
        """The connected mailboxes, and whether each acts."""
        return [(each["email"], each["acts_from"] is not None) for each in self.asked("account", "list")]


@pytest.fixture
def owner(tmp_path: Path, dovecot: ImapServer) -> Iterator[Owner]:
    made = Owner(tmp_path, dovecot)
    yield made
    made.beside.close()


def read_question(terminal: Terminal, question: str) -> None:
    """Wait until a question can be answered; most of them end with a number to choose."""
    terminal.read_until(question)
    if not question.endswith(": "):
        terminal.read_until(CHOOSE)


def answer(terminal: Terminal, *answers: tuple[str, str]) -> None:
    for question, typed in answers:
        read_question(terminal, question)
        terminal.type(f"{typed}\n")


def leave(terminal: Terminal, question: str, key: str = CTRL_C) -> str:
    """Leave at this question; return all that was shown."""
    read_question(terminal, question)
    return terminal.press_until_end(key)


def connected(owner: Owner) -> None:
    with owner.at_init("--email", OWNER) as terminal:
        answer(terminal, (SECRET, PASSWORD))
        leave(terminal, RULES)


def test_three_answers_lead_to_the_preview_and_four_more_to_a_sorted_mailbox(owner: Owner) -> None:
    owner.receive_usual()
    with owner.at_init() as terminal:
        answer(terminal, (WAY, ""), (ADDRESS, OWNER), (SECRET, PASSWORD))
        seen = terminal.read_until(CHOOSE)
        assert "Your newest 4 messages, of the last 9 days. Postroom only read them." in seen
        assert "Newsletters: 3 of 4, 3 leave the inbox" in seen
        assert "news1@shop.example              Offer \\x1b]0;1\\x07" in seen, "text of strangers is harmless"
        assert "\x1b]0" not in seen
        assert "→ label it “Newsletters” and archive it" in seen
        terminal.type("\n")
        answer(terminal, (WHEN, "2"))
        assert "The last 7 days too: 3 messages, 2 leave the inbox" in terminal.shown
        assert owner.accounts() == [(OWNER, False)]
        answer(terminal, (LAST, "y"))
        said = terminal.read_to_end()
    assert terminal.process.returncode == 0
    assert f"Switched on: Postroom acts on mail of {OWNER} since " in said
    assert "Start Postroom now:               postroom serve" in said
    assert "http://localhost:8025/sign-in/once#" in said
    assert PASSWORD not in said
    assert owner.here("INBOX") == 4, "nothing runs yet"
    with running(owner.folder, "serve", "--port", "0", "--json") as process:
        announced(process)
        until(lambda: (owner.here("INBOX"), owner.here("Archive")) == (2, 2))
        owner.receive("Offer 0", "News <news@shop.example>", 0, BULK)
        until(lambda: owner.here("Archive") == 3)
        # Run again, beside it: it says what is, and changes nothing.
        with owner.at_init("--email", OWNER) as terminal:
            said = terminal.read_to_end()
    assert "is connected" in said
    assert "Switched on: " in said
    assert "Postroom is running" in said
    assert SECRET not in said
    assert not any("\\Seen" in each.flags for each in owner.beside.messages("Archive"))


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
def test_it_can_be_left_at_every_question_and_goes_on_where_it_stopped(owner: Owner, key: str) -> None:
    owner.receive_usual()

    def left_at(question: str, *answers: tuple[str, str]) -> str:
        with owner.at_init() as terminal:
            answer(terminal, *answers)
            said = leave(terminal, question, key)
        assert terminal.process.returncode == 130, said
        assert "Traceback" not in said
        return said

    before: list[tuple[str, str]] = []
    for question, typed in ((WAY, ""), (ADDRESS, OWNER), (SECRET, PASSWORD)):
        assert "Stopped. No mailbox was connected. `postroom init` continues from here." in left_at(question, *before)
        before.append((question, typed))
    here = f"Stopped. {OWNER} is connected, and nothing in it has changed. `postroom init` continues from here."
    assert here in left_at(RULES, *before)
    # The mailbox is connected now, so that the questions before are not asked again.
    for question, answers in ((WHEN, [(RULES, "")]), (LAST, [(RULES, ""), (WHEN, "")])):
        said = left_at(question, *answers)
        assert here in said
        assert f"{OWNER} is connected." in said
        assert SECRET not in said
    assert owner.accounts() == [(OWNER, False)]
    assert owner.asked("rules", "list") == []
    assert (owner.here("INBOX"), owner.here("Archive")) == (4, 0)


def test_left_just_after_the_last_yes_it_says_that_it_is_on(owner: Owner) -> None:
    owner.receive_usual()
    with owner.at_init("--email", OWNER) as terminal:
        answer(terminal, (SECRET, PASSWORD), (RULES, ""), (WHEN, "2"))
        read_question(terminal, LAST)
        with closing(sqlite3.connect(owner.folder / "data" / DATABASE)) as database:
            terminal.type("y\n")
            while database.execute("SELECT 1 FROM accounts WHERE acts_from IS NOT NULL").fetchone() is None:
                assert terminal.process.poll() is None, terminal.read_to_end()
        terminal.process.send_signal(signal.SIGINT)
        said = terminal.read_to_end()
    assert "nothing in it has changed" not in said
    assert f"Stopped. {OWNER} is switched on." in said or "Switched on: " in said
    assert owner.accounts() == [(OWNER, True)]


def test_no_at_the_end_leaves_a_connected_mailbox_and_no_rules(owner: Owner) -> None:
    owner.receive_usual()
    with owner.at_init("--email", OWNER) as terminal:
        answer(terminal, (SECRET, PASSWORD), (RULES, ""), (WHEN, ""), (LAST, "n"))
        said = terminal.read_to_end()
    assert terminal.process.returncode == 0
    assert f"Not switched on. {OWNER} stays connected, and nothing in it changes." in said
    assert owner.accounts() == [(OWNER, False)]
    assert owner.asked("rules", "list") == []


def test_a_wrong_password_is_asked_for_again_and_a_wrong_number_or_address_too(owner: Owner) -> None:
    with owner.at_init() as terminal:
        answer(terminal, (WAY, "7"), (CHOOSE, "1"), (ADDRESS, "mara@"), (ADDRESS, OWNER), (SECRET, "wrong-horse"))
        answer(terminal, (SECRET, PASSWORD))
        said = leave(terminal, RULES)
    assert "Type one of the numbers." in said
    assert "That is not a mail address; write it as ada@example.com." in said
    assert "Try again." in said
    assert "wrong-horse" not in said


def test_a_server_that_is_not_found_is_asked_for(owner: Owner) -> None:
    port = owner.server[3]
    owner.server = ()
    with owner.at_init("--email", OWNER, POSTROOM_DELIVERY_DNS_SERVERS="255.255.255.255") as terminal:
        answer(terminal, ("Name of the mail server, such as mail.example.com: ", f"127.0.0.1:{port}"))
        answer(terminal, (SECRET, PASSWORD))
        assert f"{OWNER} is connected." in terminal.read_until(RULES)


def test_a_server_that_does_not_answer_is_said_before_the_password(owner: Owner) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with owner.at_init("--email", OWNER, "--imap-port", str(unused.getsockname()[1])) as terminal:
            said = terminal.read_to_end()
    assert terminal.process.returncode == 1
    assert "127.0.0.1 was not reached" in said
    assert "Stopped. No mailbox was connected." in said
    assert SECRET not in said


def test_an_empty_mailbox_is_set_up_without_examples(owner: Owner) -> None:
    with owner.at_init("--email", OWNER) as terminal:
        answer(terminal, (SECRET, PASSWORD))
        assert "There is no mail to show yet." in terminal.read_until(CHOOSE)
        terminal.type("\n")
        answer(terminal, (WHEN, ""), (LAST, "y"))
        assert "Switched on: " in terminal.read_to_end()
    assert len(owner.asked("rules", "list")) == 12


def test_starters_are_chosen_one_by_one_beside_ones_own_rules(owner: Owner) -> None:
    owner.receive_usual()
    add = ("rules", "add", "--name", "one", "--if", '{"subject_contains": "lunch"}', "--then", "star")
    assert postroom(owner.folder, *add).returncode == 0
    other = ("rules", "add", "--name", "other", "--if", '{"subject_contains": "offer"}', "--then", "mark_read")
    assert postroom(owner.folder, *other).returncode == 0
    assert postroom(owner.folder, "rules", "disable", "other").returncode == 0
    with owner.at_init("--email", OWNER) as terminal:
        answer(terminal, (SECRET, PASSWORD))
        seen = terminal.read_until(CHOOSE)
        assert "Your own rules (1): 1 of 4, nothing leaves the inbox" in seen
        assert "Your rules that are off (1), if they were on: 3 of 4" in seen
        assert "What starter rules would have done, beside your own rules:" in seen
        terminal.type("2\n")
        for _ in range(7):
            terminal.read_until("Use it? [y/N]: ")
            terminal.type("\n")
        terminal.read_until("Use it? [Y/n]: ")
        terminal.type("\n")
        answer(terminal, (WHEN, "1"), (LAST, "y"))
        assert "These rules are switched on: Newsletters." in terminal.read_to_end()
    assert {each["name"] for each in owner.asked("rules", "list") if each["enabled"]} == {"one", "Newsletters"}


def test_a_password_that_is_refused_later_is_asked_for_again(owner: Owner) -> None:
    connected(owner)
    asyncio.run(store_password(owner.folder / "data", OWNER, "wrong"))
    with owner.at_init() as terminal:
        said = terminal.read_to_end()
    assert terminal.process.returncode == 1
    assert f"Stopped. {OWNER} is connected, and nothing in it has changed." in said
    with owner.at_init() as terminal:
        said = terminal.read_until(SECRET)
        assert f"The server refused the password for {OWNER}." in said
        assert f"{OWNER} is already connected (password refused): its password is renewed" in said
        terminal.type(f"{PASSWORD}\n")
        terminal.read_until(RULES)
    assert owner.accounts() == [(OWNER, False)]


def test_a_paused_mailbox_is_not_set_up(owner: Owner) -> None:
    connected(owner)
    owner.asked("account", "pause", OWNER)
    with owner.at_init() as terminal:
        said = terminal.read_to_end()
    assert terminal.process.returncode == 2
    assert f"{OWNER} is paused; run `postroom account resume {OWNER}`" in said


def test_without_a_terminal_the_answers_are_options(
    shell: Shell, dovecot: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(shell.folder, dovecot)
    owner.receive_usual()
    owner.beside.close()
    words = ("init", "--json", *owner.server, *owner.signing_in)
    for missing in ((), ("--email", OWNER), ("--email", OWNER, "--yes"), ("--email", OWNER, "--starter", "all")):
        assert shell(*words, *missing) == 2
        assert "give --email, --starter and --yes, and the password on standard input" in shell.err
    times = (("--from", "soon"), ("--from", "2999-01-01"))
    for wrong in (("--starter", "newsletter"), ("--starter", "none", "--starter", "all"), *times):
        assert shell(*words, "--email", OWNER, "--yes", "--starter", "security", *wrong) == 2, shell.err
    assert not list(shell.folder.rglob(DATABASE))
    for added in (["Newsletters"], []):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
        chosen = ("--email", OWNER, "--starter", "newsletters", "--from", "7d", "--yes")
        assert shell(*words, *chosen) == 0, shell.err
        (row,) = shell.json()
        assert (row["email"], row["is_on"], row["rules"], row["messages"]) == (OWNER, True, added, 0)
        used = "" if added else " (in use)"
        assert f"Newsletters{used}: 3 of 4, 3 leave the inbox" in shell.err
    assert shell("account", "list", "--json") == 0
    assert len(shell.json()) == 1


def test_the_way_through_gmails_api_says_what_it_needs(owner: Owner) -> None:
    with at_terminal(owner.folder, "init") as terminal:
        answer(terminal, (WAY, "2"))
        said = terminal.read_to_end()
    assert terminal.process.returncode == 2
    assert "google.client_id" in said
    assert "No mailbox was connected." in said
