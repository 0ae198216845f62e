"""Redis over TCP and over TLS; and a connector that cannot read says so."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
import trustme
from redis.asyncio import Redis

from postroom.core.errors import SettingsError
from postroom.sources.redis_stream.stream import RedisStream, connect
from postroom.sources.runtime import Connector, Heartbeats, sending_heartbeats
from postroom.store.engine.database import Database
from postroom.store.intake.connectors import list_connectors
from postroom.system.wall_clock import wall_clock
from support.postgres import free_port
from support.redis import running_redis
from support.redis_setup import GROUP, IDENTITY, STREAM, RedisSetup, Switchboard, event_ids
from support.switchboard import services_on


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@contextlib.asynccontextmanager
async def network_setup(database: Database, url: str, *options: str) -> AsyncGenerator[RedisSetup]:
    with running_redis(*options) as server:
        async with Redis.from_url(server.url) as redis:
            setup = RedisSetup(server, redis, Switchboard(services_on(database, wall_clock)), url)
            try:
                yield setup
            finally:
                await setup.close()


def tls_options(folder: Path, authority: trustme.CA, port: int) -> list[str]:
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    paths = {name: folder / f"{name}.pem" for name in ("cert", "key", "ca")}
    certificate.cert_chain_pems[0].write_to_path(paths["cert"])
    certificate.private_key_pem.write_to_path(paths["key"])
    authority.cert_pem.write_to_path(paths["ca"])
    named = ("--tls-cert-file", "cert"), ("--tls-key-file", "key"), ("--tls-ca-cert-file", "ca")
    files = [part for option, name in named for part in (option, str(paths[name]))]
    return ["--tls-port", str(port), "--tls-auth-clients", "no", *files]


async def entries_arrive(setup: RedisSetup) -> None:
    ids = await setup.add(3)
    connector = await setup.start()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 3)
    assert connector.health.state == "healthy"
    await connector.stop()
    assert event_ids(await setup.switchboard.kept()) == sorted(ids)
    assert await setup.pending() == 0


@pytest.mark.parametrize("options", ["", "?protocol=3", "?protocol=3&decode_responses=True&socket_timeout=1"])
async def test_entries_arrive_over_tcp_whatever_the_address_asks_of_the_client(sqlite: Database, options: str):
    port = free_port()
    async with network_setup(sqlite, f"redis://127.0.0.1:{port}/0{options}", "--port", str(port)) as setup:
        await entries_arrive(setup)


async def test_entries_arrive_over_tls(sqlite: Database, tmp_path: Path, authority: trustme.CA):
    port = free_port()
    options = tls_options(tmp_path, authority, port)
    url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={tmp_path / 'ca.pem'}"
    async with network_setup(sqlite, url, *options) as setup:
        await entries_arrive(setup)


async def test_a_certificate_that_nobody_vouches_for_is_reported_at_the_start(
    sqlite: Database, tmp_path: Path, authority: trustme.CA
):
    port = free_port()
    async with network_setup(sqlite, f"rediss://127.0.0.1:{port}/0", *tls_options(tmp_path, authority, port)) as setup:
        connector = await setup.start()
        with pytest.raises(SettingsError, match="ssl_ca_certs"):
            await connector.task


async def test_a_source_that_has_read_nothing_yet_is_not_healthy(sqlite: Database):
    """Nobody answers at the address, and the first report is made before anything was tried."""
    async with network_setup(sqlite, f"redis://127.0.0.1:{free_port()}/0") as setup:
        connector = await setup.start()
        assert connector.health.state == "degraded"
        assert connector.health.error_message == "nothing has been read from Redis yet"
        assert "connect" in await connector.health.until_reported("degraded")
        assert connector.health.state == "degraded"


async def test_a_change_of_health_is_reported_before_the_next_beat_is_due(sqlite: Database):
    port = free_port()
    async with network_setup(sqlite, f"redis://127.0.0.1:{port}/0", "--port", str(port)) as setup:
        connector = await setup.start()
        heart = Heartbeats(
            setup.switchboard, Connector("redis-stream", IDENTITY, "one", "1.0"), connector.health, clock=wall_clock
        )
        await heart.beat()
        async with sending_heartbeats(heart, every=timedelta(hours=1), shortest=timedelta(milliseconds=1)):
            await setup.add(1)
            await setup.switchboard.until(lambda: "healthy" in setup.switchboard.states)
            setup.server.kill()
            await setup.switchboard.until(lambda: setup.switchboard.states[-1] == "degraded")
        (seen,) = await sqlite.run(list_connectors())
        assert seen.state == "degraded"


async def test_answers_are_read_alike_over_tcp(sqlite: Database):
    """The client's own reading of entries differs between its versions and protocols."""
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0?protocol=3"
    async with network_setup(sqlite, url, "--port", str(port)) as setup, connect(url) as client:
        stream = RedisStream(client, STREAM, GROUP, "one")
        await stream.ensure_group()
        (entry_id,) = await setup.add(1)
        (entry,) = await stream.fresh(10, timedelta(seconds=1))
        assert (entry.id, entry.fields) == (entry_id, ((b"event", b"build.done"), (b"text", b"text 0")))
