"""Connecting a mailbox over IMAP on the page, with a real Dovecot behind it."""

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from postroom.interfaces.dashboard.pages.connecting_imap import ConnectImapPage
from postroom.interfaces.dashboard.pages.connectors import pages
from postroom.interfaces.dashboard.pages.starting import StartPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.operations.accounts.accounts import list_accounts
from postroom.store.accounts.accounts import refuse_sign_in
from postroom.store.engine.database import Database
from support.attacks import ATTACKS, assert_harmless
from support.clocks import ManualClock
from support.imap_server import PASSWORD, ImapServer, authority
from support.intake_pages import IntakeSetup, said_in
from support.page_app import as_visitor, parts_in, visitor
from support.page_forms import submit
from support.store.fault_cases_registry import signed

OWNER = "mara@lindqvist.example"


@pytest.fixture
def setup(sqlite: Database, tmp_path: Path, clock: ManualClock) -> IntakeSetup:
    return IntakeSetup(sqlite, tmp_path, clock)


@pytest.fixture
async def page(setup: IntakeSetup, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    site = Site(parts_in(tmp_path, setup.database, setup.clock), "owner@example.org")
    shown = [ConnectImapPage(site), StartPage(site), *pages(site)]
    whole = create_application(site, shown, allowed_hosts=("127.0.0.1",))
    transport = httpx2.ASGITransport(app=as_visitor(whole, visitor("admin")))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8025") as client:
        yield client


def filled_in(server: ImapServer, user: str, password: str = PASSWORD) -> dict[str, str]:
    where = {"imap_host": "127.0.0.1", "imap_port": str(server.tls_port), "imap_security": "tls", "user_name": user}
    trusted = authority().cert_pem.bytes().decode()
    return {"email": OWNER, "password": password, "certificates": trusted, **where}


async def test_a_mailbox_is_connected_and_its_password_renewed(
    setup: IntakeSetup, page: httpx2.AsyncClient, dovecot: ImapServer
) -> None:
    answer = await submit(page, "/connectors/imap/connect", filled_in(dovecot, dovecot.new_user()))
    said = said_in(answer)
    assert said.mood == "good", said.sentence
    assert f"{OWNER} is connected to 127.0.0.1." in said.sentence
    assert "Mail cannot be sent: no server for sending answers at 127.0.0.1:465, 127.0.0.1:587." in said.sentence
    assert answer.headers["location"].startswith("/start?account="), "a look at its mail comes next"
    shown = (await page.get("/connectors/imap/imap%3Auser%3Amara%40lindqvist.example")).text
    assert "port" in shown
    assert "no server was given" in shown
    (account,) = await list_accounts(setup.database)
    assert account.servers is not None
    reason = "it does not accept the password; run `postroom account add imap --email x`"
    refusing = refuse_sign_in(account.id, account.servers.given_at, reason, signed(), setup.clock())
    assert await setup.database.run(refusing)
    shown = (await page.get("/connectors")).text
    assert "password refused" in shown
    assert "it does not accept the password" in shown
    assert f"/connectors/imap?email={OWNER.replace('@', '%40')}" in shown
    shown = (await page.get("/start")).text
    assert "The server refused the password. Enter it again." in shown
    assert f"/connectors/imap?email={OWNER.replace('@', '%40')}" in shown
    assert "its password is renewed" in (await page.get("/connectors/imap", params={"email": OWNER})).text
    again = said_in(await submit(page, "/connectors/imap/connect", {"email": OWNER, "password": PASSWORD}))
    assert again.mood == "good", again.sentence
    (renewed,) = await list_accounts(setup.database)
    assert (renewed.id, renewed.state) == (account.id, "active")


async def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    setup: IntakeSetup, page: httpx2.AsyncClient, dovecot: ImapServer
) -> None:
    right = filled_in(dovecot, dovecot.new_user())
    for field, value, wrong, said in [
        ("password", "wrong", "password", "127.0.0.1 refused the password. Check the address and the password."),
        ("password", "", "password", "Enter the password, or an app password of your provider."),
        ("imap_port", "70000", "imap_port", "is no port. Use a number from 1 to 65535."),
        ("imap_port", "²", "imap_port", "is no port. Use a number from 1 to 65535."),
        ("imap_port", "1", "imap_host", "127.0.0.1 didn’t answer. Check its name and port, or try again later."),
        ("imap_security", "plain", "imap_security", "is none of them."),
        ("labels_as", "stickers", "labels_as", "is none of them."),
        ("certificates", "none", "certificates", "These are no certificates in PEM."),
        ("certificates", "", "imap_host", "is not secure"),
        ("imap_host", "a/b", "imap_host", "is no host name."),
        ("email", "nobody", "email", "This is not a mail address. Write it as ada@example.com."),
    ]:
        answer = await submit(page, "/connectors/imap/connect", right | {field: value}, back="/connectors/imap")
        assert answer.status_code == 303, field
        shown = html.unescape((await page.get(answer.headers["location"])).text)
        marked = re.findall(r'name="(\w+)"[^>]* aria-invalid="true"', shown)
        assert marked == ([wrong] if wrong not in ("imap_security", "labels_as") else []), (field, value)
        (problem,) = re.findall(r'id="problem"[^>]*>.*?<bdi>(.*?)</bdi>', shown)
        assert said in problem, (field, value)
        kept = right | {field: value}
        for name in ("user_name", "email"):
            assert re.search(rf'name="{name}"[^>]* value="{re.escape(kept[name])}"', shown), (field, name)
        assert not re.search(r'type="password"[^>]* value=', shown), "a password is typed again"
        assert PASSWORD not in shown
    assert await list_accounts(setup.database) == []


async def test_a_refused_form_is_forgotten_in_time_and_then_empty(page: httpx2.AsyncClient) -> None:
    shown = await page.get("/connectors/imap", params={"refused": "gone"})
    assert shown.status_code == 200
    assert 'id="problem"' not in shown.text


async def test_an_address_from_a_link_is_shown_as_text(page: httpx2.AsyncClient) -> None:
    for attack in filter(str.isprintable, ATTACKS):
        answer = await page.get("/connectors/imap", params={"email": attack})
        assert_harmless(answer.text)


async def test_only_an_administrator_connects(setup: IntakeSetup, tmp_path: Path, clock: ManualClock) -> None:
    site = Site(parts_in(tmp_path, setup.database, clock), "owner@example.org")
    whole = create_application(site, [ConnectImapPage(site)], allowed_hosts=("127.0.0.1",))
    transport = httpx2.ASGITransport(app=as_visitor(whole, visitor("operator")))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8025") as client:
        assert 'type="password"' not in (await client.get("/connectors/imap")).text
        given = {"email": OWNER, "password": PASSWORD}
        assert (await submit(client, "/connectors/imap/connect", given)).status_code == 403
