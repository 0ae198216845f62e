"""Repetitions: all of the content is compared, never with something that failed, and a dropped one can be replayed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.inbox_desk import InboxDesk, event, metadata
from conftest import ManualClock
from postroom.core.errors import Conflict
from postroom.store.acceptance import Accepted
from postroom.store.engine.database import Database
from postroom.switchboard.intake import Intake

KEY = {"idempotency_key": "k"}


@pytest.fixture
async def desk(database: Database, clock: ManualClock) -> AsyncIterator[InboxDesk]:
    desk = InboxDesk(database, clock)
    await desk.open_account()
    yield desk
    await desk.close()


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
    desk: InboxDesk, pair: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    assert [each.duplicate for each in await desk.ingest(*pair)] == [False, False]
    assert await desk.states() == ["waiting", "waiting"]


async def failed(desk: InboxDesk) -> None:
    """Hands out what waits until it has failed."""
    for _ in range(desk.queues["gateway"].most_deliveries):
        await desk.nack(await desk.next(100))


async def test_what_repeats_something_that_failed_is_no_duplicate(desk: InboxDesk) -> None:
    await desk.ingest(words(1, "yes"))
    await failed(desk)
    (second,) = await desk.ingest(words(2, "yes"))
    assert not second.duplicate
    assert await desk.states() == ["failed", "waiting"]
    assert await desk.ingest(words(3, "yes")) == [Accepted(second.request_id, True, "text")]


@pytest.mark.parametrize("control", [{}, KEY], ids=["by event", "by key"])
async def test_an_event_that_failed_is_accepted_when_it_is_handed_in_again(
    desk: InboxDesk, control: dict[str, Any]
) -> None:
    (first,) = await desk.ingest(event(control=control))
    await failed(desk)
    again, known = await desk.ingest(event(control=control), event(control=control))
    assert not again.duplicate
    assert again.request_id != first.request_id
    assert known == Accepted(again.request_id, True, "key" if control else "event")
    assert await desk.next_ids() == [again.request_id]


async def test_a_dropped_copy_of_something_that_failed_is_accepted_when_it_is_handed_in_again(desk: InboxDesk) -> None:
    await desk.ingest(words(1, "yes"), words(2, "yes"))
    await failed(desk)
    again, other = await desk.ingest(words(2, "yes"), words(1, "yes"))
    assert (again.duplicate, other) == (False, Accepted(again.request_id, True, "text"))
    assert await desk.states() == ["failed", "duplicate", "waiting", "duplicate"]


async def test_of_many_who_hand_in_again_what_failed_one_is_accepted(
    desk: InboxDesk, second_database: Database
) -> None:
    await desk.ingest(event())
    await failed(desk)
    other = Intake(second_database, None, desk.clock)
    answers = await asyncio.gather(*(intake.ingest(event()) for intake in (desk.intake, other) for _ in range(10)))
    assert sum(not each.duplicate for each in answers) == 1
    assert len({each.request_id for each in answers}) == 1
    assert sorted(await desk.states()) == ["failed", "waiting"]


async def test_an_event_that_failed_stays_its_senders(desk: InboxDesk) -> None:
    await desk.ingest(event())
    await failed(desk)
    with pytest.raises(Conflict, match="event-1 from builder"):
        await desk.intake.ingest(event(sender={"identity": "mallory"}))


async def test_a_dropped_duplicate_is_replayed_by_its_name_and_by_no_window(desk: InboxDesk) -> None:
    since = desk.clock()
    await desk.ingest(words(1, "yes"), words(2, "yes"))
    await desk.ack(await desk.next())
    dropped = next(row for row in await desk.look() if row.state == "duplicate")
    desk.clock.forward(1)
    assert len(await desk.replay("gateway", since=since)) == 1
    await desk.ack(await desk.next())
    (copy,) = await desk.replay("gateway", since=since, ids=[dropped.id])
    (delivery,) = await desk.next()
    assert (delivery.message_id, delivery.envelope["event"]["external_event_id"]) == (copy, "event-2")


async def test_metadata_that_failed_after_the_whole_message_came_is_no_reason_to_accept_it_again(
    desk: InboxDesk,
) -> None:
    (first,) = await desk.ingest(metadata(event()))
    for _ in range(desk.queues["gateway"].most_deliveries - 1):
        await desk.nack(await desk.next())
    await desk.ingest(event())
    outline, whole = await desk.next(2)
    await desk.nack([outline])
    await desk.ack([whole])
    assert await desk.states() == ["failed", "done"]
    assert await desk.ingest(event()) == [Accepted(first.request_id, True, "event")]
