"""Repetitions: all content is compared, never with a failed message, and a dropped one can be replayed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroom.core.errors import Conflict
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database
from postroom.store.intake.acceptance import Accepted
from support.clocks import ManualClock
from support.store.inbox_setup import InboxSetup, event, metadata

KEY = {"idempotency_key": "k"}


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


def words(number: int, text: str, **parts: dict[str, Any]) -> dict[str, Any]:
    return event(number, **{"payload": {"raw": {}, "normalized_text": text}, **parts})


def photo(filename: str) -> dict[str, Any]:
    attachments = [{"filename": filename, "mime_type": "image/jpeg", "size": 3}]
    return {"raw": {}, "normalized_text": "the view", "attachments": attachments}


def about(number: int, service: str, name: str = "deploy.failed") -> dict[str, Any]:
    return event(
        number,
        event={"external_event_id": f"e-{number}", "kind": name},
        payload={"raw": {"service": service}, "normalized_text": "The deploy failed"},
    )


@pytest.mark.parametrize(
    "pair",
    [
        (about(1, "web"), about(2, "api")),
        (about(1, "yes", "callback_query"), about(2, "no", "callback_query")),
        (words(1, "the view", payload=photo("a.jpg")), words(2, "the view", payload=photo("b.jpg"))),
    ],
    ids=["two services", "two buttons", "two photos"],
)
async def test_the_same_words_about_something_else_are_another_message(
    setup: InboxSetup, pair: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    assert [each.duplicate for each in await setup.ingest(*pair)] == [False, False]
    assert await setup.states() == ["waiting", "waiting"]


async def failed(setup: InboxSetup) -> None:
    """Hands out what waits until it has failed."""
    for _ in range(setup.queues["gateway"].most_deliveries):
        await setup.nack(await setup.next(100))


async def test_what_repeats_something_that_failed_is_no_duplicate(setup: InboxSetup) -> None:
    await setup.ingest(words(1, "yes"))
    await failed(setup)
    (second,) = await setup.ingest(words(2, "yes"))
    assert not second.duplicate
    assert await setup.states() == ["failed", "waiting"]
    assert await setup.ingest(words(3, "yes")) == [Accepted(second.request_id, True, "text")]


@pytest.mark.parametrize("control", [{}, KEY], ids=["by event", "by key"])
async def test_an_event_that_failed_is_accepted_when_it_is_sent_again(
    setup: InboxSetup, control: dict[str, Any]
) -> None:
    (first,) = await setup.ingest(event(control=control))
    await failed(setup)
    again, known = await setup.ingest(event(control=control), event(control=control))
    assert not again.duplicate
    assert again.request_id != first.request_id
    assert known == Accepted(again.request_id, True, "key" if control else "event")
    assert await setup.next_ids() == [again.request_id]


async def test_a_dropped_copy_of_something_that_failed_is_accepted_when_it_is_sent_again(
    setup: InboxSetup,
) -> None:
    await setup.ingest(words(1, "yes"), words(2, "yes"))
    await failed(setup)
    again, other = await setup.ingest(words(2, "yes"), words(1, "yes"))
    assert (again.duplicate, other) == (False, Accepted(again.request_id, True, "text"))
    assert await setup.states() == ["failed", "duplicate", "waiting", "duplicate"]


async def test_of_many_who_deliver_again_what_failed_one_is_accepted(
    setup: InboxSetup, second_database: Database
) -> None:
    await setup.ingest(event())
    await failed(setup)
    other = Intake(second_database, None, setup.clock)
    answers = await asyncio.gather(*(intake.ingest(event()) for intake in (setup.intake, other) for _ in range(10)))
    assert sum(not each.duplicate for each in answers) == 1
    assert len({each.request_id for each in answers}) == 1
    assert sorted(await setup.states()) == ["failed", "waiting"]


async def test_an_event_that_failed_stays_its_senders(setup: InboxSetup) -> None:
    await setup.ingest(event())
    await failed(setup)
    with pytest.raises(Conflict, match="event-1 from builder"):
        await setup.intake.ingest(event(sender={"identity": "mallory"}))


async def test_a_dropped_duplicate_is_replayed_by_its_name_and_by_no_window(setup: InboxSetup) -> None:
    since = setup.clock()
    await setup.ingest(words(1, "yes"), words(2, "yes"))
    await setup.ack(await setup.next())
    dropped = next(row for row in await setup.look() if row.state == "duplicate")
    setup.clock.forward(1)
    assert len(await setup.replay("gateway", since=since)) == 1
    await setup.ack(await setup.next())
    (copy,) = await setup.replay("gateway", since=since, ids=[dropped.id])
    (delivery,) = await setup.next()
    assert (delivery.message_id, delivery.envelope["event"]["external_event_id"]) == (copy, "event-2")


async def test_metadata_that_failed_after_the_whole_message_came_is_no_reason_to_accept_it_again(
    setup: InboxSetup,
) -> None:
    (first,) = await setup.ingest(metadata(event()))
    for _ in range(setup.queues["gateway"].most_deliveries - 1):
        await setup.nack(await setup.next())
    await setup.ingest(event())
    outline, whole = await setup.next(2)
    await setup.nack([outline])
    await setup.ack([whole])
    assert await setup.states() == ["failed", "done"]
    assert await setup.ingest(event()) == [Accepted(first.request_id, True, "event")]
