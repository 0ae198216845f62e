"""The Redis connector on a real Redis: nothing is lost or counted twice, whichever part dies."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import BadInput, IntakeRefused, PostroomError, Refused, SettingsError, SwitchboardUnavailable
from postroom.sources.redis_stream.source import MOST_TEXT_PER_CALL
from postroom.sources.redis_stream.stream import RedisStream, connect
from postroom.sources.switchboard_client import Receipt
from postroom.store.engine.database import Database
from support.patience import PATIENCE_S
from support.redis import running_redis
from support.redis_setup import (
    AT_ONCE,
    FOREIGN,
    GROUP,
    IDENTITY,
    SOON,
    STREAM,
    RedisSetup,
    Switchboard,
    event_ids,
    opened_redis_setup,
)


async def test_what_was_in_the_stream_before_the_group_and_what_comes_later_is_delivered(setup: RedisSetup):
    early = await setup.add(3)
    connector = await setup.start()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 3)
    late = await setup.add(2, start=3)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 5)
    await connector.stop()
    assert event_ids(await setup.switchboard.kept()) == sorted(early + late)
    assert await setup.pending() == 0
    assert connector.health.counters == {"read": 5, "accepted": 5, "claimed": 0}
    assert connector.health.cursor == late[-1]


async def test_nothing_is_acknowledged_before_the_switchboard_has_accepted(setup: RedisSetup):
    ids = await setup.add(3)
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def held() -> None:
        asked.set()
        await go_on.wait()

    setup.switchboard.before = held
    connector = await setup.start()
    await asked.wait()
    assert await setup.pending() == 3
    go_on.set()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 3)
    await connector.stop()
    assert await setup.pending() == 0
    assert event_ids(await setup.switchboard.kept()) == sorted(ids)


@pytest.mark.parametrize("successor", ["one", "two"])
async def test_killed_between_acceptance_and_acknowledgement_the_entries_are_recognised(
    setup: RedisSetup, successor: str
):
    """As the same consumer it takes up what was its own; another one claims it."""
    ids = await setup.add(5)
    setup.switchboard.after = asyncio.Event().wait  # type: ignore[assignment]
    first = await setup.start("one")
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 5)
    await first.drop()
    assert await setup.pending() == 5

    second = Switchboard(setup.switchboard.services)
    connector = await setup.start(successor, claim_after=SOON, switchboard=second)
    await second.until(lambda: len(second.receipts) == 5)
    await connector.stop()
    assert [each.duplicate for each in second.receipts] == [True] * 5
    assert {each.request_id for each in second.receipts} == {each.request_id for each in setup.switchboard.receipts}
    assert await setup.pending() == 0
    assert event_ids(await second.kept()) == sorted(ids)
    assert connector.health.counters["claimed"] == (5 if successor == "two" else 0)


async def test_a_running_consumer_claims_what_another_one_left_while_it_ran(setup: RedisSetup):
    connector = await setup.start("one", claim_after=SOON)
    await connector.joined()
    async with setup.redis.pipeline(transaction=True) as at_once:
        for number in range(3):
            at_once.xadd(STREAM, {"text": f"text {number}"})
        at_once.xreadgroup(GROUP, "crashed", {STREAM: ">"})
        *added, _ = await at_once.execute()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 3)
    await connector.stop()
    assert connector.health.counters["claimed"] == 3
    assert await setup.pending() == 0
    assert event_ids(await setup.switchboard.kept()) == sorted(each.decode() for each in added)


@pytest.mark.parametrize(
    ("trouble", "state"),
    [
        (IntakeRefused("no room", timedelta(milliseconds=5)), "degraded"),
        (SwitchboardUnavailable("gone"), "degraded"),
        (OSError("no route"), "degraded"),
        (Refused("revoked"), "error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
async def test_a_switchboard_that_does_not_take_it_now_is_waited_for(setup: RedisSetup, trouble: Exception, state: str):
    ids = await setup.add(3)
    states: list[str] = []

    async def troubled() -> None:
        if len(setup.switchboard.batches) <= 3:
            raise trouble
        states.append(connector.health.state)
        assert await setup.pending() == 3

    setup.switchboard.before = troubled
    connector = await setup.start()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 3)
    await connector.stop()
    assert setup.switchboard.batches == [3, 3, 3, 3]
    assert states == [state]
    assert connector.health.state == "healthy"
    assert event_ids(await setup.switchboard.kept()) == sorted(ids)
    assert await setup.pending() == 0


async def test_an_identity_that_the_token_is_not_for_moves_nothing_aside(setup: RedisSetup):
    await setup.add(2)
    connector = await setup.start(identity="redis:mine")
    await setup.switchboard.until(lambda: len(setup.switchboard.batches) == 3)
    await connector.stop()
    assert IDENTITY in await connector.health.until_reported("error")
    assert await setup.pending() == 2
    assert await setup.redis.exists(f"{STREAM}:refused") == 0


async def test_one_entry_that_fails_for_now_holds_up_nobody_and_is_taken_up_again(setup: RedisSetup):
    ids = await setup.add(3)

    class Stumbling(Switchboard):
        async def ingest_batch(self, envelopes: Any) -> list[Receipt | PostroomError]:
            outcomes = await super().ingest_batch(envelopes)
            if len(self.batches) > 1:
                return outcomes
            return [SwitchboardUnavailable("not this one"), *outcomes[1:]]

    switchboard = Stumbling(setup.switchboard.services)
    connector = await setup.start(claim_after=SOON, switchboard=switchboard)
    await switchboard.until(lambda: len(switchboard.receipts) == 4)
    await connector.stop()
    assert switchboard.batches == [3, 1]
    assert connector.health.counters["postponed"] == 1
    assert await setup.pending() == 0
    assert event_ids(await switchboard.kept()) == sorted(ids)


async def test_stopping_does_not_wait_for_a_switchboard_that_is_away(setup: RedisSetup):
    await setup.add(1)

    async def away() -> None:
        raise IntakeRefused("no room", timedelta(hours=1))

    setup.switchboard.before = away
    connector = await setup.start()
    await setup.switchboard.until(lambda: bool(setup.switchboard.batches))
    await connector.stop()
    assert await setup.pending() == 1


@pytest.mark.parametrize(("holder", "claim_after"), [("one", timedelta(seconds=60)), ("crashed", SOON)])
async def test_entries_deleted_after_they_were_handed_out_are_skipped(
    setup: RedisSetup, holder: str, claim_after: timedelta
):
    ids = await setup.add(3)
    await setup.redis.xgroup_create(STREAM, GROUP, "0")
    await setup.redis.xreadgroup(GROUP, holder, {STREAM: ">"}, count=3)
    await setup.redis.xdel(STREAM, ids[0], ids[1])
    connector = await setup.start("one", claim_after)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 1)
    await connector.stop()
    assert event_ids(await setup.switchboard.kept()) == [ids[2]]
    assert await setup.pending() == 0


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_redis_may_go_away_and_come_back(setup: RedisSetup, ending: str):
    connector = await setup.start()
    first = await setup.add(10)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 10)
    getattr(setup.server, ending)()
    await connector.health.until_reported("degraded")
    setup.server.start()
    second = await setup.add(10, start=10)
    await setup.switchboard.until(lambda: len({each.request_id for each in setup.switchboard.receipts}) == 20)
    await connector.stop()
    assert connector.health.state == "healthy"
    assert event_ids(await setup.switchboard.kept()) == sorted(first + second)
    assert await setup.pending() == 0


async def test_redis_may_die_between_acceptance_and_acknowledgement(setup: RedisSetup):
    ids = await setup.add(5)

    async def dies() -> None:
        if len(setup.switchboard.batches) == 1:
            setup.server.kill()
            setup.server.start()

    setup.switchboard.after = dies
    connector = await setup.start()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 10)
    await connector.stop()
    assert connector.health.counters["duplicate"] == 5
    assert event_ids(await setup.switchboard.kept()) == sorted(ids)
    assert await setup.pending() == 0


async def test_a_stream_that_was_deleted_is_followed_again(setup: RedisSetup):
    connector = await setup.start()
    await setup.add(1)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 1)
    await setup.redis.delete(STREAM)
    await setup.add(1, start=1)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 2)
    await connector.stop()
    assert connector.health.state == "healthy"


async def test_a_thousand_entries_by_two_consumers_are_a_thousand_messages(setup: RedisSetup):
    """Each is stopped and started again on the way, and both claim so eagerly that they often hold the same entry."""
    ids = await setup.add(1000)
    other = Switchboard(setup.switchboard.services)
    boards = {"one": setup.switchboard, "two": other}
    for count in (200, 600):
        connectors = [await setup.start(name, SOON, board, batch=30) for name, board in boards.items()]
        await _until_distinct(boards, count)
        await connectors[0].drop()
        await connectors[1].stop()
    connectors = [await setup.start(name, SOON, board, batch=30) for name, board in boards.items()]
    await _until_distinct(boards, 1000)
    await setup.drained()
    for connector in connectors:
        await connector.stop()
    assert all(board.receipts for board in boards.values())
    assert event_ids(await setup.switchboard.kept()) == sorted(ids)
    assert await setup.redis.exists(f"{STREAM}:refused") == 0


async def _until_distinct(boards: Mapping[str, Switchboard], count: int) -> None:
    def reached() -> bool:
        return len({each.request_id for board in boards.values() for each in board.receipts}) >= count

    waiting = [asyncio.create_task(board.until(reached)) for board in boards.values()]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert reached()


async def test_a_call_holds_no_more_than_its_limits(setup: RedisSetup):
    async with setup.redis.pipeline(transaction=False) as pipeline:
        for number in range(10):
            pipeline.xadd(STREAM, {"text": f"{number}" * 1_000_000})
        await pipeline.execute()
    connector = await setup.start()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 10)
    await connector.stop()
    assert max(setup.switchboard.batches) == MOST_TEXT_PER_CALL // 2_000_000
    assert await setup.pending() == 0


async def test_waiting_for_entries_can_be_ended_at_any_moment(setup: RedisSetup):
    """The client's own timeouts, on Python 3.11, lose a cancellation that comes just when a command was sent."""
    async with connect(setup.server.url) as client:
        stream = RedisStream(client, STREAM, GROUP, "one")
        await stream.ensure_group()
        for moment in range(12):
            waiting = asyncio.create_task(stream.fresh(10, timedelta(seconds=5)))
            for _ in range(moment):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting}, timeout=PATIENCE_S)
            assert waiting.cancelled(), moment


