"""Where a listener may bind: loopback, in every spelling, and nowhere else unless it is allowed by name."""

import socket
from collections.abc import Sequence

import pytest

from postroom.core.errors import SettingsError
from postroom.operations.installation import checks
from postroom.system.http_server.listening import addresses_of, is_loopback, is_own_machine, open_listener


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "::1%lo"])
def test_loopback_in_every_spelling(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0", "::", "192.168.0.2", "10.0.0.1", "203.0.113.9", "::ffff:0.0.0.0", "::ffff:192.168.0.2", "fe80::1%eth0"],
)
def test_everything_else_is_reached_by_others(address: str) -> None:
    assert not is_loopback(address)


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "::", "[::]", "::ffff:0.0.0.0"])
def test_a_bind_beyond_loopback_is_refused_with_the_way_out(host: str) -> None:
    with pytest.raises(SettingsError, match=r"needs sign-in and TLS.*web\.trusted_proxies.*ssh -L"):
        open_listener(host, 0, allow_exposed=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost"])
def test_loopback_is_bound(host: str) -> None:
    with open_listener(host, 0, allow_exposed=False) as listener:
        assert is_loopback(listener.getsockname()[0])


def names(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Makes the system's resolver answer with these, whatever the name."""

    def resolve(*_: object, **__: object) -> Sequence[object]:
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in each], socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_a_name_that_stands_for_one_address_of_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, "127.0.0.1", "192.0.2.7")
    assert not is_own_machine("localhost")
    with pytest.raises(SettingsError, match=r"web\.host: localhost \(192\.0\.2\.7\) can be reached by other machines"):
        open_listener("localhost", 0, allow_exposed=False)


def test_a_name_is_looked_up_once_and_ipv4_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, "::1", "127.0.0.1")
    assert addresses_of("localhost") == ["127.0.0.1", "::1"]


def test_a_name_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(SettingsError, match="is not an address of this machine"):
        addresses_of("nowhere.invalid")


def test_the_doctor_fails_for_a_bind_beyond_loopback_and_warns_if_sign_in_is_off() -> None:
    assert checks.bind("127.0.0.1", [], allowed=False, sign_in=True).verdict == "ok"
    assert checks.bind("127.0.0.1", [], allowed=False, sign_in=False).verdict == "warn"
    assert checks.bind("0.0.0.0", ["0.0.0.0"], allowed=False, sign_in=True).verdict == "fail"
    assert checks.bind("0.0.0.0", ["0.0.0.0"], allowed=True, sign_in=True).verdict == "ok"
    published = checks.bind("0.0.0.0", ["0.0.0.0"], allowed=True, sign_in=True, localhost_only=True)
    assert "publish its port on 127.0.0.1" in published.found
