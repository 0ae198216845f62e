"""Entries that can never be accepted: the Redis connector moves them aside once, with the reason."""

import asyncio
import json

from postroom.core.queue.envelope import LARGEST_ENVELOPE
from support.redis_setup import FOREIGN, SOON, STREAM, UNKNOWN_KEY, RedisSetup, Switchboard, event_ids, whole


async def test_what_is_refused_for_good_is_moved_aside_with_its_reason_and_the_rest_goes_on(setup: RedisSetup):
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(FOREIGN)})
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(UNKNOWN_KEY), "note": b"\xff"})
    await setup.redis.xadd(STREAM, {"data": '{"a":' * 150 + "1" + "}" * 150})
    await setup.redis.xadd(STREAM, {"data": '{"a":' * 800 + "1" + "}" * 800})
    await setup.redis.xadd(STREAM, {"text": "x" * LARGEST_ENVELOPE})
    await setup.redis.xadd(STREAM, {"text": "y" * (LARGEST_ENVELOPE * 2 // 3)})
    good = await setup.add(1)
    await setup.redis.xadd(STREAM, {"text": "late"}, id="999999999999999999-0")
    connector = await setup.start()
    refused = await setup.refused(7)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 1)
    await connector.stop()
    reasons = [each["refused_reason"] for each in refused]
    by_reason = {
        word: sum(word in reason for reason in reasons)
        for word in ("redis:other", "colour", "nested", "bytes", "begin with a time")
    }
    assert by_reason == {"redis:other": 1, "colour": 1, "nested": 2, "bytes": 2, "begin with a time": 1}
    assert await setup.pending() == 0
    assert connector.health.counters["refused"] == 7
    assert event_ids(await setup.switchboard.kept()) == good
    copied = next(each for each in refused if "colour" in each["refused_reason"])
    assert json.loads(copied["envelope"]) == UNKNOWN_KEY
    assert copied["note"] == "\ufffd"
    assert copied["refused_at"].endswith("+00:00")


async def test_a_conflict_is_moved_aside(setup: RedisSetup):
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(whole("a"))})
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(whole("b"))})
    connector = await setup.start()
    (refused,) = await setup.refused(1)
    await connector.stop()
    assert "control.idempotency_key" in refused["refused_reason"]
    assert event_ids(await setup.switchboard.kept()) == ["a"]
    assert await setup.pending() == 0


async def test_an_entry_that_two_consumers_hold_is_moved_aside_once(setup: RedisSetup):
    """The slow one thinks it still holds the entry that the other one has claimed and moved aside."""
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(UNKNOWN_KEY)})
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def held() -> None:
        asked.set()
        await go_on.wait()

    setup.switchboard.before = held
    slow = await setup.start("slow")
    await asked.wait()
    other = Switchboard(setup.switchboard.services)
    fast = await setup.start("fast", claim_after=SOON, switchboard=other)
    await setup.refused(1)
    await fast.stop()
    go_on.set()
    await setup.switchboard.until(lambda: len(setup.switchboard.outcomes) == 1)
    await slow.stop()
    assert await setup.redis.xlen(f"{STREAM}:refused") == 1
    assert await setup.pending() == 0


async def test_an_entry_that_cannot_be_moved_aside_stays_pending_until_it_can(setup: RedisSetup):
    await setup.redis.set(f"{STREAM}:refused", "no stream at all")
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(FOREIGN)})
    await setup.add(1)
    connector = await setup.start()
    assert "WRONGTYPE" in await connector.health.until_reported("error")
    assert await setup.pending() == 2
    await setup.redis.delete(f"{STREAM}:refused")
    (refused,) = await setup.refused(1)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 1)
    await connector.stop()
    assert "redis:other" in refused["refused_reason"]
    assert await setup.pending() == 0


async def test_an_entry_of_very_many_fields_is_moved_aside_as_one(setup: RedisSetup):
    many = {f"field-{number}": str(number) for number in range(9_000)}
    await setup.redis.xadd(STREAM, {**many, "envelope": json.dumps(FOREIGN)})
    connector = await setup.start()
    (refused,) = await setup.refused(1)
    await connector.stop()
    kept = json.loads(refused["refused_fields"])
    assert kept["field-8999"] == ["8999"]
    assert await setup.pending() == 0
