"""What the Redis connector does with entries that can never be accepted: moved aside once, with the reason."""

import asyncio
import json

from integration.redis_desk import FOREIGN, SOON, STREAM, UNKNOWN_KEY, Desk, Switchboard, event_ids, whole
from postroom.core.queue.envelope import LARGEST_ENVELOPE


async def test_what_is_refused_for_good_is_moved_aside_with_its_reason_and_the_rest_goes_on(desk: Desk):
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(FOREIGN)})
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(UNKNOWN_KEY), "note": b"\xff"})
    await desk.redis.xadd(STREAM, {"data": '{"a":' * 150 + "1" + "}" * 150})
    await desk.redis.xadd(STREAM, {"data": '{"a":' * 800 + "1" + "}" * 800})
    await desk.redis.xadd(STREAM, {"text": "x" * LARGEST_ENVELOPE})
    await desk.redis.xadd(STREAM, {"text": "y" * (LARGEST_ENVELOPE * 2 // 3)})
    good = await desk.add(1)
    await desk.redis.xadd(STREAM, {"text": "late"}, id="999999999999999999-0")
    connector = await desk.start()
    refused = await desk.refused(7)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 1)
    await connector.stop()
    reasons = [each["refused_reason"] for each in refused]
    by_reason = {
        word: sum(word in reason for reason in reasons)
        for word in ("redis:other", "colour", "nested", "bytes", "is no time")
    }
    assert by_reason == {"redis:other": 1, "colour": 1, "nested": 2, "bytes": 2, "is no time": 1}
    assert await desk.pending() == 0
    assert connector.vitals.counters["refused"] == 7
    assert event_ids(await desk.switchboard.kept()) == good
    copied = next(each for each in refused if "colour" in each["refused_reason"])
    assert json.loads(copied["envelope"]) == UNKNOWN_KEY
    assert copied["note"] == "\ufffd"
    assert copied["refused_at"].endswith("+00:00")


async def test_a_conflict_is_moved_aside(desk: Desk):
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(whole("a"))})
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(whole("b"))})
    connector = await desk.start()
    (refused,) = await desk.refused(1)
    await connector.stop()
    assert "control.idempotency_key" in refused["refused_reason"]
    assert event_ids(await desk.switchboard.kept()) == ["a"]
    assert await desk.pending() == 0


async def test_an_entry_that_two_consumers_hold_is_moved_aside_once(desk: Desk):
    """The slow one thinks it still holds the entry that the other one has claimed and moved aside."""
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(UNKNOWN_KEY)})
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def held() -> None:
        asked.set()
        await go_on.wait()

    desk.switchboard.before = held
    slow = await desk.start("slow")
    await asked.wait()
    other = Switchboard(desk.switchboard.services)
    fast = await desk.start("fast", claim_after=SOON, switchboard=other)
    await desk.refused(1)
    await fast.stop()
    go_on.set()
    await desk.switchboard.until(lambda: len(desk.switchboard.outcomes) == 1)
    await slow.stop()
    assert await desk.redis.xlen(f"{STREAM}:refused") == 1
    assert await desk.pending() == 0


async def test_an_entry_that_cannot_be_moved_aside_stays_pending_until_it_can(desk: Desk):
    await desk.redis.set(f"{STREAM}:refused", "no stream at all")
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(FOREIGN)})
    await desk.add(1)
    connector = await desk.start()
    assert "WRONGTYPE" in await connector.vitals.ailing("error")
    assert await desk.pending() == 2
    await desk.redis.delete(f"{STREAM}:refused")
    (refused,) = await desk.refused(1)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 1)
    await connector.stop()
    assert "redis:other" in refused["refused_reason"]
    assert await desk.pending() == 0


async def test_an_entry_of_very_many_fields_is_moved_aside_as_one(desk: Desk):
    many = {f"field-{number}": str(number) for number in range(9_000)}
    await desk.redis.xadd(STREAM, {**many, "envelope": json.dumps(FOREIGN)})
    connector = await desk.start()
    (refused,) = await desk.refused(1)
    await connector.stop()
    kept = json.loads(refused["refused_fields"])
    assert kept["field-8999"] == ["8999"]
    assert await desk.pending() == 0
