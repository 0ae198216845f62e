"""A worker that sleeps past its lease (SIGSTOP) and wakes again (SIGCONT): by then its work is someone else's."""

import signal
from random import Random

import pytest

from chaos.evidence import Place, check_everything
from chaos.points import Point
from chaos.production import producing
from chaos.storm import WORKER, finish_all
from support.processes import Family

FENCED = ("begin_step", "finish_step", "deliver", "finish", "retry_later", "fail", "heartbeat", "claim")


@pytest.mark.parametrize("verb", FENCED)
async def test_a_worker_that_wakes_after_its_lease_changes_nothing_and_works_on(
    place: Place, children: Family, rng: Random, verb: str
) -> None:
    async with producing(place, rng) as producer:
        frozen = await children.start(WORKER, *place.arguments(), "--halt", str(Point("before", verb)), "--calmly")
        halted = await frozen.hear("halt")
        other = await children.start(WORKER, *place.arguments())
        await other.until(lambda: lease_is_gone(place, frozen.pid))
        frozen.signal(signal.SIGCONT)
        await frozen.hear("ended", after=halted.at)
    for worker in (frozen, other):
        worker.signal(signal.SIGTERM)
        assert await worker.ended() == 0, worker.complaints()
    await finish_all(children, place)
    await check_everything(place, producer.acknowledged)


async def lease_is_gone(place: Place, pid: int) -> bool:
    return await place.rows(f"SELECT 1 FROM job_leases WHERE holder LIKE '%:{pid}'") == []


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_worker_that_freezes_inside_a_transaction_does_not_hold_up_the_others(
    place: Place, children: Family, rng: Random
) -> None:
    async with producing(place, rng) as producer:
        frozen = await children.start(WORKER, *place.arguments(), "--halt", str(Point("inside", "finish_step")))
        await frozen.hear("halt")
        other = await children.start(WORKER, *place.arguments())
        await other.until(lambda: lease_is_gone(place, frozen.pid), patience_s=30)
    await frozen.kill()
    other.signal(signal.SIGTERM)
    assert await other.ended() == 0, other.complaints()
    await finish_all(children, place)
    await check_everything(place, producer.acknowledged)
