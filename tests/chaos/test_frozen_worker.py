"""A worker that is frozen past its lease (SIGSTOP) and wakes again (SIGCONT): its work belongs to another by then."""

import asyncio
import signal
from random import Random

import pytest

from support.crash.evidence import Place, check_everything
from support.crash.finishing import WORKER, finish_all
from support.crash.points import Point
from support.crash.producer import producing
from support.processes import ProcessGroup

FENCED = ("begin_step", "finish_step", "deliver", "finish", "retry_later", "fail", "heartbeat", "claim")


async def test_workers_that_wake_after_their_lease_change_nothing_and_work_on(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    async with producing(place, rng) as producer:
        frozen = [
            await children.start(WORKER, *place.arguments(), "--halt", str(Point("before", verb)), "--calmly")
            for verb in FENCED
        ]
        halted = await asyncio.gather(*(worker.hear("halt") for worker in frozen))
        other = await children.start(WORKER, *place.arguments())
        for worker in frozen:
            await other.until(lambda pid=worker.pid: lease_is_gone(place, pid))
        for worker, halt in zip(frozen, halted, strict=True):
            worker.signal(signal.SIGCONT)
            await worker.hear("ended", after=halt.at)
    for worker in (*frozen, other):
        worker.signal(signal.SIGTERM)
    for worker in (*frozen, other):
        assert await worker.ended() == 0, worker.complaints()
    await finish_all(children, place)
    await check_everything(place, producer.acknowledged)


async def lease_is_gone(place: Place, pid: int) -> bool:
    return await place.rows(f"SELECT 1 FROM job_leases WHERE holder LIKE '%:{pid}'") == []


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_worker_that_freezes_inside_a_transaction_does_not_hold_up_the_others(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    async with producing(place, rng) as producer:
        point = Point("inside", "finish_step")
        frozen = await children.start(WORKER, *place.arguments(), "--halt", str(point), "--calmly")
        await frozen.hear("halt")
        other = await children.start(WORKER, *place.arguments())
        await other.until(lambda: lease_is_gone(place, frozen.pid))
    await frozen.kill()
    other.signal(signal.SIGTERM)
    assert await other.ended() == 0, other.complaints()
    await finish_all(children, place)
    await check_everything(place, producer.acknowledged)
