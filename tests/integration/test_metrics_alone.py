"""Metrics of processes that have no pages, scraped over loopback."""

import asyncio
import contextlib
from datetime import datetime
from pathlib import Path

import httpx2
import pytest

from postroom.compose.connector import exporting_alone, heartbeat_every
from postroom.core.errors import SettingsError
from postroom.core.metrics import KNOWN_CONTACT_DEGRADED
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.following.contact_cache import ContactCache
from postroom.settings.reading import Settings, load_settings
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.sources.runtime import Connector, ConnectorHealth, Heartbeats
from postroom.store.engine.opening import open_database
from postroom.store.intake.connectors import list_connectors
from postroom.system.http_server.metrics import serving_metrics
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.postgres import free_port
from support.product import ENDPOINT
from support.switchboard import services_on


def settings_with(**telemetry: object) -> Settings:
    return load_settings(overrides={f"telemetry.{name}": value for name, value in telemetry.items()})


async def test_what_a_connector_of_its_own_counts_can_be_scraped():
    port = free_port()
    async with exporting_alone(settings_with(listen=f"127.0.0.1:{port}")) as tally:
        tally.count(KNOWN_CONTACT_DEGRADED, "gmail", "gmail:user:ada@example.com")
        async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
            answer = await http.get(f"http://127.0.0.1:{port}/metrics")
            assert answer.status_code == 200
            line = next(each for each in answer.text.splitlines() if each.startswith("butlers_connector_gmail_known"))
            assert 'endpoint_identity="gmail:user:ada@example.com"' in line
            assert line.endswith(" 1.0")
            assert (await http.get(f"http://127.0.0.1:{port}/")).status_code == 404
            assert (await http.post(f"http://127.0.0.1:{port}/metrics")).status_code == 404
            evil = await http.get(f"http://127.0.0.1:{port}/metrics", headers={"Host": "evil.example"})
            assert evil.status_code == 421


async def test_a_request_that_never_ends_or_is_too_large_gets_nothing():
    async with serving_metrics("127.0.0.1:0", lambda: b"") as address:
        assert address is not None
        port = int(address.split(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20_000)
        async with asyncio.timeout(20):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()


async def test_an_address_that_other_machines_reach_is_refused_unless_it_is_allowed():
    with pytest.raises(SettingsError, match=r"telemetry\.listen.*web\.allow_unprotected_bind"):
        async with serving_metrics("0.0.0.0:0", lambda: b""):
            pass
    async with serving_metrics("0.0.0.0:0", lambda: b"", allow_exposed=True) as address:
        assert address is not None


async def test_a_crowd_that_says_nothing_does_not_keep_a_scraper_out():
    async with serving_metrics("127.0.0.1:0", lambda: b"some 1\n") as address:
        assert address is not None
        port = int(address.split(":")[2].partition("/")[0])
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await reader.read()).endswith(b"some 1\n")
        for _reader, each in (*crowd, (reader, writer)):
            each.close()


async def test_a_port_that_is_taken_is_reported():
    async with serving_metrics("127.0.0.1:0", lambda: b"") as address:
        assert address is not None
        with pytest.raises(SettingsError, match=r"telemetry\.listen"):
            async with serving_metrics(address.removeprefix("http://").removesuffix("/metrics"), lambda: b""):
                pass


async def test_how_fresh_the_contacts_are_is_in_the_heartbeat_and_kept(tmp_path: Path, clock: ManualClock):
    database = await open_database(tmp_path, None)
    board = switchboard_within(build_server(services_on(database, clock), Principal(Role.CONNECTOR, ENDPOINT)))
    health = ConnectorHealth(clock)
    heart = Heartbeats(board, Connector("gmail", ENDPOINT, "host", "1"), health, clock)
    await heart.beat()
    [view] = await database.run(list_connectors())
    assert view.checkpoint is None
    clock.forward(60)
    cache = ContactCache(tmp_path / "contacts.json", board, clock)
    health.contacts_generated_at = lambda: cache.generated_at
    await cache.refresh()
    await heart.beat()
    [view] = await database.run(list_connectors())
    assert view.checkpoint is not None
    assert datetime.fromisoformat(view.checkpoint["contacts_generated_at"]) == clock()
    await database.close()


def test_the_intervals_of_a_connector_are_settings():
    settings = load_settings(overrides={"connector.heartbeat_s": 30.0})
    assert heartbeat_every(settings).total_seconds() == 30
    assert (settings.connector.contacts_refresh_s, settings.connector.contacts_stale_s) == (900, 3600)
    with pytest.raises(SettingsError, match="contacts_stale_s"):
        load_settings(overrides={"connector.contacts_stale_s": 60.0})
