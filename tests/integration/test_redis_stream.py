"""The Redis connector on a real Redis: nothing is lost and nothing counts twice, whoever dies and whenever."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from integration.redis_desk import (
    AT_ONCE,
    FOREIGN,
    GROUP,
    IDENTITY,
    SOON,
    STREAM,
    Desk,
    Switchboard,
    event_ids,
    opened_desk,
)
from postroom.connectors.redis_stream.source import MOST_TEXT_PER_CALL
from postroom.connectors.redis_stream.stream import RedisStream, connect
from postroom.connectors.switchboard_client import Receipt
from postroom.core.errors import BadInput, IntakeRefused, PostroomError, Refused, SettingsError, SwitchboardUnavailable
from postroom.store.engine.database import Database
from support.patience import PATIENCE_S
from support.redis import running_redis


async def test_what_was_in_the_stream_before_the_group_and_what_comes_later_is_handed_in(desk: Desk):
    early = await desk.add(3)
    connector = await desk.start()
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 3)
    late = await desk.add(2, start=3)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 5)
    await connector.stop()
    assert event_ids(await desk.switchboard.kept()) == sorted(early + late)
    assert await desk.pending() == 0
    assert connector.vitals.counters == {"read": 5, "accepted": 5, "claimed": 0}
    assert connector.vitals.cursor == late[-1]


async def test_nothing_is_acknowledged_before_the_switchboard_has_accepted(desk: Desk):
    ids = await desk.add(3)
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def held() -> None:
        asked.set()
        await go_on.wait()

    desk.switchboard.before = held
    connector = await desk.start()
    await asked.wait()
    assert await desk.pending() == 3
    go_on.set()
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 3)
    await connector.stop()
    assert await desk.pending() == 0
    assert event_ids(await desk.switchboard.kept()) == sorted(ids)


@pytest.mark.parametrize("successor", ["one", "two"])
async def test_killed_between_acceptance_and_acknowledgement_the_entries_are_recognised(desk: Desk, successor: str):
    """As the same consumer it takes up what was its own; another one claims it."""
    ids = await desk.add(5)
    desk.switchboard.after = asyncio.Event().wait  # type: ignore[assignment]
    first = await desk.start("one")
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 5)
    await first.drop()
    assert await desk.pending() == 5

    second = Switchboard(desk.switchboard.services)
    connector = await desk.start(successor, claim_after=SOON, switchboard=second)
    await second.until(lambda: len(second.receipts) == 5)
    await connector.stop()
    assert [each.duplicate for each in second.receipts] == [True] * 5
    assert {each.request_id for each in second.receipts} == {each.request_id for each in desk.switchboard.receipts}
    assert await desk.pending() == 0
    assert event_ids(await second.kept()) == sorted(ids)
    assert connector.vitals.counters["claimed"] == (5 if successor == "two" else 0)


async def test_a_running_consumer_claims_what_another_one_left_while_it_ran(desk: Desk):
    connector = await desk.start("one", claim_after=SOON)
    await connector.joined()
    async with desk.redis.pipeline(transaction=True) as at_once:
        for number in range(3):
            at_once.xadd(STREAM, {"text": f"text {number}"})
        at_once.xreadgroup(GROUP, "crashed", {STREAM: ">"})
        *added, _ = await at_once.execute()
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 3)
    await connector.stop()
    assert connector.vitals.counters["claimed"] == 3
    assert await desk.pending() == 0
    assert event_ids(await desk.switchboard.kept()) == sorted(each.decode() for each in added)


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
async def test_a_switchboard_that_does_not_take_it_now_is_waited_for(desk: Desk, trouble: Exception, state: str):
    ids = await desk.add(3)
    states: list[str] = []

    async def troubled() -> None:
        if len(desk.switchboard.batches) <= 3:
            raise trouble
        states.append(connector.vitals.state)
        assert await desk.pending() == 3

    desk.switchboard.before = troubled
    connector = await desk.start()
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 3)
    await connector.stop()
    assert desk.switchboard.batches == [3, 3, 3, 3]
    assert states == [state]
    assert connector.vitals.state == "healthy"
    assert event_ids(await desk.switchboard.kept()) == sorted(ids)
    assert await desk.pending() == 0


async def test_an_identity_that_the_token_is_not_for_moves_nothing_aside(desk: Desk):
    await desk.add(2)
    connector = await desk.start(identity="redis:mine")
    await desk.switchboard.until(lambda: len(desk.switchboard.batches) == 3)
    await connector.stop()
    assert IDENTITY in await connector.vitals.ailing("error")
    assert await desk.pending() == 2
    assert await desk.redis.exists(f"{STREAM}:refused") == 0


async def test_one_entry_that_fails_for_now_holds_up_nobody_and_is_taken_up_again(desk: Desk):
    ids = await desk.add(3)

    class Stumbling(Switchboard):
        async def ingest_batch(self, envelopes: Any) -> list[Receipt | PostroomError]:
            outcomes = await super().ingest_batch(envelopes)
            if len(self.batches) > 1:
                return outcomes
            return [SwitchboardUnavailable("not this one"), *outcomes[1:]]

    switchboard = Stumbling(desk.switchboard.services)
    connector = await desk.start(claim_after=SOON, switchboard=switchboard)
    await switchboard.until(lambda: len(switchboard.receipts) == 4)
    await connector.stop()
    assert switchboard.batches == [3, 1]
    assert connector.vitals.counters["postponed"] == 1
    assert await desk.pending() == 0
    assert event_ids(await switchboard.kept()) == sorted(ids)


async def test_stopping_does_not_wait_for_a_switchboard_that_is_away(desk: Desk):
    await desk.add(1)

    async def away() -> None:
        raise IntakeRefused("no room", timedelta(hours=1))

    desk.switchboard.before = away
    connector = await desk.start()
    await desk.switchboard.until(lambda: bool(desk.switchboard.batches))
    await connector.stop()
    assert await desk.pending() == 1


@pytest.mark.parametrize(("holder", "claim_after"), [("one", timedelta(seconds=60)), ("crashed", SOON)])
async def test_entries_deleted_after_they_were_handed_out_are_skipped(desk: Desk, holder: str, claim_after: timedelta):
    ids = await desk.add(3)
    await desk.redis.xgroup_create(STREAM, GROUP, "0")
    await desk.redis.xreadgroup(GROUP, holder, {STREAM: ">"}, count=3)
    await desk.redis.xdel(STREAM, ids[0], ids[1])
    connector = await desk.start("one", claim_after)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 1)
    await connector.stop()
    assert event_ids(await desk.switchboard.kept()) == [ids[2]]
    assert await desk.pending() == 0


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_redis_may_go_away_and_come_back(desk: Desk, ending: str):
    connector = await desk.start()
    first = await desk.add(10)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 10)
    getattr(desk.server, ending)()
    await connector.vitals.ailing("degraded")
    desk.server.start()
    second = await desk.add(10, start=10)
    await desk.switchboard.until(lambda: len({each.request_id for each in desk.switchboard.receipts}) == 20)
    await connector.stop()
    assert connector.vitals.state == "healthy"
    assert event_ids(await desk.switchboard.kept()) == sorted(first + second)
    assert await desk.pending() == 0


async def test_redis_may_die_between_acceptance_and_acknowledgement(desk: Desk):
    ids = await desk.add(5)

    async def dies() -> None:
        if len(desk.switchboard.batches) == 1:
            desk.server.kill()
            desk.server.start()

    desk.switchboard.after = dies
    connector = await desk.start()
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 10)
    await connector.stop()
    assert connector.vitals.counters["duplicate"] == 5
    assert event_ids(await desk.switchboard.kept()) == sorted(ids)
    assert await desk.pending() == 0


async def test_a_stream_that_was_deleted_is_followed_anew(desk: Desk):
    connector = await desk.start()
    await desk.add(1)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 1)
    await desk.redis.delete(STREAM)
    await desk.add(1, start=1)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 2)
    await connector.stop()
    assert connector.vitals.state == "healthy"


async def test_a_thousand_entries_by_two_consumers_are_a_thousand_messages(desk: Desk):
    """Each is stopped and started again on the way, and both claim so eagerly that they often hold the same entry."""
    ids = await desk.add(1000)
    other = Switchboard(desk.switchboard.services)
    boards = {"one": desk.switchboard, "two": other}
    for count in (200, 600):
        connectors = [await desk.start(name, SOON, board, batch=30) for name, board in boards.items()]
        await _until_distinct(boards, count)
        await connectors[0].drop()
        await connectors[1].stop()
    connectors = [await desk.start(name, SOON, board, batch=30) for name, board in boards.items()]
    await _until_distinct(boards, 1000)
    await desk.drained()
    for connector in connectors:
        await connector.stop()
    assert all(board.receipts for board in boards.values())
    assert event_ids(await desk.switchboard.kept()) == sorted(ids)
    assert await desk.redis.exists(f"{STREAM}:refused") == 0


async def _until_distinct(boards: Mapping[str, Switchboard], count: int) -> None:
    def reached() -> bool:
        return len({each.request_id for board in boards.values() for each in board.receipts}) >= count

    waiting = [asyncio.create_task(board.until(reached)) for board in boards.values()]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert reached()


async def test_a_call_holds_no_more_than_its_limits(desk: Desk):
    async with desk.redis.pipeline(transaction=False) as pipeline:
        for number in range(10):
            pipeline.xadd(STREAM, {"text": f"{number}" * 1_000_000})
        await pipeline.execute()
    connector = await desk.start()
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 10)
    await connector.stop()
    assert max(desk.switchboard.batches) == MOST_TEXT_PER_CALL // 2_000_000
    assert await desk.pending() == 0


async def test_waiting_for_entries_can_be_ended_at_any_moment(desk: Desk):
    """The client's own timeouts, on Python 3.11, lose a cancellation that comes just when a command was sent."""
    async with connect(desk.server.url) as client:
        stream = RedisStream(client, STREAM, GROUP, "one")
        await stream.ensure_group()
        for moment in range(12):
            waiting = asyncio.create_task(stream.fresh(10, timedelta(seconds=5)))
            for _ in range(moment):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting}, timeout=PATIENCE_S)
            assert waiting.cancelled(), moment


