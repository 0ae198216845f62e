"""SIGKILL of real worker processes: at every named point, and at random moments."""

import asyncio
import signal
import time
from collections.abc import Sequence
from random import Random

from support.crash.evidence import Place, check_everything
from support.crash.finishing import WORKER, finish_all
from support.crash.points import MOMENTS, Point
from support.crash.producer import Producer, producing
from support.processes import ProcessGroup
from support.scale import scale

LEAVING = ("release", "close_lease", "resign")
OFTEN = ("claim", "begin_step", "finish_step", "deliver", "finish")
VERBS = (*OFTEN, "open_lease", "retry_later", "fail", "heartbeat", "lead", "rescue", "wake_due", *LEAVING)
POINTS = tuple(Point(moment, verb) for verb in VERBS for moment in MOMENTS)
LANES = 3
BURST = 20
LATEST_KILL_S = 1.2


async def kill_at(point: Point, hit: int, children: ProcessGroup, place: Place, producer: Producer) -> None:
    """One worker that works until it comes to the point, and dies there."""
    while True:
        worker = await children.start(WORKER, *place.arguments(), "--halt", str(point), "--hit", str(hit))
        if point.verb in LEAVING:
            await worker.hear("ended")
            await producer.produce(BURST)
            worker.signal(signal.SIGTERM)
        if (await worker.hear("halt", "stopped")).word == "halt":
            await worker.kill()
            return
        assert point.verb == "release", point  # it happened to hold nothing that it could give back


async def kill_at_each(
    points: Sequence[tuple[Point, int]], children: ProcessGroup, place: Place, producer: Producer
) -> None:
    """A few at a time, so that the dying work beside the living."""
    waiting = list(reversed(points))

    async def lane() -> None:
        while waiting:
            point, hit = waiting.pop()
            await kill_at(point, hit, children, place, producer)

    async with asyncio.TaskGroup() as lanes:
        for _ in range(LANES):
            lanes.create_task(lane())


async def test_a_worker_killed_at_any_named_point_loses_nothing_and_does_nothing_twice(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    rounds = scale(1, 2)
    points = [(point, rng.randint(1, 20) if point.verb in OFTEN else 1) for point in POINTS * rounds]
    rng.shuffle(points)
    started = time.monotonic()
    async with producing(place, rng) as producer:
        await kill_at_each(points, children, place, producer)
    await finish_all(children, place)
    outcome = await check_everything(place, producer.acknowledged)
    assert outcome["completed"] > len(points)
    print(f"{len(points)} kills at named points, {dict(outcome)}, {time.monotonic() - started:.1f} s")


async def test_workers_killed_at_random_moments_lose_nothing_and_do_nothing_twice(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    kills = scale(10, 100)
    started = time.monotonic()
    async with producing(place, rng) as producer:
        workers = [await children.start(WORKER, *place.arguments()) for _ in range(2)]
        for number in range(kills):
            victim = workers[number % 2]
            await victim.hear("ready")
            await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
            await victim.kill()
            workers[number % 2] = await children.start(WORKER, *place.arguments())
        for worker in workers:
            await worker.kill()
    await finish_all(children, place)
    outcome = await check_everything(place, producer.acknowledged)
    assert outcome["completed"] > kills
    print(f"{kills + 2} kills at random moments, {dict(outcome)}, {time.monotonic() - started:.1f} s")
