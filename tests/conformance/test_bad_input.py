"""Bad input is refused by an error that names the field and the remedy, and nothing is written."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from postroom.core.errors import BadInput, UnknownJobType
from postroom.jobs.queue import JobQueue
from support.store.dump import dump
from support.store.job_setup import TYPES, JobSetup

NAIVE = datetime(2026, 11, 15, 9)  # noqa: DTZ001 - the point
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown type": ({"type": "plane"}, "type", "did you mean 'plain'"),
    "a type that is like no other": ({"type": "zzz"}, "type", "known are: other, plain, sync"),
    "a payload that is a list": ({"payload": [1]}, "payload", "use an object"),
    "a payload that is a text": ({"payload": "{}"}, "payload", "use an object"),
    "no payload": ({"payload": None}, "payload", "use an object"),
    "a payload with a key that is no text": ({"payload": {1: 2}}, "payload", "use objects, lists, text"),
    "a payload with a value that is no JSON": ({"payload": {"a": object()}}, "payload", "use objects, lists, text"),
    "a payload with half a character": ({"payload": {"a": "\ud800"}}, "payload", "use objects, lists, text"),
    "a payload that is too large": ({"payload": {"a": "x" * 1_048_577}}, "payload", "keep it under"),
    "a key over 512 characters": ({"key": "k" * 513}, "idempotency_key", "use 1 to 512"),
    "an empty key": ({"key": ""}, "idempotency_key", "use 1 to 512"),
    "a key with a NUL": ({"key": "a\0b"}, "idempotency_key", "leave it out"),
    "a key with half a character": ({"key": "a\ud800"}, "idempotency_key", ""),
    "negative attempts": ({"max_attempts": -1}, "max_attempts", "from 1 to 1000"),
    "no attempts": ({"max_attempts": 0}, "max_attempts", "from 1 to 1000"),
    "too many attempts": ({"max_attempts": 1001}, "max_attempts", "from 1 to 1000"),
    "half an attempt": ({"max_attempts": 2.5}, "max_attempts", "from 1 to 1000"),
    "a priority that is too high": ({"priority": 1001}, "priority", "from -1000 to 1000"),
    "a priority that is too low": ({"priority": -1001}, "priority", "from -1000 to 1000"),
    "a priority that is no whole number": ({"priority": 0.5}, "priority", "from -1000 to 1000"),
    "a priority that is no int": ({"priority": 1.0}, "priority", "from -1000 to 1000"),
    "a priority that is a truth value": ({"priority": True}, "priority", "from -1000 to 1000"),
    "a trace with a NUL": ({"traceparent": "00-\0"}, "traceparent", ""),
    "a trace with half a character": ({"traceparent": "\udfff"}, "traceparent", ""),
}


@pytest.mark.parametrize("case", CASES)
async def test_an_enqueue_is_refused_with_field_and_remedy_and_nothing_is_written(setup: JobSetup, case: str) -> None:
    asked, field, remedy = CASES[case]
    queue = JobQueue(setup.database, TYPES, setup.clock)
    before = await dump(setup.database, receipts=True)
    everything: dict[str, Any] = {"type": "plain", "payload": {}, **asked}
    with pytest.raises(BadInput) as refused:
        await queue.enqueue(**everything)
    assert refused.value.field == field
    assert remedy in refused.value.remedy
    assert str(refused.value).startswith(f"{field}: ")
    assert await dump(setup.database, receipts=True) == before


async def test_an_unknown_type_has_an_error_of_its_own(setup: JobSetup) -> None:
    with pytest.raises(UnknownJobType):
        await JobQueue(setup.database, TYPES).enqueue("nothing", {})


async def test_a_date_without_a_zone_is_refused_with_field_and_remedy(setup: JobSetup) -> None:
    before = await dump(setup.database, receipts=True)
    with pytest.raises(BadInput, match=r"not_before: 2026-11-15T09:00:00 has no time zone; add one") as refused:
        await JobQueue(setup.database, TYPES).enqueue_scheduled("plain", {}, NAIVE)
    assert refused.value.field == "not_before"
    assert await dump(setup.database, receipts=True) == before


async def test_a_date_beyond_the_calendar_is_refused_with_field_and_remedy(setup: JobSetup) -> None:
    """In its own zone it is the last moment there is; in UTC there is no such moment."""
    moment = datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))
    with pytest.raises(BadInput) as refused:
        await JobQueue(setup.database, TYPES).enqueue_scheduled("plain", {}, moment)
    assert refused.value.field == "not_before"


@pytest.mark.parametrize("year", [1, 999, 9999])
async def test_a_date_far_away_is_kept_as_it_is(setup: JobSetup, year: int) -> None:
    moment = datetime(year, 6, 1, tzinfo=UTC)
    accepted = await JobQueue(setup.database, TYPES, setup.clock).enqueue_scheduled("plain", {}, moment)
    assert (await setup.show(accepted.id)).not_before == moment


@pytest.mark.parametrize("asked", [{"key": "\ud800"}, {"max_attempts": 2.5}, {"traceparent": "\0"}], ids=str)
async def test_bad_input_does_not_hurt_those_who_enqueue_at_the_same_time(
    setup: JobSetup, asked: dict[str, Any]
) -> None:
    queue = JobQueue(setup.database, TYPES, setup.clock)
    answers = await asyncio.gather(
        *(queue.enqueue("plain", {"n": n}) for n in range(5)),
        queue.enqueue("plain", {}, **asked),
        *(queue.enqueue("plain", {"n": n}) for n in range(5)),
        return_exceptions=True,
    )
    assert [isinstance(answer, BaseException) for answer in answers] == [False] * 5 + [True] + [False] * 5
    assert await setup.counts() == {"queued": 10}


async def test_the_longest_key_and_the_widest_priorities_are_accepted(setup: JobSetup) -> None:
    queue = JobQueue(setup.database, TYPES, setup.clock)
    key = "📮" * 512
    first = await queue.enqueue("plain", {}, key=key, priority=1000, max_attempts=1000)
    assert (await setup.show(first.id)).idempotency_key == key
    await queue.enqueue("plain", {}, priority=-1000, max_attempts=1)
    assert [job.priority for job in await setup.claim()] == [1000, -1000]
