"""The first start with sign-in: a link is printed, leads in once, and is in no log; and the pages over TLS."""

import json
import signal
import ssl
from pathlib import Path

import httpx2
import pytest
import trustme

from postroom.compose.sign_in import certificates_of
from postroom.core.errors import SettingsError
from postroom.interfaces.http.serve import serving
from postroom.settings.reading import Settings
from postroom.system.http_server.listening import open_listener
from support.command import environment, running
from support.patience import PATIENCE_S
from support.scripted_feed import ScriptedFeed, overview_application
from support.signed_in import PASSWORD
from support.warm_start import run_command

SIGN_IN = {"POSTROOM_WEB_SIGN_IN": "true"}
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


def test_the_first_start_prints_a_link_and_later_ones_do_not(tmp_path: Path) -> None:
    with running(tmp_path, "serve", "--port", "0", "--json", more=SIGN_IN) as process:
        address = json.loads(process.stdout.readline())["url"]
        link = json.loads(process.stdout.readline())["sign_in_url"]
        place, _, secret = link.partition("#")
        port = address.rpartition(":")[2]
        assert place == f"http://localhost:{port}/sign-in/once"
        with httpx2.Client(base_url=address, headers=OWN_PAGE, timeout=PATIENCE_S) as http:
            assert http.get("/").headers["location"] == "/sign-in"
            assert http.get("/metrics").status_code == 401
            fields = {"secret": secret, "name": "mara", "password": PASSWORD}
            entered = http.post("/sign-in/once/password", data=fields)
            assert entered.status_code == 303
            cookie = entered.headers["set-cookie"].partition(";")[0]
            assert http.get("/", headers={"Cookie": cookie}).status_code == 200
        process.send_signal(signal.SIGTERM)
        said, log = process.communicate(timeout=PATIENCE_S)
    assert said == ""
    assert secret not in log
    assert cookie.partition("=")[2] not in log
    with running(tmp_path, "serve", "--port", "0", "--json", more=SIGN_IN) as process:
        address = json.loads(process.stdout.readline())["url"]
        with httpx2.Client(base_url=address, headers={**OWN_PAGE, "Cookie": cookie}, timeout=PATIENCE_S) as http:
            port = address.rpartition(":")[2]
            again = cookie.partition("=")[2]
            shown = http.get("/", headers={"Cookie": f"__Host-postroom-{port}={again}"})
            assert shown.status_code == 200, "sessions outlive a restart"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert said == "", "no second link is offered"


async def test_the_pages_are_served_with_a_certificate_of_their_own(tmp_path: Path) -> None:
    authority, files = trustme.CA(), (tmp_path / "pages.pem", tmp_path / "pages.key")
    pair = authority.issue_cert("localhost")
    pair.cert_chain_pems[0].write_to_path(files[0])
    pair.private_key_pem.write_to_path(files[1])
    web = Settings.model_validate({"web": {"tls_certificate": str(files[0]), "tls_key": str(files[1])}}).web
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    app = overview_application(ScriptedFeed(), allowed_hosts=("localhost",))
    async with certificates_of(web) as tls, serving(app, host="localhost", port=0, tls=tls) as address:
        assert address.startswith("https://localhost:")
        async with httpx2.AsyncClient(verify=trusting, timeout=PATIENCE_S) as http:
            assert (await http.get(f"{address}/healthz")).json() == {"status": "ok"}
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            with pytest.raises(httpx2.HTTPError):
                await http.get(address.replace("https", "http") + "/healthz")


async def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("nonsense")
    (tmp_path / "a.key").write_text("nonsense")
    files = {"tls_certificate": str(tmp_path / "a.pem"), "tls_key": str(tmp_path / "a.key")}
    with pytest.raises(SettingsError, match=r"^web\.tls_certificate:"):
        async with certificates_of(Settings.model_validate({"web": files}).web):
            pass


def test_beyond_loopback_is_bound_only_with_sign_in_and_tls() -> None:
    protected = Settings.model_validate({"web": {"trusted_proxies": ["10.0.0.2"]}}).web
    open_listener("0.0.0.0", 0, allow_exposed=protected.may_be_exposed).close()
    for web in ({"trusted_proxies": ["10.0.0.2"], "sign_in": False}, {"allow_unprotected_bind": True}):
        allowed = Settings.model_validate({"web": web}).web.may_be_exposed
        with pytest.raises(SettingsError, match="needs sign-in and TLS"):
            open_listener("0.0.0.0", 0, allow_exposed=allowed)


PUBLISHED = {**SIGN_IN, "POSTROOM_WEB_HOST": "0.0.0.0", "POSTROOM_WEB_LOCALHOST_ONLY": "true"}


def test_a_published_port_answers_to_localhost_and_to_no_other_name(tmp_path: Path) -> None:
    with running(tmp_path, "serve", "--port", "0", "--json", more=PUBLISHED) as process:
        port = json.loads(process.stdout.readline())["url"].rpartition(":")[2]
        assert json.loads(process.stdout.readline())["sign_in_url"].startswith(f"http://localhost:{port}/")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as http:
            for host, status in ((f"localhost:{port}", 200), (f"[::1]:{port}", 200), ("10.0.0.7", 421)):
                assert http.get("/sign-in", headers={"Host": host}).status_code == status
            assert http.post("/mcp", headers={"Host": "10.0.0.7"}).status_code == 421
            forged = {"Host": "10.0.0.7", "X-Forwarded-Host": "localhost", "X-Forwarded-Proto": "https"}
            assert http.get("/sign-in", headers=forged).status_code == 421
        more = {**PUBLISHED, "POSTROOM_WEB_PORT": port}
        asked = run_command(("ready",), tmp_path, environment(tmp_path, None) | more)
        assert (asked.returncode, asked.stdout) == (0, "ready\n")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    gone = run_command(("ready",), tmp_path, environment(tmp_path, None) | more)
    assert gone.returncode == 1
    assert f"nothing answers at 0.0.0.0:{port}" in gone.stderr


def test_health_checks_reach_the_pages_behind_a_certificate_and_behind_a_proxy(tmp_path: Path) -> None:
    files = (tmp_path / "pages.pem", tmp_path / "pages.key")
    pair = trustme.CA().issue_cert("mail.example.com")
    pair.cert_chain_pems[0].write_to_path(files[0])
    pair.private_key_pem.write_to_path(files[1])
    certificate = {"POSTROOM_WEB_TLS_CERTIFICATE": str(files[0]), "POSTROOM_WEB_TLS_KEY": str(files[1])}
    for tls in (certificate, {"POSTROOM_WEB_TRUSTED_PROXIES": "10.0.0.2"}):
        more = {**PUBLISHED, **tls, "POSTROOM_WEB_ALLOWED_HOSTS": "mail.example.com"}
        with running(tmp_path, "serve", "--port", "0", "--json", more=more) as process:
            port = json.loads(process.stdout.readline())["url"].rpartition(":")[2]
            asked = run_command(
                ("ready", "--json"), tmp_path, environment(tmp_path, None) | more | {"POSTROOM_WEB_PORT": port}
            )
            assert json.loads(asked.stdout) == {"ready": True}
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
