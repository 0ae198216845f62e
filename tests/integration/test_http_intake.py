"""`POST /v1/ingest`: accepted envelopes, and every bad input with its status, field and remedy."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from postroom.core.errors import DatabaseUnavailable
from postroom.intake.disk import DiskReserve
from postroom.operations.jobs.queues import peek
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.switchboard import Served, envelope, mail, served, services_on

MIB = 1024 * 1024


class Producer:
    """A program that speaks HTTP and no MCP."""

    def __init__(self, switchboard: Served, token: str, http: httpx2.AsyncClient) -> None:
        self.switchboard = switchboard
        self._token = token
        self._http = http

    async def post(self, content: Any, **headers: str) -> httpx2.Response:
        body = content if isinstance(content, bytes) else orjson.dumps(content)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", **names}
        return await self._http.post(f"{self.switchboard.address}/v1/ingest", content=body, headers=given)

    async def refused(self, content: Any, status: int = 400) -> dict[str, Any]:
        answer = await self.post(content)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()["error"]


@pytest.fixture
async def producer(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Producer]:
    """On SQLite: most of what is refused never gets as far as the database."""
    database = await open_database(tmp_path, None)
    async with served(services_on(database, clock)) as switchboard, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        yield Producer(switchboard, await switchboard.token("admin"), http)
    await database.close()


@pytest.fixture
async def producer_on_either(database: Database, clock: ManualClock) -> AsyncIterator[Producer]:
    async with served(services_on(database, clock)) as switchboard, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        yield Producer(switchboard, await switchboard.token("admin"), http)


async def test_an_envelope_is_accepted_and_a_second_one_recognised(producer_on_either: Producer):
    producer = producer_on_either
    first = await producer.post(envelope())
    assert first.status_code == 200
    assert first.json() == {"request_id": first.json()["request_id"], "status": "accepted", "duplicate": False}
    second = await producer.post(envelope())
    assert second.json() == {**first.json(), "duplicate": True}
    [message] = await peek(producer.switchboard.services.database, producer.switchboard.services.queues, "gateway")
    assert str(message.message_id) == first.json()["request_id"]


async def test_one_bad_member_of_a_batch_is_named_and_the_good_ones_are_accepted(producer_on_either: Producer):
    producer = producer_on_either
    answer = await producer.post([envelope(1), envelope(2, sender={"identity": ""}), envelope(3)])
    assert answer.status_code == 200
    content = answer.json()
    assert (content["accepted"], content["refused"]) == (2, 1)
    assert [each["index"] for each in content["results"]] == [0, 1, 2]
    bad = content["results"][1]
    assert (bad["status"], bad["error"]["code"], bad["error"]["field"]) == ("refused", "bad_input", "sender.identity")
    assert len(await peek(producer.switchboard.services.database, producer.switchboard.services.queues, "gateway")) == 2


BAD: dict[str, tuple[Any, str, str]] = {
    "wrong schema version": ({**envelope(), "schema_version": "ingest.v2"}, "schema_version", "ingest.md"),
    "unknown key": ({**envelope(), "sendr": {}}, "sendr", "did you mean 'sender'?"),
    "unknown inner key": (envelope(event={"kinds": "x"}), "event.kinds", "did you mean 'kind'?"),
    "naive time": (envelope(event={"observed_at": "2026-11-15T08:00:00"}), "event.observed_at", "add an offset"),
    "no time": (envelope(event={"observed_at": 5}), "event.observed_at", "ingest.md"),
    "empty identity": (envelope(sender={"identity": ""}), "sender.identity", "ingest.md"),
    "empty endpoint": (envelope(source={"endpoint_identity": ""}), "source.endpoint_identity", "ingest.md"),
    "unknown channel": (envelope(source={"channel": "fax"}), "source", "ingest.md"),
    "wrong pair": (envelope(source={"provider": "gmail"}), "source", "ingest.md"),
    "metadata with raw": (envelope(control={"ingestion_tier": "metadata"}), "envelope", "ingest.md"),
    "full without raw": (envelope(payload={"raw": None}), "envelope", "ingest.md"),
    "unknown tier": (mail(control={"policy_tier": "urgent"}), "control.policy_tier", "ingest.md"),
    "history from outside": (mail(control={"policy_tier": "history"}), "control.policy_tier", "ingest.md"),
    "nothing": ({}, "schema_version", "ingest.md"),
    "null": (None, "envelope", "ingest.md"),
    "a text": ("hello", "envelope", "ingest.md"),
    "a number": (5, "envelope", "ingest.md"),
    "an empty batch": ([], "body", "1 to 100"),
    "a batch of 101": ([envelope()] * 101, "body", "1 to 100"),
    "no JSON": (b"{", "body", "UTF-8"),
    "an empty body": (b"", "body", "UTF-8"),
    "not UTF-8": (b'{"a": "\xff"}', "body", "UTF-8"),
    "not a number": (b'{"a": NaN}', "body", "UTF-8"),
    "very deep JSON": (b"[" * 100_000 + b"]" * 100_000, "body", "UTF-8"),
    "a number that would be rounded": (b'{"payload": {"raw": {"id": 1000000000000000000000001}}}', "body", "as text"),
    "a lone surrogate": (b'{"a": "\\ud800"}', "body", "UTF-8"),
}


async def test_every_bad_input_is_refused_with_its_field_and_remedy(producer: Producer):
    found = {name: await producer.refused(content) for name, (content, _, _) in BAD.items()}
    assert {name: problem["field"] for name, problem in found.items()} == {name: bad[1] for name, bad in BAD.items()}
    for name, problem in found.items():
        assert problem["code"] == "bad_input", name
        assert problem["problem"], name
        assert BAD[name][2] in problem["remedy"], name
    assert await peek(producer.switchboard.services.database, producer.switchboard.services.queues, "gateway") == []


async def test_numbers_up_to_64_bits_are_kept_to_the_last_digit_and_tell_events_apart(producer: Producer):
    for number, id in enumerate((2**64 - 1, 2**64 - 2, -(2**63), 1234567890123456789)):
        await producer.post(envelope(number, payload={"raw": {"id": id}, "normalized_text": "the same words"}))
    kept = await peek(producer.switchboard.services.database, producer.switchboard.services.queues, "gateway")
    assert len(kept) == 4


async def test_json_deeper_than_an_envelope_may_be_is_refused(producer: Producer):
    deep: Any = "bottom"
    for _ in range(500):
        deep = {"inner": deep}
    problem = await producer.refused(json.dumps(envelope(payload={"raw": deep})).encode())
    assert problem["field"].startswith("payload")


async def test_a_key_that_stands_for_something_else_is_a_conflict_that_names_both(producer_on_either: Producer):
    producer = producer_on_either
    await producer.post(envelope(1, control={"idempotency_key": "k"}))
    problem = await producer.refused(envelope(2, control={"idempotency_key": "k"}), 409)
    assert (problem["code"], problem["field"]) == ("conflict", "control.idempotency_key")
    assert "event-1" in problem["problem"]
    assert "event-2" in problem["problem"]


async def test_ten_mebibytes_are_the_limit_declared_or_not(producer: Producer):
    too_large = b" " * (10 * MIB + 1)
    problem = await producer.refused(too_large, 413)
    assert (problem["code"], problem["field"]) == ("too_large", "body")

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * MIB

    token = await producer.switchboard.token("admin")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.post(f"{producer.switchboard.address}/v1/ingest", content=in_pieces(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


async def test_a_large_message_under_the_limit_is_accepted(producer: Producer):
    assert (await producer.post(envelope(payload={"normalized_text": "x" * (9 * MIB)}))).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
async def test_another_content_type_is_refused(producer: Producer, kind: str):
    answer = await producer.post(envelope(), Content_Type=kind)
    assert (answer.status_code, answer.json()["error"]["field"]) == (415, "content-type")


async def test_the_content_type_may_name_its_charset(producer: Producer):
    assert (await producer.post(envelope(), Content_Type="Application/JSON; charset=utf-8")).status_code == 200


async def test_a_connector_delivers_for_itself_only(producer: Producer):
    token = await producer.switchboard.token("connector", "webhook:ci")
    own = await producer.post(envelope(1), Authorization=f"Bearer {token}")
    other = await producer.post(envelope(2, source={"endpoint_identity": "other"}), Authorization=f"Bearer {token}")
    assert (own.status_code, other.status_code) == (200, 403)
    assert other.json()["error"]["field"] == "source.endpoint_identity"


async def test_a_full_disk_is_503_with_when_to_come_back(producer: Producer, clock: ManualClock, tmp_path: Path):
    full = DiskReserve(tmp_path, 512, free=lambda _folder: 0)
    services = services_on(producer.switchboard.services.database, clock, reserve=full)
    async with served(services) as switchboard, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        producer = Producer(switchboard, await switchboard.token("admin"), http)
        for content in (envelope(), [envelope()]):
            answer = await producer.post(content)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
            problem = answer.json()["error"]
            assert (problem["code"], problem["retry_after_s"]) == ("no_room", 60)
            assert str(tmp_path) not in answer.text


async def test_a_database_that_is_away_is_503_and_tells_nothing_of_it(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
):
    async def away(*_given: Any) -> None:
        raise DatabaseUnavailable("connection to 10.0.0.5 refused for user postroom")

    monkeypatch.setattr(producer.switchboard.services.intake, "ingest", away)
    answer = await producer.post(envelope())
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"
    assert "Retry-After" in answer.headers
    assert "10.0.0.5" not in answer.text


async def test_an_error_inside_is_500_and_tells_nothing(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def broken(*_given: Any) -> None:
        raise RuntimeError("canary")

    with monkeypatch.context() as patched:
        patched.setattr(producer.switchboard.services.intake, "ingest", broken)
        answer = await producer.post(envelope())
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "canary" not in answer.text + caplog.text
    assert (await producer.post(envelope())).status_code == 200


async def test_a_producer_that_leaves_in_the_middle_hurts_nobody(producer: Producer):
    port = int(producer.switchboard.address.rpartition(":")[2])
    token = await producer.switchboard.token("admin")
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/ingest HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    writer.write(head.encode())
    await writer.drain()
    writer.transport.abort()
    assert (await producer.post(envelope())).status_code == 200


async def test_sixty_four_at_once_are_all_accepted(producer: Producer):
    answers = await asyncio.gather(*(producer.post(envelope(number)) for number in range(64)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["request_id"] for answer in answers}) == 64


# Mail without an account.


def for_nobody(number: int = 1) -> dict[str, Any]:
    source = {"channel": "email", "provider": "gmail", "endpoint_identity": "gmail:user:nobody@example.com"}
    return mail(number, source=source)


async def test_mail_for_an_account_that_does_not_exist_is_refused_with_the_field_and_the_remedy(producer: Producer):
    error = await producer.refused(for_nobody(), 409)
    assert (error["code"], error["field"]) == ("account_unusable", "source.endpoint_identity")
    assert error["problem"] == "there is no account 'gmail:user:nobody@example.com'"
    assert "postroom account add" in error["remedy"]


async def test_in_an_array_only_the_mail_without_account_is_refused(producer: Producer):
    answer = (await producer.post([mail(1), for_nobody(2), envelope(3)])).json()
    assert (answer["accepted"], answer["refused"]) == (2, 1)
    assert answer["results"][1]["error"]["field"] == "source.endpoint_identity"
