"""The servers of an address, by real questions to a DNS server, and a real mail server that answers."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from postroom.core.errors import BadInput
from postroom.core.hosts import DnsServer
from postroom.mailboxes.imap.wire import Endpoint
from postroom.operations.accounts.imap_servers import DnsRecords, WantedServer, WantedServers, app_at, find_servers
from postroom.outbound.smtp.dns import Dns
from postroom.settings.reading import Settings, load_settings
from support.imap_server import ImapServer, authority
from support.smtp import Zone, dns_server
from support.store.fault_cases_accounts import servers

NOW = datetime(2026, 11, 1, tzinfo=UTC)

ADA = "ada@ada.example"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"data_dir": tmp_path}, environ={})


async def test_the_records_of_the_domain_lead_to_its_servers(dovecot: ImapServer, settings: Settings) -> None:
    zone: Zone = {
        "_imaps._tcp.ada.example": {"SRV": [(10, 0, dovecot.tls_port, "localhost"), (0, 0, 1, "localhost")]},
        "_submissions._tcp.ada.example": {"SRV": [(0, 0, 465, "out.ada.example")]},
        "ada.example": {"MX": [(10, "mx.ada.example")]},
    }
    async with dns_server(zone) as (resolver, _):
        trusted = authority().cert_pem.bytes().decode()
        wanted = WantedServers(ADA, trusted_certificates=trusted)
        found = await find_servers(wanted, settings, DnsRecords(Dns(resolver, time.monotonic)))
    # The first, on port 1, does not answer.
    assert found.imap == Endpoint("localhost", dovecot.tls_port)
    assert found.submission == (Endpoint("out.ada.example", 465),)
    assert found.is_foreign, "the owner has to confirm a host outside the domain"
    assert found.origin == "named by the records of ada.example"


async def test_a_server_without_a_valid_certificate_is_not_found(dovecot: ImapServer, settings: Settings) -> None:
    zone: Zone = {"_imaps._tcp.ada.example": {"SRV": [(0, 0, dovecot.tls_port, "localhost")]}}
    async with dns_server(zone) as (resolver, _):
        with pytest.raises(BadInput, match=r"localhost.*its certificate is not valid.*--imap-host HOST"):
            await find_servers(WantedServers(ADA), settings, DnsRecords(Dns(resolver, time.monotonic)))


async def test_beside_a_server_that_is_named_the_one_for_sending_is_looked_for(settings: Settings) -> None:
    found = await find_servers(WantedServers(ADA, WantedServer("mail.ada.example")), settings)
    assert found.submission == (
        Endpoint("mail.ada.example", 465),
        Endpoint("mail.ada.example", 587, "starttls"),
    )
    assert not found.is_submission_given, "a mailbox is connected without it too"


async def test_a_domain_at_microsoft_is_refused_before_a_password_is_asked_for(settings: Settings) -> None:
    with pytest.raises(BadInput, match="Microsoft accepts no passwords over IMAP"):
        await find_servers(WantedServers("ada@hotmail.com"), settings, DnsRecords.of_system([DnsServer("127.0.0.1")]))


async def test_with_an_app_microsofts_servers_are_used_and_the_app_is_known_again_by_them(settings: Settings) -> None:
    named = WantedServers("ada@hotmail.com", WantedServer("outlook.office365.com"))
    with pytest.raises(BadInput, match="--sign-in microsoft"):
        await find_servers(named, settings)
    found = await find_servers(named._replace(app="microsoft"), settings)
    assert [each.host for each in found.submission] == ["smtp-mail.outlook.com"]
    stored = replace(servers(NOW), imap_host=found.imap.host, sign_in="xoauth2")
    assert app_at(stored) == "microsoft"
    assert app_at(replace(stored, imap_host="imap.gmail.com")) == "google"
    assert app_at(replace(stored, imap_host="127.0.0.1")) is None
    assert app_at(replace(stored, sign_in="password")) is None
