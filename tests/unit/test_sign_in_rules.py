"""Names, passwords, codes and what is kept of a browser and an address."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyotp
import pytest

from postroom.core.errors import BadInput, SettingsError
from postroom.core.sign_in.callers import SignInCaller, browser_of, shortened
from postroom.core.sign_in.names import compared_name, person_name
from postroom.core.sign_in.passwords import check_password, is_obvious
from postroom.core.sign_in.session_times import is_fresh
from postroom.core.visitors import Visitor
from postroom.operations.people.codes import checked_secret, codes_address, matching_step, new_codes_secret
from postroom.operations.people.pages_address import link_address, pages_address
from postroom.operations.people.passkeys import SiteAddress
from postroom.settings.reading import Settings, load_settings

NOW = datetime(2026, 11, 17, 12, 0, 5, tzinfo=UTC)
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15"
)


@pytest.mark.parametrize(
    ("typed", "name"),
    [(" Mara ", "mara"), ("José", "josé"), ("ada@example.com", "ada@example.com"), ("ＭＡＲＡ", "mara")],
)
def test_a_name_has_one_spelling(typed: str, name: str) -> None:
    assert person_name(typed) == compared_name(typed) == name


@pytest.mark.parametrize("typed", ["", "  ", "two words", "a\u202eb", "-dash", "x" * 65, "a\x00", "<b>"])
def test_what_cannot_be_a_name_is_refused_with_a_remedy(typed: str) -> None:
    with pytest.raises(BadInput, match="name:"):
        person_name(typed)
    assert compared_name(typed) == ""


@pytest.mark.parametrize(
    "password",
    [
        *(
            "password1234",
            "Passw0rd!!!!",
            "qwertyuiop12",
            "123456789012",
            "aaaaaaaaaaaa",
            "abcabcabcabc",
            "postroom2026!",
        ),
        *("mara.lindqvist!", "m4r4lindqvist", "Welcome-2026!", "abcdefghijkl", "letmein-admin", "!!!!!!!!1234"),
    ],
)
def test_the_first_passwords_that_would_be_guessed_are_refused(password: str) -> None:
    with pytest.raises(BadInput, match="guessed"):
        check_password(password, "mara.lindqvist")


@pytest.mark.parametrize(
    "password", ["correct horse battery", "kR7#vv2!mQz9", "drei Hasen im Schnee", "θάλασσα και ουρανός"]
)
def test_long_and_unusual_ones_are_fine(password: str) -> None:
    assert not is_obvious(password, "mara")
    check_password(password, "mara")


@pytest.mark.parametrize("password", ["kR7#vv2!mQ", "x" * 513, "tab\there and more words"])
def test_a_password_is_long_enough_and_can_be_typed(password: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_password(password, "mara")
    assert password not in str(refused.value)


def test_a_code_fits_its_step_and_those_beside_it() -> None:
    secret = new_codes_secret()
    app, step = pyotp.TOTP(secret), int(NOW.timestamp()) // 30
    for around in (-1, 0, 1):
        code = app.at(NOW + timedelta(seconds=30 * around))
        assert matching_step(secret, f" {code[:3]} {code[3:]} ", NOW) == step + around
    for far in (-2, 2):
        assert matching_step(secret, app.at(NOW + timedelta(seconds=30 * far)), NOW) is None
    for wrong in ("", "12345", "1234567", "abcdef", "１２３４５６"):
        assert matching_step(secret, wrong, NOW) is None


def test_the_secret_of_an_app_is_the_one_that_was_offered() -> None:
    secret = new_codes_secret()
    assert checked_secret(secret) == secret
    read = pyotp.parse_uri(codes_address(secret, "mara", "mail.example.com"))
    assert isinstance(read, pyotp.TOTP)
    assert read.at(0) == pyotp.TOTP(secret).at(0)
    for other in ("", "short", secret.lower(), f"{secret}\n"):
        with pytest.raises(BadInput):
            checked_secret(other)


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::7", "2001:db8:1::/48"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("127.0.0.1", "this machine"),
        ("::1", "this machine"),
        ("", "unknown address"),
    ],
)
def test_only_a_part_of_an_address_is_kept(address: str, kept: str) -> None:
    assert shortened(address) == SignInCaller(address).network == kept


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.77", "192.0.2.77"),
        ("::ffff:192.0.2.77", "192.0.2.77"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_who_has_a_whole_network_of_addresses_gets_no_more_tries(address: str, counted: str) -> None:
    assert SignInCaller(address).counted == counted


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        (SAFARI, "Safari on macOS"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140 Safari/537.36 Edg/140", "Edge on Windows"),
        ("curl/8.5.0", "curl"),
        ("", "unknown browser"),
        ("\x1b[31m<script>", "unknown browser"),
    ],
)
def test_a_browser_is_named_by_its_kind(agent: str, shown: str) -> None:
    assert browser_of(agent) == shown


@pytest.mark.parametrize(
    ("host", "origin", "can"),
    [
        ("localhost", "http://localhost:8025", True),
        ("mail.example.com", "https://mail.example.com", True),
        ("mail.example.com", "http://mail.example.com", False),
        ("127.0.0.1", "http://127.0.0.1:8025", False),
        ("::1", "http://[::1]:8025", False),
    ],
)
def test_passkeys_need_a_name_and_a_safe_connection(host: str, origin: str, can: bool) -> None:
    assert SiteAddress(host, origin).can_have_passkeys is can


def test_a_proof_is_fresh_for_ten_minutes() -> None:
    assert is_fresh(NOW, NOW + timedelta(minutes=9, seconds=59))
    assert not is_fresh(NOW, NOW + timedelta(minutes=10))
    assert not is_fresh(NOW + timedelta(minutes=1), NOW), "a clock that went back proves nothing"


def test_each_role_may_what_those_before_it_may() -> None:
    viewer, admin = Visitor("a", "viewer", ""), Visitor("b", "admin", "")
    assert (viewer.may("viewer"), viewer.may("operator"), admin.may("viewer")) == (True, False, True)


@pytest.mark.parametrize(
    ("web", "served", "address"),
    [
        ({}, "http://127.0.0.1:4711", "http://localhost:4711"),
        ({}, None, "http://localhost:8025"),
        ({"allowed_hosts": ["127.0.0.1"]}, None, "http://127.0.0.1:8025"),
        (
            {"host": "0.0.0.0", "trusted_proxies": ["10.0.0.2"], "allowed_hosts": ["localhost", "mail.example"]},
            None,
            "https://mail.example",
        ),
        ({"host": "0.0.0.0", "localhost_only": True}, "http://0.0.0.0:8025", "http://localhost:8025"),
    ],
)
def test_a_link_leads_to_where_a_browser_reaches_the_pages(
    web: dict[str, object], served: str | None, address: str
) -> None:
    settings = Settings.model_validate({"web": web})
    assert pages_address(settings, served) == address
    assert link_address(settings, "secret", served) == f"{address}/sign-in/once#secret"


@pytest.mark.parametrize(
    ("web", "may"),
    [
        ({}, False),
        ({"trusted_proxies": ["10.0.0.2"]}, True),
        ({"tls_certificate": "a.pem", "tls_key": "a.key"}, True),
        ({"tls_certificate": "a.pem", "tls_key": "a.key", "sign_in": False}, False),
        ({"allow_unprotected_bind": True}, False),
        ({"localhost_only": True}, True),
        ({"localhost_only": True, "sign_in": False}, False),
    ],
)
def test_other_machines_need_sign_in_and_tls_or_are_not_answered(web: dict[str, object], may: bool) -> None:
    assert Settings.model_validate({"web": web}).web.may_be_exposed is may


@pytest.mark.parametrize(
    ("web", "is_it"),
    [
        ({"localhost_only": True}, True),
        ({"localhost_only": True, "trusted_proxies": ["10.0.0.2"], "allowed_hosts": ["mail.example.com"]}, False),
        ({"localhost_only": True, "tls_certificate": "a.pem", "tls_key": "a.key", "allowed_hosts": ["a.b"]}, False),
        ({}, False),
    ],
)
def test_tls_ends_the_time_in_which_only_localhost_is_answered(web: dict[str, object], is_it: bool) -> None:
    assert Settings.model_validate({"web": web}).web.is_localhost_only is is_it


def test_without_tls_no_other_name_can_be_added(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "POSTROOM_WEB_LOCALHOST_ONLY": "true",
        "POSTROOM_WEB_ALLOWED_HOSTS": "localhost,mail.example.com",
    }
    with pytest.raises(SettingsError, match=r"to answer to mail\.example\.com, set web\.tls_certificate"):
        load_settings(environ=environ, cwd=tmp_path)


@pytest.mark.parametrize(
    "web", [{"tls_certificate": "a.pem"}, {"tls_key": "a.key"}, {"trusted_proxies": ["mail.example.com"]}]
)
def test_half_a_certificate_and_proxies_by_name_are_refused(web: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"web\.tls_certificate|10\.0\.0\.2"):
        Settings.model_validate({"web": web})
