"""Certificates that nobody should accept: when a mailbox is connected, and while it is followed."""

import io
import sys
from collections.abc import Callable, Iterator

import pytest

from support.command import announced, running
from support.imap_mailbox import Beside
from support.imap_server import PASSWORD, ImapServer, authority
from support.scale import SOAK
from support.shell import Shell
from support.tls_front import (
    HOST,
    FrontInAThread,
    certificate_of,
    expired,
    for_another_name,
    self_signed,
    tls_front_in_a_thread,
    valid,
)
from support.until import until_seen as until

OWNER = "mara@lindqvist.example"
MAIL = b"From: News <news@shop.example>\nTo: %b\nSubject: Offer %d\nMessage-ID: <o%d@shop.example>\n\nCheap!\n"
FAULTS: list[tuple[Callable[[], bytes], str, str]] = [
    (self_signed, "self-signed certificate", "trust its certificate by `postroom account add imap --ca-file FILE`"),
    (expired, "certificate has expired", "renew it, or tell whoever runs the server"),
    (for_another_name, "not valid for '127.0.0.1'", "use the name that it is for as the host"),
]


class Owner:
    """Somebody whose mail server has this certificate."""

    def __init__(self, shell: Shell, server: ImapServer, front: FrontInAThread, patch: pytest.MonkeyPatch) -> None:
        self.shell, self.server, self.front, self._patch = shell, server, front, patch
        self.name = server.new_user()

    def add(self, *options: str, ca: bytes | None = None, is_known: bool = False) -> int:
        self._patch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
        file = self.shell.folder / "ca.pem"
        file.write_bytes(ca or authority().cert_pem.bytes())
        where = ("--imap-host", HOST, "--imap-port", str(self.front.front.port), "--user", self.name, "--no-sending")
        named = ("--email", OWNER, "--ca-file", str(file), *(() if is_known else where), *options)
        return self.shell("account", "add", "imap", "--json", *named)


@pytest.fixture
def front(dovecot: ImapServer) -> Iterator[FrontInAThread]:
    with tls_front_in_a_thread(dovecot.port, valid()) as made:
        yield made


@pytest.fixture
def owner(shell: Shell, dovecot: ImapServer, front: FrontInAThread, monkeypatch: pytest.MonkeyPatch) -> Owner:
    return Owner(shell, dovecot, front, monkeypatch)


@pytest.mark.parametrize(("fault", "said", "remedy"), FAULTS)
def test_a_mailbox_is_not_connected_and_no_password_leaves(
    owner: Owner, fault: Callable[[], bytes], said: str, remedy: str
) -> None:
    owner.front.replace(fault())
    assert owner.add() == 1
    assert f"the connection to {HOST} is not secure: its certificate is not valid" in owner.shell.err
    assert said in owner.shell.err
    assert remedy in owner.shell.err
    assert owner.front.front.sign_ins == 0
    assert owner.shell("account", "list", "--json") == 0
    assert owner.shell.json() == []


def test_a_self_signed_certificate_is_accepted_by_those_who_name_it_and_no_other_one(owner: Owner) -> None:
    own = self_signed()
    owner.front.replace(own)
    assert owner.add(ca=certificate_of(self_signed())) == 1
    assert owner.front.front.sign_ins == 0
    assert owner.add(ca=certificate_of(own)) == 0, owner.shell.err
    assert owner.front.front.sign_ins == 1
    # When the server has a new one, it is given in the same way; all else stays.
    renewed = self_signed()
    owner.front.replace(renewed)
    assert owner.add(is_known=True) == 1
    assert owner.add(ca=certificate_of(renewed), is_known=True) == 0, owner.shell.err
    assert owner.front.front.sign_ins == 2


@pytest.mark.parametrize(("fault", "said", "remedy"), FAULTS if SOAK else FAULTS[1:2])
def test_a_followed_mailbox_waits_and_continues_by_itself_when_the_certificate_is_renewed(
    owner: Owner, fault: Callable[[], bytes], said: str, remedy: str
) -> None:
    shell, beside = owner.shell, Beside(owner.server, owner.name)
    data = ("--data-dir", str(shell.folder / "data"))

    def connector() -> dict[str, str]:
        assert shell("connector", "list", "--json", *data) == 0, shell.err
        return next((each for each in shell.json() if each["connector_type"] == "imap"), {"state": "none"})

    assert owner.add(*data) == 0, shell.err
    assert shell("account", "act", OWNER, "--from", "now", *data) == 0, shell.err
    rule = ("rules", "add", "--name", "shop", "--if", '{"sender_domain": "shop.example"}', "--then", "archive")
    assert shell(*rule, *data) == 0, shell.err
    with running(shell.folder, "serve", "--port", "0", "--json", more={"POSTROOM_IMAP_POLL_S": "1"}) as process:
        announced(process)
        first = beside.put(MAIL % (OWNER.encode(), 1, 1))
        until(lambda: beside.ids("Archive") == [first])
        owner.front.replace(fault())
        signed_in = owner.front.front.sign_ins
        until(lambda: connector()["state"] == "error")
        problem = connector()["error"]
        assert said in problem
        assert remedy in problem
        assert shell("doctor", *data) == 0
        assert said in shell.out
        assert f"-> {remedy}" in shell.out
        second = beside.put(MAIL % (OWNER.encode(), 2, 2))
        assert owner.front.front.sign_ins == signed_in, "the password has left over a connection that is not secure"
        assert shell("account", "list", "--json", *data) == 0
        assert [each["state"] for each in shell.json() if each["provider"] == "imap"] == ["active"]
        owner.front.replace(valid())
        until(lambda: beside.ids("Archive") == [first, second])
        until(lambda: connector()["state"] == "healthy")
    beside.close()