async def test_a_wrong_password_is_told_at_the_start(sqlite: Database):
    with running_redis("--requirepass", "open sesame") as server:
        async with opened_desk(server, sqlite) as desk:
            connector = await desk.start()
            with pytest.raises(SettingsError, match="POSTROOM_REDIS_URL"):
                await connector.task


async def test_a_user_of_redis_needs_no_more_than_the_rights_we_name(desk: Desk):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "redis.md").read_text("utf-8")
    rights = next(line for line in page.splitlines() if line.startswith("ACL SETUSER")).split()[4:]
    await desk.redis.execute_command("ACL", "SETUSER", "postroom", "on", ">open-sesame", *rights)
    desk.server.user = "postroom:open-sesame"
    await desk.add(2)
    await desk.redis.xadd(STREAM, {"envelope": json.dumps(FOREIGN)})
    connector = await desk.start(claim_after=SOON)
    await desk.refused(1)
    await desk.switchboard.until(lambda: len(desk.switchboard.receipts) == 2)
    await connector.stop()
    assert await desk.pending() == 0
    assert connector.vitals.state == "healthy"


async def test_a_key_that_is_no_stream_is_told_at_the_start(desk: Desk):
    await desk.redis.set(STREAM, "a text")
    connector = await desk.start()
    with pytest.raises(BadInput, match="is no stream"):
        await connector.task


def test_pauses_are_never_longer_than_half_a_minute():
    from postroom.connectors.redis_stream.source import BACKOFF

    assert BACKOFF.cap * 1.25 == timedelta(seconds=30)
    assert AT_ONCE.cap < SOON * 2
