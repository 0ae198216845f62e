"""Three processes with the scheduler, and the leader is killed again and again."""

import itertools
import time
from datetime import UTC, datetime, timedelta
from random import Random

from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Script, Text, schema_change
from postroom.store.engine.opening import open_database
from support.crash.counted_jobs import create_deliveries
from support.crash.evidence import Place, check_all_ended, ended_jobs
from support.crash.finishing import WORKER, finish_all
from support.crash.points import MOMENTS, Point
from support.processes import Child, ProcessGroup, hear_any
from support.scale import scale

EVERY_SECOND = "* * * * * *"
PROCESSES = 3
_TRIGGER = {
    "sqlite": (
        """CREATE TRIGGER chaos_fired AFTER UPDATE OF last_at ON job_schedules
        BEGIN INSERT INTO chaos_ticks (tick) VALUES (NEW.last_at); END""",
    ),
    "postgres": (
        """CREATE FUNCTION chaos_note_tick() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO chaos_ticks (tick) VALUES (NEW.last_at::text); RETURN NULL; END'""",
        """CREATE TRIGGER chaos_fired AFTER UPDATE OF last_at ON job_schedules
        FOR EACH ROW EXECUTE FUNCTION chaos_note_tick()""",
    ),
}


@schema_change
def note_ticks(dialect: str) -> Script[None]:
    """The database itself writes down each tick that is fired, in the transaction that fires it."""
    yield Text("CREATE TABLE chaos_ticks (tick text NOT NULL)")
    for text in _TRIGGER[dialect]:
        yield Text(text)


async def prepare(place: Place) -> None:
    database = await open_database(place.folder, place.url)
    await database.run(create_deliveries())
    await database.run(note_ticks(database.dialect))
    await database.close()


async def test_a_recurring_job_fires_once_per_tick_while_its_leaders_are_killed(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    await prepare(place)
    moments = itertools.cycle(MOMENTS)
    processes = [await start(children, place, next(moments), rng) for _ in range(PROCESSES)]
    replaced: list[float] = []
    unfired: list[tuple[float, float]] = []
    kills = scale(3, 12)
    for _ in range(kills):
        leader, _ = await hear_any(processes, "halt")
        killed = await leader.kill()
        processes.remove(leader)
        processes.append(await start(children, place, next(moments), rng))
        _, elected = await hear_any(processes, "elected", after=killed)
        replaced.append(elected.at - killed)
        _, made_up = await hear_any(processes, "fired", after=elected.at)
        unfired.append((killed, made_up.at))
    for process in processes:
        await process.kill()
    await finish_all(children, place)
    ticks = await check_ticks(place, unfired)
    await check_all_ended(place, await ended_jobs(place))
    print(f"{ticks} ticks, {kills} leaders killed, replaced after {[f'{each:.2f} s' for each in replaced]}")


async def start(children: ProcessGroup, place: Place, moment: str, rng: Random) -> Child:
    """A process that, once it leads, fires a few ticks and then stops before, inside or after firing one."""
    point, hit = Point(moment, "fire"), rng.randint(2, scale(4, 8))
    return await children.start(
        WORKER, *place.arguments(), "--cron", EVERY_SECOND, "--halt", str(point), "--hit", str(hit)
    )


async def check_ticks(place: Place, unfired: list[tuple[float, float]]) -> int:
    """Each tick once, one job for each, and none left out but from a kill to the tick that makes up for them."""
    ticks = sorted(as_time(tick) for (tick,) in await place.rows("SELECT tick FROM chaos_ticks"))
    assert len(set(ticks)) == len(ticks), "a tick was fired twice"
    assert all(tick.microsecond == 0 for tick in ticks)
    assert await place.rows("SELECT count(*) FROM jobs WHERE type = 'tick'") == [(len(ticks),)]
    due = (ticks[0] + timedelta(seconds=number) for number in range(int((ticks[-1] - ticks[0]).total_seconds())))
    windows = [(wall_time(killed), wall_time(made_up)) for killed, made_up in unfired]
    for missed in set(due) - set(ticks):
        assert any(killed <= missed <= made_up for killed, made_up in windows), f"{missed} was missed under a leader"
    return len(ticks)


def wall_time(moment: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=time.monotonic() - moment)