async def test_a_wrong_password_is_reported_at_the_start(sqlite: Database):
    with running_redis("--requirepass", "open sesame") as server:
        async with opened_redis_setup(server, sqlite) as setup:
            connector = await setup.start()
            with pytest.raises(SettingsError, match="POSTROOM_REDIS_URL"):
                await connector.task


async def test_a_user_of_redis_needs_no_more_than_the_rights_we_name(setup: RedisSetup):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "redis.md").read_text("utf-8")
    rights = next(line for line in page.splitlines() if line.startswith("ACL SETUSER")).split()[4:]
    await setup.redis.execute_command("ACL", "SETUSER", "postroom", "on", ">open-sesame", *rights)
    setup.server.user = "postroom:open-sesame"
    await setup.add(2)
    await setup.redis.xadd(STREAM, {"envelope": json.dumps(FOREIGN)})
    connector = await setup.start(claim_after=SOON)
    await setup.refused(1)
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 2)
    await connector.stop()
    assert await setup.pending() == 0
    assert connector.health.state == "healthy"


async def test_a_key_that_is_no_stream_is_reported_at_the_start(setup: RedisSetup):
    await setup.redis.set(STREAM, "a text")
    connector = await setup.start()
    with pytest.raises(BadInput, match="is not a stream"):
        await connector.task


def test_pauses_are_never_longer_than_half_a_minute():
    from postroom.sources.redis_stream.source import BACKOFF

    assert BACKOFF.cap * 1.25 == timedelta(seconds=30)
    assert AT_ONCE.cap < SOON * 2
