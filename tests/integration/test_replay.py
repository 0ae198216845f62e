"""Replay: past events pass through the gateway again, as copies that name their originals, and it is audited."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from mcp.client import Client

from postroom.core.jobs.types import CATALOGUE
from postroom.intake.dispatcher import Dispatcher
from postroom.operations.caller import Caller
from postroom.operations.jobs.queues import replay
from postroom.operations.people.audit import signature
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake import history
from postroom.store.jobs import jobs
from postroom.store.mail import mail as mail_store
from postroom.store.people.audit import AuditView, list_audit
from postroom.store.people.tokens import read_token
from support.clocks import ManualClock
from support.store.inbox_setup import look
from support.switchboard import Served, envelope, mail, served, services_on

MORNING = "2026-11-15T08:00:00Z"


@pytest.fixture
async def switchboard(database: Database, clock: ManualClock) -> AsyncIterator[Served]:
    async with served(services_on(database, clock)) as running:
        yield running


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    return result.structured_content


async def take(agent: Client, most: int = 100, wait_s: float = 0) -> list[dict[str, Any]]:
    """What a whole round of an agent yields: taken, and ended."""
    taken = (await ask(agent, "queue.next", queue="gateway", max=most, wait_s=wait_s))["messages"]
    if taken:
        refs = [{name: each[name] for name in ("message_id", "lease_token")} for each in taken]
        answer = await ask(agent, "queue.ack", items=refs)
        assert {each["status"] for each in answer["results"]} == {"acked"}
    return taken


async def audited(database: Database) -> list[AuditView]:
    return await database.run(list_audit(10, action="queue.replay"))


async def originals(database: Database) -> dict[UUID, UUID]:
    """The copies that there are, with what each is a copy of."""
    return {row.id: row.copy_of for row in await look(database) if row.copy_of is not None}


def ids_of(messages: list[dict[str, Any]]) -> list[str]:
    return [each["message_id"] for each in messages]


async def test_what_was_replayed_goes_through_the_whole_round_again(
    switchboard: Served, database: Database, clock: ManualClock
):
    secret = await switchboard.token("admin")
    async with (
        switchboard.client(await switchboard.token("connector", "webhook:ci")) as connector,
        switchboard.client(await switchboard.token("agent")) as agent,
        switchboard.client(secret) as admin,
    ):
        await ask(connector, "ingest.batch", items=[envelope("a"), envelope("b", event={"kind": "deploy.failed"})])
        first = await take(agent)
        clock.forward(60)
        waiting = asyncio.create_task(take(agent, wait_s=60))
        replayed = await ask(admin, "queue.replay", queue="gateway", since=MORNING)
        again = (await waiting) + await take(agent)
    assert [each["tier"] for each in again] == [each["tier"] for each in first] == ["P1", "P2"]
    assert [each["envelope"] for each in again] == [each["envelope"] for each in first]
    assert [each["attempts"] for each in again] == [1, 1]
    assert replayed["replayed"] == 2
    assert set(replayed["message_ids"]) == set(ids_of(again))
    assert not set(ids_of(again)) & set(ids_of(first))
    assert await originals(database) == {
        UUID(copy): UUID(original) for copy, original in zip(ids_of(again), ids_of(first), strict=True)
    }
    assert await database.run(history.count_states("gateway")) == {("P1", "done"): 2, ("P2", "done"): 2}
    [entry] = await audited(database)
    claimed = read_token(secret)
    assert claimed is not None
    assert (entry.actor, entry.role, entry.object_type) == (f"token:{claimed.id}", "admin", "queue")
    assert (entry.object_id, entry.at) == ("gateway", clock())
    assert entry.after is not None
    assert (entry.after["since"], entry.after["until"]) == ("2026-11-15T08:00:00+00:00", "2026-11-15T08:01:00+00:00")
    assert entry.after["count"] == 2


async def test_the_copies_are_queued_in_the_order_of_their_originals(switchboard: Served, clock: ManualClock):
    services = switchboard.services
    accepted = await services.intake.ingest_batch([envelope(number) for number in range(60)])
    clock.forward(1)
    async with switchboard.client(await switchboard.token("admin")) as admin:
        await take(admin)
        copies = await ask(admin, "queue.replay", queue="gateway", since=MORNING, max=50)
        again = await take(admin)
    assert len(accepted) == 60
    assert ids_of(again) == copies["message_ids"]
    assert [each["envelope"]["untrusted"]["payload"]["raw"]["number"] for each in again] == [
        str(number) for number in range(50)
    ]


async def test_a_replayed_event_is_still_known_by_its_first_id(switchboard: Served, clock: ManualClock):
    intake = switchboard.services.intake
    first = await intake.ingest(envelope("known", control={"idempotency_key": "once"}))
    async with switchboard.client(await switchboard.token("admin")) as admin:
        await take(admin)
        clock.forward(60)
        assert (await ask(admin, "queue.replay", queue="gateway", since=MORNING))["replayed"] == 1
    again = await intake.ingest(envelope("known", control={"idempotency_key": "once"}))
    assert (again.request_id, again.duplicate) == (first.request_id, True)


async def test_what_still_waits_is_not_replayed_and_a_copy_only_by_its_name(switchboard: Served, clock: ManualClock):
    intake = switchboard.services.intake
    async with switchboard.client(await switchboard.token("admin")) as admin:

        async def replayed(**more: Any) -> list[str]:
            clock.forward(1)
            return (await ask(admin, "queue.replay", queue="gateway", since=MORNING, **more))["message_ids"]

        await intake.ingest(envelope("once"))
        assert await replayed() == []
        await take(admin)
        [copy] = await replayed()
        assert await take(admin)
        [second] = await replayed()
        assert second != copy
        assert len(await replayed(ids=[copy])) == 1


async def test_what_ended_unread_can_be_had_after_all(switchboard: Served, database: Database, clock: ManualClock):
    """Members of a summary and what was dropped for its age come as they were; the summary itself does not."""
    intake, buffer = switchboard.services.intake, switchboard.services.buffer

    def noise(name: str) -> dict[str, Any]:
        return envelope(name, event={"kind": "test.run"})

    async with switchboard.client(await switchboard.token("admin")) as admin:
        await intake.ingest_batch([noise("one"), noise("two")])
        [summary] = await take(admin)
        assert summary["member_count"] == 2
        clock.forward(1)
        await intake.ingest(noise("dropped"))
        clock.forward(61)
        await buffer.sweep()
        before = await database.run(history.count_states("gateway"))
        assert before == {("P3", "coalesced"): 2, ("P3", "done"): 1, ("P3", "auto_acked"): 1}
        assert (await ask(admin, "queue.replay", queue="gateway", since=MORNING))["replayed"] == 3
        [again] = await take(admin)
    assert again["member_count"] == 3
    assert "3 × test.run" in again["envelope"]["untrusted"]["payload"]["normalized_text"]
    assert set(again["members"]) <= {str(copy) for copy in await originals(database)}


async def test_replayed_mail_is_not_kept_twice(switchboard: Served, database: Database, clock: ManualClock):
    services = switchboard.services
    identity = "gmail:user:ada@example.com"
    await database.run(mail_store.keep_account(new_id(), "gmail", identity, "ada@example.com", clock()))
    dispatcher = Dispatcher(database, CATALOGUE, services.buffer, clock=clock)
    await services.intake.ingest(mail(1))
    assert await dispatcher.tick() == 1
    clock.forward(1)
    signed, since = signature("test", "admin"), clock().replace(hour=1)
    assert await replay(Caller(database, signed, clock), services.queues, "email", since=since)
    assert await dispatcher.tick() == 1
    [job] = await database.run(jobs.list_jobs(limit=10))
    assert job.type == "classify"
    assert await database.run(history.count_states("email")) == {("default", "done"): 2}


async def test_a_replay_that_finds_nothing_writes_nothing(switchboard: Served, database: Database, clock: ManualClock):
    await switchboard.services.intake.ingest(envelope(1))
    clock.forward(60)
    async with switchboard.client(await switchboard.token("admin")) as admin:
        for narrowed in ({"kinds": ["no.such"]}, {"ids": [str(new_id())]}, {"until": MORNING.replace("08", "07")}):
            given = {"queue": "gateway", "since": "2026-11-15T06:00:00Z", **narrowed}
            assert await ask(admin, "queue.replay", **given) == {"message_ids": [], "replayed": 0}
    assert await audited(database) == []
    assert await originals(database) == {}
