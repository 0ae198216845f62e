"""The hosts that receive a mailbox's mail: given, or learned from mail that the user sent to themselves."""

from pathlib import Path

import pytest

from postroom.core.mail.headers import Headers
from postroom.core.mail.tiers import Known
from postroom.mailboxes.following.receiving_hosts import MOST_LEARNED, MOST_WAITING, ReceivingHosts

MARA = "mara@lindqvist.example"
KNOWN = Known.of({MARA}, sent_ids={"<mine@x>"})


def own_mail(host: str, sender: str = MARA, to: str = MARA, id: str = "<mine@x>") -> Headers:
    results = (("Authentication-Results", f"{host}; dmarc=pass"), ("Authentication-Results", "below.example; none"))
    return (*results, ("From", sender), ("To", to), ("Message-ID", id))


def test_the_host_of_mail_to_oneself_is_learned_and_kept(tmp_path: Path) -> None:
    hosts = ReceivingHosts((), tmp_path)
    assert hosts.names == frozenset()
    hosts.learn([own_mail("MX.Provider.example 1")], KNOWN)
    hosts.learn([own_mail("mx.provider.example")], KNOWN)
    assert hosts.names == ReceivingHosts((), tmp_path).names == {"mx.provider.example"}


def test_mail_may_arrive_before_its_copy_is_in_the_sent_folder() -> None:
    hosts, before = ReceivingHosts(), Known.of({MARA})
    hosts.learn([own_mail("mx.provider.example")], before)
    assert hosts.names == frozenset()
    hosts.learn([], KNOWN)
    assert hosts.names == {"mx.provider.example"}


def test_mail_that_the_user_never_sent_is_forgotten() -> None:
    hosts = ReceivingHosts()
    for number in range(2 * MOST_WAITING):
        hosts.learn([own_mail(f"mx{number}.example", id=f"<{number}@x>")], Known.of({MARA}))
    hosts.learn([], Known.of({MARA}, sent_ids={"<1@x>"}))
    assert hosts.names == frozenset()
    hosts.learn([], Known.of({MARA}, sent_ids={f"<{2 * MOST_WAITING - 1}@x>"}))
    assert hosts.names == {f"mx{2 * MOST_WAITING - 1}.example"}


@pytest.mark.parametrize(
    "headers",
    [
        own_mail("mx.example", id="<other@x>"),
        own_mail("mx.example", sender="ida@lindqvist.example"),
        own_mail("mx.example", to="ida@lindqvist.example"),
        own_mail("mx.example", sender=f"{MARA}, ida@lindqvist.example"),
        own_mail("spf=pass smtp.mailfrom=x"),
        own_mail("x" * 300),
        own_mail(""),
    ],
    ids=["not sent", "from another", "to another", "from two", "without a name", "a long name", "an empty name"],
)
def test_nothing_is_learned_from_other_mail(headers: Headers) -> None:
    hosts = ReceivingHosts()
    hosts.learn([headers], KNOWN)
    assert hosts.names == frozenset()


def test_a_host_that_was_given_is_believed_alone() -> None:
    hosts = ReceivingHosts(["MX.Given.example"])
    hosts.learn([own_mail("mx.other.example")], KNOWN)
    assert hosts.names == {"mx.given.example"}


def test_only_so_many_are_learned() -> None:
    hosts = ReceivingHosts()
    for number in range(2 * MOST_LEARNED):
        hosts.learn([own_mail(f"mx{number}.example")], KNOWN)
    assert len(hosts.names) == MOST_LEARNED


@pytest.mark.parametrize("content", ["", "[]", '{"hosts": 3}', '{"hosts": [null, 5]}', "no json"])
def test_a_damaged_file_is_forgotten(tmp_path: Path, content: str) -> None:
    (tmp_path / "receiving_hosts.json").write_text(content)
    hosts = ReceivingHosts((), tmp_path)
    hosts.learn([own_mail("mx.provider.example")], KNOWN)
    assert ReceivingHosts((), tmp_path).names == {"mx.provider.example"}
