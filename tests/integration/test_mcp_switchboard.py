"""The connectors' client of the switchboard: the same over HTTP and in memory, with clear errors."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import (
    BadInput,
    Conflict,
    DatabaseUnavailable,
    IntakeRefused,
    PostroomError,
    Refused,
    SwitchboardUnavailable,
)
from postroom.core.roles import Principal, Role
from postroom.intake.disk import DiskReserve
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.operations.jobs.queues import peek
from postroom.sources.mcp_switchboard import switchboard_at, switchboard_within
from postroom.sources.switchboard_client import Receipt, SwitchboardClient
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.intake.connectors import list_connectors
from support.clocks import ManualClock
from support.switchboard import envelope, served, services_on

CONNECTOR = Principal(Role.CONNECTOR, "webhook:ci")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """SQLite: what this is about lies between the connector and the switchboard."""
    opened = await open_database(tmp_path, None)
    yield opened
    await opened.close()


@pytest.fixture
def services(database: Database, clock: ManualClock) -> Services:
    return services_on(database, clock)


@pytest.fixture(params=["http", "in memory"])
async def switchboard(request: pytest.FixtureRequest, services: Services) -> AsyncIterator[SwitchboardClient]:
    if request.param == "in memory":
        yield switchboard_within(build_server(services, CONNECTOR))
        return
    async with served(services) as running:
        token = await running.token("connector", "webhook:ci")
        async with switchboard_at(f"{running.address}/mcp", token) as client:
            yield client


async def refusal(call: Any) -> PostroomError:
    with pytest.raises(PostroomError) as caught:
        await call
    return caught.value


async def test_what_is_delivered_is_there_once(switchboard: SwitchboardClient, services: Services):
    first = await switchboard.ingest(envelope())
    assert not first.duplicate
    assert await switchboard.ingest(envelope()) == Receipt(first.request_id, duplicate=True)
    [message] = await peek(services.database, services.queues, "gateway")
    assert message.message_id == first.request_id


async def test_metadata_keeps_its_null(switchboard: SwitchboardClient, services: Services):
    await switchboard.ingest(envelope(payload={"raw": None}, control={"ingestion_tier": "metadata"}))
    [message] = await peek(services.database, services.queues, "gateway")
    assert message.envelope["payload"]["raw"] is None


async def test_each_of_a_batch_has_its_own_answer(switchboard: SwitchboardClient):
    first = await switchboard.ingest(envelope(1, control={"idempotency_key": "k"}))
    foreign = envelope(3, source={"endpoint_identity": "other"})
    given = [envelope(1, control={"idempotency_key": "k"}), envelope(2, sender={"identity": ""}), foreign]
    again, bad, refused, conflict, fresh = await switchboard.ingest_batch(
        [*given, envelope(4, control={"idempotency_key": "k"}), envelope(5)]
    )
    assert again == Receipt(first.request_id, duplicate=True)
    assert isinstance(bad, BadInput)
    assert bad.field == "sender.identity"
    assert isinstance(refused, Refused)
    assert isinstance(conflict, Conflict)
    assert isinstance(fresh, Receipt)
    assert await switchboard.ingest_batch([]) == []


async def test_a_refused_envelope_is_bad_input_with_its_field(switchboard: SwitchboardClient):
    error = await refusal(switchboard.ingest({**envelope(), "sendr": {}}))
    assert isinstance(error, BadInput)
    assert (error.field, error.remedy) == ("sendr", "did you mean 'sender'?")


async def test_a_foreign_endpoint_is_refused(switchboard: SwitchboardClient):
    assert isinstance(await refusal(switchboard.ingest(envelope(source={"endpoint_identity": "other"}))), Refused)


async def test_a_heartbeat_is_kept(switchboard: SwitchboardClient, database: Database):
    report = {
        "schema_version": "connector.heartbeat.v1",
        "connector": {"connector_type": "webhook", "endpoint_identity": "webhook:ci", "instance_id": "one"},
        "status": {"state": "healthy", "uptime_s": 5},
        "counters": {"ingested": 7},
        "sent_at": "2026-11-15T08:00:00Z",
    }
    await switchboard.heartbeat(report)
    [kept] = await database.run(list_connectors())
    assert (kept.endpoint_identity, kept.counters) == ("webhook:ci", {"ingested": 7})
    error = await refusal(switchboard.heartbeat({**report, "status": {"state": "fine", "uptime_s": 5}}))
    assert isinstance(error, BadInput)
    assert error.field == "status.state"


async def test_what_no_json_can_hold_is_bad_input_and_hurts_no_other(switchboard: SwitchboardClient):
    unsendable = [envelope(1, payload={"normalized_text": "\ud800"}), envelope(2, payload={"raw": {"at": object()}})]
    for each in unsendable:
        assert isinstance(await refusal(switchboard.ingest(each)), BadInput)
    results = await switchboard.ingest_batch([envelope(3), *unsendable, envelope(4)])
    assert [type(each) for each in results] == [Receipt, BadInput, BadInput, Receipt]


async def test_a_full_disk_says_when_to_come_back(database: Database, clock: ManualClock, tmp_path: Path):
    full = services_on(database, clock, reserve=DiskReserve(tmp_path, 512, free=lambda _folder: 0))
    switchboard = switchboard_within(build_server(full, CONNECTOR))
    for call in (switchboard.ingest(envelope()), switchboard.ingest_batch([envelope()])):
        error = await refusal(call)
        assert isinstance(error, IntakeRefused)
        assert error.retry_after == timedelta(seconds=60)


async def test_a_database_that_is_away_is_worth_another_try(
    switchboard: SwitchboardClient, services: Services, monkeypatch: pytest.MonkeyPatch
):
    async def away(*_given: Any) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(services.intake, "ingest", away)
        assert isinstance(await refusal(switchboard.ingest(envelope())), SwitchboardUnavailable)
    assert isinstance(await switchboard.ingest(envelope()), Receipt)


async def test_a_switchboard_that_went_away_is_found_again(services: Services):
    async with served(services) as running:
        token = await running.token("connector", "webhook:ci")
        address = running.address
        async with switchboard_at(f"{address}/mcp", token) as switchboard:
            await switchboard.ingest(envelope(1))
    async with switchboard_at(f"{address}/mcp", token) as switchboard:
        for _attempt in range(2):
            assert isinstance(await refusal(switchboard.ingest(envelope(2))), SwitchboardUnavailable)
        async with served(services, int(address.rpartition(":")[2])):
            assert not (await switchboard.ingest(envelope(2))).duplicate
        assert isinstance(await refusal(switchboard.ingest(envelope(3))), SwitchboardUnavailable)


async def test_a_wrong_address_is_named_with_the_status_that_it_answered(services: Services):
    async with served(services) as running:
        token = await running.token("connector", "webhook:ci")
        for path, said in (("/other", "404"), ("/v1/ingest", "error")):
            async with switchboard_at(f"{running.address}{path}", token) as client:
                error = await refusal(client.ingest(envelope()))
            assert isinstance(error, SwitchboardUnavailable)
            assert f"{running.address}{path}" in str(error)
            assert said in str(error)
    async with switchboard_at(f"{running.address}/mcp", token) as client:
        assert f"at {running.address}/mcp cannot be reached" in str(await refusal(client.ingest(envelope())))


async def test_a_token_that_is_not_known_is_refused_for_good(services: Services):
    async with served(services) as running, switchboard_at(f"{running.address}/mcp", "nonsense") as switchboard:
        error = await refusal(switchboard.ingest(envelope()))
    assert isinstance(error, Refused)
    assert "this token is unknown" in str(error)


async def test_a_batch_that_is_too_large_to_send_at_once_is_sent_in_parts(services: Services):
    large = [envelope(number, payload={"normalized_text": f"{number}" * (6 * 2**20)}) for number in range(4)]
    too_large = envelope("huge", payload={"normalized_text": "x" * (17 * 2**20)})
    async with served(services) as running:
        token = await running.token("connector", "webhook:ci")
        async with switchboard_at(f"{running.address}/mcp", token) as switchboard:
            results = await switchboard.ingest_batch([*large, too_large])
    assert [type(each) for each in results] == [Receipt] * 4 + [BadInput]


class Proxy:
    """Stands before a switchboard, and answers for itself when a body is larger than it likes: in HTML."""

    PAGE = b"<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>"

    def __init__(self, address: str, most: int) -> None:
        self._port = int(address.rpartition(":")[2])
        self._most = most
        self.refused = 0
        self.passed = 0

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request for each connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            lengths = [line.partition(b":")[2] for line in lines if line.lower().startswith(b"content-length:")]
            body = await reader.readexactly(int(lengths[0]))
            if len(body) > self._most:
                self.refused += 1
                told = f"HTTP/1.1 413 Too Large\r\nContent-Type: text/html\r\nContent-Length: {len(self.PAGE)}\r\n"
                writer.write(told.encode() + b"Connection: close\r\n\r\n" + self.PAGE)
            else:
                self.passed += 1
                lines[1:1] = [b"Connection: close"]
                writer.write(await self._asked(b"\r\n".join(lines) + body))
            await writer.drain()
        writer.close()

    async def _asked(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer


@contextlib.asynccontextmanager
async def behind_a_proxy(services: Services, most: int) -> AsyncGenerator[tuple[Proxy, SwitchboardClient]]:
    async with served(services) as running:
        token = await running.token("connector", "webhook:ci")
        proxy = Proxy(running.address, most)
        async with proxy.listening() as address, switchboard_at(f"{address}/mcp", token) as switchboard:
            yield proxy, switchboard


async def test_a_batch_that_a_proxy_finds_too_large_is_sent_in_parts(services: Services):
    items = [envelope(number, payload={"normalized_text": f"{number}" * 3000}) for number in range(8)]
    items[5] = envelope("huge", payload={"normalized_text": "x" * 20_000})
    async with behind_a_proxy(services, most=10_000) as (proxy, switchboard):
        results = await switchboard.ingest_batch(items)
    assert [type(each) for each in results] == [Receipt] * 5 + [BadInput] + [Receipt] * 2
    assert "too large" in str(results[5])
    assert proxy.refused > 2
    assert len(await peek(services.database, services.queues, "gateway", 100)) == 7


async def test_one_alone_that_a_proxy_finds_too_large_is_bad_input_and_the_next_one_passes(services: Services):
    async with behind_a_proxy(services, most=10_000) as (proxy, switchboard):
        error = await refusal(switchboard.ingest(envelope(1, payload={"normalized_text": "x" * 20_000})))
        assert isinstance(error, BadInput)
        assert not (await switchboard.ingest(envelope(2))).duplicate
    assert (proxy.refused, proxy.passed) == (1, 1)
