"""Acceptance: each message once, under one id, however often and by however many it is sent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from typing import Any

import pytest

from postroom.core.errors import BadInput, Conflict, Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.intake.dispatcher import Dispatcher
from postroom.store.engine.database import Database
from postroom.store.intake.acceptance import Accepted
from postroom.store.intake.inbox import prune_inbox
from postroom.store.jobs import jobs
from support.backfills import NAMED
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.inbox_setup import InboxSetup, event, kind, mail, metadata, select

KEY = {"idempotency_key": "k"}


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


async def refusal(asked: Awaitable[object]) -> Conflict:
    with pytest.raises(Conflict) as raised:
        await asked
    return raised.value


def words(number: int, text: str, **parts: dict[str, Any]) -> dict[str, Any]:
    return event(number, **{"payload": {"raw": {}, "normalized_text": text}, **parts})


# Known by key and by event.


@pytest.mark.parametrize(
    ("first", "second", "known_by"),
    [
        (event(), event(), "event"),
        (event(control=KEY), event(control=KEY), "key"),
        (event(), event(control=KEY), "event"),
        (event(control=KEY), event(), "event"),
        (event(control=KEY), event(control={"idempotency_key": "another"}), "event"),
        (mail(), mail(), "event"),
        (mail(control=KEY), mail(control=KEY), "key"),
    ],
)
async def test_the_same_message_again_is_a_success_with_the_first_id(
    setup: InboxSetup, first: dict[str, Any], second: dict[str, Any], known_by: str
) -> None:
    (accepted,) = await setup.ingest(first)
    assert not accepted.duplicate
    assert await setup.ingest(second, second) == [
        Accepted(accepted.request_id, True, known_by),
        Accepted(accepted.request_id, True, "key" if "idempotency_key" in second.get("control", {}) else known_by),
    ]
    assert [row.id for row in await setup.look()] == [accepted.request_id]


@pytest.mark.parametrize(
    "copy",
    [
        mail(payload={"raw": {"labels": ["INBOX", "UNREAD", "Label_7"]}}),
        mail(payload={"normalized_text": "words, decoded otherwise"}),
        mail(payload={"attachments": [{"filename": "a.pdf", "size": 3}]}),
        mail(event={"observed_at": "2026-11-16T09:00:00+02:00"}),
        mail(event={"external_thread_id": "t1"}),
        mail(tier="high_priority"),
        mail(control={**NAMED, "trace_context": {"traceparent": "x"}}),
    ],
    ids=["labels", "words", "attachments", "observed_at", "thread", "tier", "backfill"],
)
async def test_what_may_differ_between_copies_makes_no_new_message_and_no_conflict(
    setup: InboxSetup, copy: dict[str, Any]
) -> None:
    await setup.open_backfill()
    (first,) = await setup.ingest(mail())
    assert await setup.ingest(copy) == [Accepted(first.request_id, True, "event")]
    assert len(await setup.look()) == 1


async def test_a_message_is_known_after_a_restart_and_after_it_was_pruned(setup: InboxSetup) -> None:
    (first,) = await setup.ingest(event(control=KEY))
    await setup.ack(await setup.next())
    setup.clock.forward(60)
    assert await setup.database.run(prune_inbox("gateway", setup.clock(), 10)) == 1
    await setup.restart()
    assert await setup.look() == []
    assert await setup.ingest(event(control=KEY), event()) == [
        Accepted(first.request_id, True, "key"),
        Accepted(first.request_id, True, "event"),
    ]
    assert "event-1" in str(await refusal(setup.intake.ingest(event(2, control=KEY))))
    assert await setup.look() == []


async def test_names_are_distinguished_by_case_and_by_every_character(setup: InboxSetup) -> None:
    names = ("a", "A", "a ", "ä", "a\u0308", "a\u200b")
    answers = await setup.ingest(*(event(event={"external_event_id": name}, payload=_no_words()) for name in names))
    keyed = (event(n, control={"idempotency_key": name}, payload=_no_words()) for n, name in enumerate(names))
    answers += await setup.ingest(*keyed)
    assert not any(answer.duplicate for answer in answers)


def _no_words() -> dict[str, Any]:
    return {"normalized_text": ""}


async def test_the_longest_names_and_the_oddest_words_are_kept_as_they_came(setup: InboxSetup) -> None:
    longest = "".join(chr(0x1F300 + n) for n in range(512))
    text = "\0\x1b[31m \u2028 ' \\ \" \\u0000 😀"
    given = event(
        source={"endpoint_identity": longest},
        event={"external_event_id": longest, "external_thread_id": longest, "kind": longest[:128]},
        sender={"identity": longest},
        payload={"raw": {"\0": ["\0", text, 1e300, -0.0, None, True]}, "normalized_text": text},
        control={"idempotency_key": longest},
    )
    (first, again) = await setup.ingest(given, given)
    assert again == Accepted(first.request_id, True, "key")
    (delivery,) = await setup.next()
    assert delivery.envelope["payload"]["raw"] == given["payload"]["raw"]
    assert delivery.envelope["payload"]["normalized_text"] == text
    assert delivery.envelope["sender"] == {"identity": longest}


# Conflicts.


@pytest.mark.parametrize(
    "other",
    [
        event(2, control=KEY),
        event(source={"endpoint_identity": "cd"}, control=KEY),
        event(source={"provider": "internal"}, control=KEY),
        mail(control=KEY),
    ],
    ids=["event id", "endpoint", "provider", "channel"],
)
async def test_a_key_that_stands_for_another_event_is_a_conflict_that_names_both(
    setup: InboxSetup, other: dict[str, Any]
) -> None:
    (first,) = await setup.ingest(event(control=KEY))
    before = await dump(setup.database)
    conflict = await refusal(setup.intake.ingest(other))
    assert conflict.field == "control.idempotency_key"
    assert "webhook webhook ci event-1" in str(conflict)
    assert str(first.request_id) in str(conflict)
    source, sender = other["source"], other["sender"]["identity"]
    told = "webhook ci event-1 from builder (request" in str(conflict)
    assert told == (source["endpoint_identity"] == "ci"), "who sent it is told only to the endpoint it came to"
    mine = (
        f"{source['channel']} {source['provider']} {source['endpoint_identity']} {other['event']['external_event_id']}"
    )
    assert f"{mine} from {sender}" in str(conflict)
    assert await dump(setup.database) == before


@pytest.mark.parametrize("control", [{}, KEY], ids=["by event", "by key"])
async def test_the_same_event_from_another_sender_is_a_conflict_that_names_both(
    setup: InboxSetup, control: dict[str, Any]
) -> None:
    await setup.ingest(event(control=control))
    before = await dump(setup.database)
    conflict = await refusal(setup.intake.ingest(event(control=control, sender={"identity": "mallory"})))
    assert "event-1 from builder" in str(conflict)
    assert "event-1 from mallory" in str(conflict)
    assert await dump(setup.database) == before


async def test_a_refused_message_leaves_no_key_behind(setup: InboxSetup) -> None:
    await setup.ingest(event(1))
    await refusal(setup.intake.ingest(event(1, sender={"identity": "mallory"}, control=KEY)))
    assert not (await setup.ingest(event(2, control=KEY)))[0].duplicate


# Known by text.


async def test_three_times_the_same_words_with_three_ids_are_one_message(setup: InboxSetup) -> None:
    answers = await setup.ingest(*(words(n, text) for n, text in enumerate(["push changes", " push  changes\n"] * 2)))
    first = answers[0].request_id
    assert answers == [Accepted(first, False), *[Accepted(first, True, "text")] * 3]
    rows = await setup.look()
    assert [row.state for row in rows] == ["waiting", "duplicate", "duplicate", "duplicate"]
    assert {row.linked_to for row in rows[1:]} == {first}
    assert all(row.reason for row in rows[1:])
    assert await setup.next_ids() == [first]


@pytest.mark.parametrize(("seconds", "duplicate"), [(0, True), (29.999, True), (30, False), (31, False)])
async def test_the_same_words_count_as_the_same_for_thirty_seconds(
    setup: InboxSetup, seconds: float, duplicate: bool
) -> None:
    await setup.ingest(words(1, "yes"))
    setup.clock.forward(seconds)
    assert (await setup.ingest(words(2, "yes")))[0].duplicate is duplicate


async def test_the_thirty_seconds_begin_with_the_first_and_again_with_the_next_first(setup: InboxSetup) -> None:
    found: list[bool] = []
    for number in range(7):
        found += [each.duplicate for each in await setup.ingest(words(number, "yes"))]
        setup.clock.forward(10)
    assert found == [False, True, True, False, True, True, False]


@pytest.mark.parametrize(
    "other",
    [
        words(2, "yes", sender={"identity": "someone else"}),
        words(2, "yes", event={"external_event_id": "2", "external_thread_id": "t2"}),
        words(2, "yes", event={"external_event_id": "2", **kind("note")}),
        words(2, "yes", source={"endpoint_identity": "cd"}),
        words(2, "yes", source={"provider": "internal"}),
        words(2, "Yes"),
    ],
    ids=["sender", "thread", "kind", "endpoint", "provider", "words"],
)
async def test_the_same_words_of_another_or_elsewhere_are_another_message(
    setup: InboxSetup, other: dict[str, Any]
) -> None:
    await setup.ingest(words(1, "yes"))
    assert not (await setup.ingest(other))[0].duplicate


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_no_words_are_never_the_same_words(setup: InboxSetup, text: str) -> None:
    assert not any(each.duplicate for each in await setup.ingest(words(1, text), words(2, text)))


async def test_two_mails_with_the_same_words_are_two_mails(setup: InboxSetup) -> None:
    same = {"normalized_text": "Thank you!"}
    assert not any(each.duplicate for each in await setup.ingest(mail(1, payload=same), mail(2, payload=same)))


async def test_an_event_known_by_its_words_is_known_under_the_first_id_for_good(setup: InboxSetup) -> None:
    first, _ = await setup.ingest(words(1, "yes"), words(2, "yes"))
    setup.clock.forward(3600)
    assert await setup.ingest(words(2, "yes")) == [Accepted(first.request_id, True, "event")]
    assert len(await setup.look()) == 2


# Metadata and full copies.


async def test_a_full_copy_upgrades_what_was_known_by_its_metadata_once(setup: InboxSetup) -> None:
    (first,) = await setup.ingest(metadata(mail()))
    assert await setup.ingest(metadata(mail()), mail(), mail(), metadata(mail())) == [
        Accepted(first.request_id, True, "event"),
        Accepted(first.request_id, True, "upgrade"),
        Accepted(first.request_id, True, "event"),
        Accepted(first.request_id, True, "event"),
    ]
    rows = await setup.look()
    assert [(row.copy_of, row.state) for row in rows] == [(None, "waiting"), (first.request_id, "waiting")]


@pytest.mark.parametrize("full_tier", ["default", "high_priority"], ids=["after it", "before it"])
async def test_an_upgraded_mail_is_one_message_that_is_full_and_classified(setup: InboxSetup, full_tier: str) -> None:
    """Whether the full copy comes to its turn after the metadata, or overtakes it."""
    await setup.ingest(metadata(mail()), mail(tier=full_tier))
    assert await Dispatcher(setup.database, CATALOGUE, setup.buffer, clock=setup.clock).tick() == 2
    assert await setup.states() == ["done", "done"]
    assert await select(setup.database, "SELECT ingestion_tier, subject FROM messages") == [("full", "Subject 1")]
    found = await setup.database.run(jobs.list_jobs(limit=10))
    assert [job.type for job in found] == ["classify"] * (2 if full_tier == "default" else 1)


async def test_an_upgrade_after_the_metadata_was_dispatched_is_classified_then(setup: InboxSetup) -> None:
    dispatcher = Dispatcher(setup.database, CATALOGUE, setup.buffer, clock=setup.clock)
    await setup.ingest(metadata(mail()))
    await dispatcher.tick()
    assert len(await setup.database.run(jobs.list_jobs(limit=10))) == 1
    await setup.ingest(mail())
    await dispatcher.tick()
    assert await select(setup.database, "SELECT ingestion_tier, subject FROM messages") == [("full", "Subject 1")]
    assert len(await setup.database.run(jobs.list_jobs(limit=10))) == 2


async def test_metadata_of_what_is_full_already_is_a_plain_duplicate(setup: InboxSetup) -> None:
    (first,) = await setup.ingest(mail())
    assert await setup.ingest(metadata(mail())) == [Accepted(first.request_id, True, "event")]
    assert len(await setup.look()) == 1


async def test_of_metadata_and_full_in_one_batch_the_full_one_is_kept(setup: InboxSetup) -> None:
    answers = await setup.batch(metadata(mail()), mail())
    (row,) = await setup.look()
    assert answers == [Accepted(row.id, True, "event"), Accepted(row.id, False)]
    assert (await setup.next(1, "email"))[0].envelope["payload"]["raw"] is not None


# Where it goes.


async def test_each_goes_to_the_tier_of_its_queue(setup: InboxSetup) -> None:
    await setup.open_backfill()
    await setup.batch(mail(1), mail(2, "high_priority"), mail(3, control=NAMED), event(4))
    assert [(row.queue, row.tier) for row in await setup.look()] == [
        ("email", "default"),
        ("email", "high_priority"),
        ("email", "history"),
        ("gateway", "P2"),
    ]


async def test_whoever_is_bound_to_an_endpoint_delivers_for_no_other(setup: InboxSetup) -> None:
    assert not (await setup.intake.ingest(event(1), bound_to="ci")).duplicate
    with pytest.raises(Refused, match="this token is for 'cd'"):
        await setup.intake.ingest(event(2), bound_to="cd")
    good, bad = await setup.intake.ingest_batch([event(3), event(4, source={"endpoint_identity": "cd"})], "ci")
    assert isinstance(good, Accepted)
    assert isinstance(bad, Refused)
    assert len(await setup.look()) == 2


async def test_whoever_waits_is_woken_by_what_is_accepted(setup: InboxSetup) -> None:
    waiting = asyncio.create_task(setup.buffer.next("gateway", 1, timedelta(seconds=30)))
    (accepted,) = await setup.ingest(event())
    async with asyncio.timeout(PATIENCE_S):
        assert [each.message_id for each in await waiting] == [accepted.request_id]


@pytest.mark.parametrize("count", [0, 101])
async def test_a_batch_holds_one_to_a_hundred(setup: InboxSetup, count: int) -> None:
    with pytest.raises(BadInput, match="1 to 100"):
        await setup.batch(*(event(n) for n in range(count)))
    assert await setup.look() == []
