"""A mailbox over IMAP as its owner meets it: from `postroom account add imap` on a new Dovecot account to actions and
undo, a refused password, and a new one.
"""

import asyncio
import io
import json
import os
import pty
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.operations.accounts.connecting_imap import imap_account
from postroom.store.accounts.accounts import Consent, GivenAccess, connect_account
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from postroom.vault.sealing import Sealed
from support.command import POSTROOM, announced, environment, running
from support.imap_mailbox import Beside
from support.imap_sending import submission_in_a_thread
from support.imap_server import PASSWORD, ImapServer, authority, free_ports
from support.shell import Shell, on_database
from support.stored_password import store_password
from support.until import until_seen as until

OWNER = "mara@lindqvist.example"
MAIL = b"From: News <news@shop.example>\nTo: %b\nSubject: Offer %d\nMessage-ID: <o%d@shop.example>\n\nCheap!\n"


class NewUser:
    """Somebody with a new account at a mail server, and the command line."""

    def __init__(self, shell: Shell, server: ImapServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shell = shell
        self.server = server
        self.name = server.new_user()
        self._patch = monkeypatch
        self.ca_file = shell.folder / "ca.pem"
        authority().cert_pem.write_to_path(str(self.ca_file))

    def where(self, **more: str) -> list[str]:
        """The options that name the server."""
        port, options = str(self.server.tls_port), {"email": OWNER, "user": self.name, "ca-file": str(self.ca_file)}
        given = {**options, "imap-host": "127.0.0.1", "imap-port": port, **more}
        return [word for name, value in given.items() for word in (f"--{name}", value)]

    def add(self, *options: str, password: str = PASSWORD) -> int:
        self._patch.setattr(sys, "stdin", io.StringIO(f"{password}\n"))
        return self.shell("account", "add", "imap", "--json", *options)

    def account(self) -> dict[str, Any]:
        assert self.shell("account", "list", "--json") == 0, self.shell.err
        return next(each for each in self.shell.json() if each["provider"] == "imap")


@pytest.fixture
def user(shell: Shell, dovecot: ImapServer, monkeypatch: pytest.MonkeyPatch) -> NewUser:
    return NewUser(shell, dovecot, monkeypatch)


def test_a_mailbox_is_connected_with_a_password_from_standard_input(user: NewUser) -> None:
    assert user.add(*user.where()) == 0, user.shell.err
    (account,) = user.shell.json()
    assert (account["email"], account["state"], account["imap_host"]) == (OWNER, "active", "127.0.0.1")
    said = user.shell.err
    assert "Server: 127.0.0.1, port" in said
    assert "TLS" in said
    assert "archive: Archive; sent mail: Sent; trash: Trash" in said
    assert "New mail is noticed at once." in said
    assert "Mail can be deleted for good" in said
    assert "Labels are keywords" in said
    assert "Mail cannot be sent" in said
    assert PASSWORD not in said + user.shell.out
    files = [each for each in Path("postroom-data").rglob("*") if each.is_file()]
    assert files
    assert not any(PASSWORD.encode() in each.read_bytes() for each in files)


def test_adding_again_renews_the_password_and_keeps_what_is_not_said(user: NewUser) -> None:
    named = ("--authserv-id", "MX.Provider.example", "--authserv-id", "*.provider.example")
    assert user.add(*user.where(labels="folders"), *named) == 0
    first = user.account()
    assert first["authserv_ids"] == ["*.provider.example", "mx.provider.example"]
    assert user.add("--email", OWNER.upper()) == 0, user.shell.err
    assert "already connected (in use)" in user.shell.err
    again = user.account()
    assert (again["id"], again["labels_as"], again["imap_host"]) == (first["id"], "folders", "127.0.0.1")
    assert again["authserv_ids"] == first["authserv_ids"]


def test_a_new_account_does_not_act_until_its_owner_says_so(user: NewUser) -> None:
    assert user.add(*user.where()) == 0, user.shell.err
    assert f"To act on new mail, run `postroom account act {OWNER} --from now`" in user.shell.err
    assert (user.account()["acts"], user.account()["acts_from"]) == ("not yet", None)
    assert user.shell("account", "list") == 0
    assert "not yet" in user.shell.out
    assert user.shell("doctor") == 0
    assert "decided in shadow, nothing is changed in the mailbox" in user.shell.out
    for wrong in ("soon", "2030-01-01", "7"):
        assert user.shell("account", "act", OWNER, "--from", wrong) == 2
    assert user.account()["acts_from"] is None
    assert user.shell("account", "act", OWNER, "--from", "2026-11-01", "--json") == 0, user.shell.err
    (row,) = user.shell.json()
    assert (row["acts"], row["messages"], row["batch_id"]) == ("since 2026-11-01 00:00 UTC", 0, None)
    assert user.add("--email", OWNER) == 0, user.shell.err
    assert "To act on new mail" not in user.shell.err
    assert user.account()["acts_from"] == "2026-11-01T00:00:00+00:00"


def test_a_mailbox_is_not_connected_twice_however_its_server_is_named(user: NewUser) -> None:
    assert user.add(*user.where()) == 0, user.shell.err
    again = user.where(**{"email": "alias@lindqvist.example", "imap-host": "localhost", "user": user.name.upper()})
    assert user.add(*again) != 0
    assert f"signs in to the mailbox of {OWNER}, and two accounts would work on one mailbox" in user.shell.err
    assert user.account()["email"] == OWNER
    # Another user of the same server is another mailbox.
    other = user.where(**{"email": "bea@lindqvist.example", "imap-host": "localhost", "user": f"{user.name}2"})
    assert user.add(*other) == 0, user.shell.err


def test_a_mailbox_that_is_reached_on_another_port_is_recognised_by_its_inbox(user: NewUser, cyrus: ImapServer) -> None:
    beside = Beside(user.server, user.name)
    beside.put(MAIL % (OWNER.encode(), 1, 1))
    beside.close()
    assert user.add(*user.where()) == 0, user.shell.err
    other_port = {"imap-port": str(user.server.port), "imap-security": "starttls"}
    again = user.where(email="alias@lindqvist.example", **other_port)
    assert user.add(*again) != 0
    assert f"signs in to the mailbox of {OWNER}" in user.shell.err
    # A user of the same name on another server of the same machine has another mailbox.
    beside = Beside(cyrus, user.name)
    beside.put(MAIL % (OWNER.encode(), 1, 1))
    beside.close()
    elsewhere = user.where(**{"email": "bea@lindqvist.example", "imap-port": str(cyrus.tls_port)})
    assert user.add(*elsewhere) == 0, user.shell.err


def test_a_command_does_not_promise_to_try_again(user: NewUser) -> None:
    (port,) = free_ports(1)
    assert user.add(*user.where(**{"imap-port": str(port)})) == 1
    assert "was not reached" in user.shell.err
    assert "it may work later" in user.shell.err
    assert "retried" not in user.shell.err


def test_nothing_is_stored_if_the_sign_in_is_refused(user: NewUser) -> None:
    assert user.add(*user.where(), password="wrong") == 1
    assert "does not accept the user name or the password (AUTHENTICATIONFAILED)" in user.shell.err
    assert "give the right one, which may be a new one, or an app password of the provider" in user.shell.err
    assert "wrong\n" not in user.shell.err
    assert user.shell("account", "list", "--json") == 0
    assert user.shell.json() == []


def test_a_missing_password_is_named_and_asked_for(user: NewUser) -> None:
    assert user.add(*user.where(), password="") == 2
    assert "standard input: has no line left for a password; give one, or use a terminal" in user.shell.err


def test_a_certificate_that_nobody_vouches_for_is_refused_before_the_password_leaves(user: NewUser) -> None:
    where = user.where()
    at = where.index("--ca-file")
    assert user.add(*where[:at], *where[at + 2 :]) == 1
    assert "is not secure: its certificate is not valid" in user.shell.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--email", OWNER, "--imap-host", "127.0.0.1", "--imap-security", "plain"], "imap.allow_plain"),
        (["--email", OWNER, "--imap-host", "127.0.0.1", "--imap-security", "ssl"], "--imap-security"),
        (["--email", OWNER, "--imap-port", "993"], "--imap-host: is missing"),
        (["--email", OWNER, "--imap-host", "a b"], "is no host name"),
        (["--email", OWNER, "--authserv-id", "mx.example; none"], "is no name of a host"),
        (["--email", "nobody"], "is not a mail address"),
        (["--email", OWNER, "--level", "read"], "--level: is not for imap"),
        (["--email", "ada@outlook.com"], "Microsoft accepts no passwords over IMAP"),
        ([], "--email: is missing"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(user: NewUser, options: list[str], said: str) -> None:
    assert user.add(*options) == 2
    assert said in user.shell.err


def test_a_mailbox_connected_through_gmails_api_is_refused_before_the_password_is_asked_for(user: NewUser) -> None:
    assert user.add(*user.where()) == 0
    on_database(user.shell, _connect_gmail)
    assert user.add("--email", "bo@gmail.com", password="") == 2
    assert "bo@gmail.com is already connected through Gmail's API" in user.shell.err


async def _connect_gmail(database: Database) -> None:
    consent = Consent("app", "read", frozenset(), wall_clock())
    signed = Signature(new_id(), "test", "cli")
    await database.run(
        connect_account(
            new_id(),
            "gmail",
            "bo@gmail.com",
            GivenAccess({REFRESH_TOKEN: Sealed("key", "x")}, consent),
            signed,
            wall_clock(),
        )
    )


def test_a_preview_stores_nothing(user: NewUser) -> None:
    beside = Beside(user.server, user.name)
    for number in range(3):
        beside.put(MAIL % (OWNER.encode(), number, number))
    beside.close()
    assert user.add(*user.where(), "--preview") == 0, user.shell.err
    (summary,) = user.shell.json()
    assert summary["messages"] == 3
    assert "Nothing was stored." in user.shell.err
    assert user.shell("account", "list", "--json") == 0
    assert user.shell.json() == []


def test_on_a_terminal_the_password_is_not_echoed_and_a_preview_is_offered_first(user: NewUser) -> None:
    words = ["account", "add", "imap", *user.where()]
    answers = [("Password: ", "wrong-horse"), ("Password: ", PASSWORD), ("See what", "n"), ("Connect", "y")]
    seen = at_terminal(words, answers, environment(user.shell.folder, None))
    assert "wrong-horse" not in seen
    assert PASSWORD not in seen
    assert "Try again." in seen
    assert re.search(rf"{OWNER}  connected over IMAP", seen)


def test_on_a_terminal_a_server_that_is_not_found_is_asked_for(user: NewUser) -> None:
    words = ["account", "add", "imap", "--email", OWNER, "--user", user.name, "--ca-file", str(user.ca_file)]
    answers = [
        ("Name of the mail server", f"127.0.0.1:{user.server.tls_port}"),
        ("Password: ", PASSWORD),
        ("See what", "n"),
        ("Connect", "y"),
    ]
    # To nobody, so that only the usual names are left, and .example has none.
    where = environment(user.shell.folder, None) | {"POSTROOM_DELIVERY_DNS_SERVERS": "255.255.255.255"}
    seen = at_terminal(words, answers, where)
    assert "No mail server was found for lindqvist.example; tried imap.lindqvist.example:993, mail" in seen
    assert seen.count("was not reached") == 0, "what all have in common is said once"
    assert re.search(rf"{OWNER}  connected over IMAP", seen)


def test_a_server_that_does_not_answer_is_noticed_before_the_password_is_asked_for(user: NewUser) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        words = ["account", "add", "imap", *user.where(**{"imap-port": str(unused.getsockname()[1])})]
        seen = at_terminal(words, [], environment(user.shell.folder, None))
    assert "127.0.0.1 was not reached" in seen
    assert "Password" not in seen


def at_terminal(words: list[str], answers: list[tuple[str, str]], environment: dict[str, str]) -> str:
    """Run a command on a terminal of its own; each answer is typed when its question appears."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(POSTROOM[0], [*POSTROOM, *words], environment)
    seen, heard = "", 0
    try:
        while True:
            try:
                chunk = os.read(terminal, 4096).decode()
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
            if answers and answers[0][0] in seen[heard:]:
                heard = len(seen)
                os.write(terminal, f"{answers.pop(0)[1]}\n".encode())
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert not answers, f"never asked: {answers}; it said:\n{seen}"
    return seen


def test_mail_is_archived_and_brought_back_and_a_refused_password_parks_until_there_is_a_new_one(
    user: NewUser,
) -> None:
    shell, beside = user.shell, Beside(user.server, user.name)
    data = shell.folder / "data"
    shell_data = ("--data-dir", str(data))

    def inbox() -> list[str]:
        return beside.ids("INBOX")

    def account() -> dict[str, str]:
        assert shell("account", "list", "--json", *shell_data) == 0
        return next(each for each in shell.json() if each["provider"] == "imap")

    def actions() -> list[dict[str, str]]:
        assert shell("actions", "list", "--json", *shell_data) == 0
        return [json.loads(line) for line in shell.out.splitlines()]

    assert user.add(*user.where(), *shell_data) == 0, shell.err
    rule = ("rules", "add", "--name", "shop", "--if", '{"sender_domain": "shop.example"}', "--then", "archive")
    assert shell(*rule, *shell_data) == 0, shell.err
    assert shell("account", "act", OWNER, "--from", "now", *shell_data) == 0, shell.err
    with running(shell.folder, "serve", "--port", "0", "--json") as process:
        announced(process)
        id = beside.put(MAIL % (OWNER.encode(), 1, 1))
        until(lambda: inbox() == [] and beside.ids("Archive") == [id])
        until(lambda: [each["state"] for each in actions()] == ["completed"])
        assert shell("undo", actions()[0]["id"], *shell_data) == 0, shell.err
        until(lambda: inbox() == [id] and beside.ids("Archive") == [])

    asyncio.run(store_password(data, OWNER, "wrong"))
    with running(shell.folder, "serve", "--port", "0", "--json"):
        until(lambda: account()["state"] == "needs_consent")
        reason = account()["state_reason"]
        assert "does not accept the user name or the password (AUTHENTICATIONFAILED)" in reason
        assert f"run `postroom account add imap --email {OWNER}`" in reason
    later = beside.put(MAIL % (OWNER.encode(), 2, 2))
    assert user.add("--email", OWNER, *shell_data) == 0, shell.err
    assert (account()["state"], account()["state_reason"]) == ("active", None)
    with running(shell.folder, "serve", "--port", "0", "--json"):
        until(lambda: beside.ids("Archive") == [later])
    assert not any("\\Seen" in each.flags for folder in ("INBOX", "Archive") for each in beside.messages(folder))
    beside.close()


def submission_of(user: NewUser) -> tuple[str | None, int | None, str | None]:
    async def stored(database: Database) -> tuple[str | None, int | None, str | None]:
        account = await imap_account(database, OWNER)
        assert account is not None
        assert account.servers is not None
        return account.servers.smtp_host, account.servers.smtp_port, account.servers.smtp_security

    return on_database(user.shell, stored)


def test_a_server_for_sending_that_is_down_while_the_password_is_renewed_is_kept(user: NewUser) -> None:
    with submission_in_a_thread() as smtp:
        sending = {"smtp-host": "127.0.0.1", "smtp-port": str(smtp.port), "smtp-security": "starttls"}
        assert user.add(*user.where(**sending)) == 0, user.shell.err
        assert "Mail is sent through 127.0.0.1" in user.shell.err
    before = submission_of(user)
    for again in (["--email", OWNER], user.where()):
        assert user.add(*again) == 0, user.shell.err
        assert f"no server for sending answers at 127.0.0.1:{smtp.port}" in user.shell.err
        assert "127.0.0.1 is kept, and tried again for each mail." in user.shell.err
        assert submission_of(user) == before


def test_a_server_for_sending_is_added_changed_and_left_out_without_naming_the_other_again(user: NewUser) -> None:
    assert user.add(*user.where()) == 0, user.shell.err
    assert submission_of(user)[0] is None
    with submission_in_a_thread() as smtp:
        sending = ("--smtp-host", "127.0.0.1", "--smtp-port", str(smtp.port), "--smtp-security", "starttls")
        assert user.add("--email", OWNER, *sending) == 0, user.shell.err
        assert submission_of(user) == ("127.0.0.1", smtp.port, "starttls")
        assert user.add("--email", OWNER) == 0, user.shell.err
        assert submission_of(user) == ("127.0.0.1", smtp.port, "starttls")
    assert user.add("--email", OWNER, "--no-sending") == 0, user.shell.err
    assert submission_of(user)[0] is None
    assert user.account()["imap_host"] == "127.0.0.1"


def test_mail_is_forwarded_through_the_submission_server_with_a_copy_in_sent_mail(user: NewUser) -> None:
    shell, beside = user.shell, Beside(user.server, user.name)
    shell_data = ("--data-dir", str(shell.folder / "data"))

    def approved() -> bool:
        """What cannot be undone is asked first."""
        assert shell("approvals", "list", "--json", *shell_data) == 0
        ids = [json.loads(line)["id"] for line in shell.out.splitlines()]
        return bool(ids) and shell("approvals", "approve", ids[0], "--yes", *shell_data) == 0

    with submission_in_a_thread() as smtp:
        where = user.where(**{"smtp-host": "127.0.0.1", "smtp-port": str(smtp.port), "smtp-security": "starttls"})
        assert user.add(*where, *shell_data) == 0, shell.err
        rule = ("rules", "add", "--name", "shop", "--if", '{"sender_domain": "shop.example"}', "--then", "forward")
        assert shell(*rule, "--param", "to=ada@example.com", *shell_data) == 0, shell.err
        assert shell("account", "act", OWNER, "--from", "now", *shell_data) == 0, shell.err
        with running(shell.folder, "serve", "--port", "0", "--json") as process:
            announced(process)
            beside.put(MAIL % (OWNER.encode(), 1, 1))
            until(approved)
            until(lambda: len(beside.ids("Sent")) == 1)
            until(lambda: beside.ids("Drafts") == [])
        (mail,) = [each for each in smtp.received if each.recipients]
        assert (mail.recipients, mail.username, mail.encrypted) == (("ada@example.com",), user.name, True)
        assert b"Subject: Fwd: Offer 1" in mail.content
        assert beside.flags("Sent") == [{"\\Seen"}]
    beside.close()
