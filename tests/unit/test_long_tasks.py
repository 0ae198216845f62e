"""Long work on a page: few at a time, with progress, canceled by a button, or when nobody looks at it any more."""

import asyncio

import pytest

from postroom.core.errors import BadInput, NotFound, Refused
from postroom.operations.installation.long_tasks import (
    MOST_REMEMBERED,
    MOST_RUNNING,
    UNWATCHED_S,
    LongTask,
    LongTasks,
    Report,
)


class Step:
    """Work that goes on when told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.is_ended = asyncio.Event()

    async def __call__(self, report: Report) -> str:
        try:
            report(1, 2)
            await self.go_on.wait()
            report(2, 2)
            return "found"
        finally:
            self.is_ended.set()


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def ended(tasks: LongTasks[str, str], task: LongTask[str, str]) -> LongTask[str, str]:
    changes = aiter(tasks.changes())
    while task.state == "running":
        await anext(changes)
    return task


async def test_work_reports_progress_and_then_its_result() -> None:
    tasks, step = LongTasks[str, str](), Step()
    task = tasks.start("Look", step)
    changes = aiter(tasks.changes())
    while task.done == 0:
        await anext(changes)
    assert (task.state, task.done, task.total, task.about) == ("running", 1, 2, "Look")
    step.go_on.set()
    await ended(tasks, task)
    assert (tasks.look(task.id).state, task.result, task.done) == ("done", "found", 2)


async def test_what_somebody_looks_at_stays_as_it_was_at_that_moment() -> None:
    tasks, step = LongTasks[str, str](), Step()
    task = tasks.start("Look", step)
    looked_at = tasks.look(task.id)
    step.go_on.set()
    await ended(tasks, task)
    assert (looked_at.state, looked_at.result) == ("running", None)


async def test_canceled_work_stops() -> None:
    tasks, step = LongTasks[str, str](), Step()
    task = tasks.start("Look", step)
    await asyncio.sleep(0)
    assert await tasks.cancel(task.id)
    assert (task.state, task.result, step.is_ended.is_set()) == ("canceled", None, True)
    assert not await tasks.cancel(task.id)


async def test_work_that_is_canceled_before_it_began_is_canceled_too() -> None:
    tasks = LongTasks[str, str]()
    task = tasks.start("Look", Step())
    assert await tasks.cancel(task.id)
    assert task.state == "canceled"


async def test_work_of_the_same_id_takes_the_place_of_what_has_ended() -> None:
    tasks, step = LongTasks[str, str](), Step()
    step.go_on.set()
    first = await ended(tasks, tasks.start("Look", step, "same"))
    second = tasks.start("Look again", step, "same")
    assert (tasks.look("same").about, first.state) == ("Look again", "done")
    await ended(tasks, second)


async def test_work_that_nobody_looks_at_is_canceled() -> None:
    clock = Seconds()
    tasks, left, watched = LongTasks[str, str](clock), Step(), Step()
    first, second = tasks.start("Left", left), tasks.start("Watched", watched)
    await asyncio.sleep(0)
    clock.now = UNWATCHED_S - 1
    tasks.look(second.id)
    clock.now = UNWATCHED_S + 1
    watched.go_on.set()
    await ended(tasks, second)
    await ended(tasks, first)
    assert (first.state, second.state) == ("canceled", "done")


async def test_few_run_at_once_and_few_are_remembered() -> None:
    tasks, step = LongTasks[str, str](), Step()
    running = [tasks.start("Look", step) for _ in range(MOST_RUNNING)]
    with pytest.raises(Refused, match="2 others are running; wait for it to end, or cancel it"):
        tasks.start("Look", step)
    step.go_on.set()
    for task in running:
        await ended(tasks, task)
    for _ in range(MOST_REMEMBERED):
        await ended(tasks, tasks.start("Look", step))
    with pytest.raises(NotFound, match="forgotten"):
        tasks.look(running[0].id)


async def test_a_failure_says_no_more_than_it_may() -> None:
    async def refused(_report: Report) -> str:
        raise BadInput("account", "is unknown", "name another")

    async def broken(_report: Report) -> str:
        raise ValueError("a secret subject")

    tasks = LongTasks[str, str]()
    assert (await ended(tasks, tasks.start("Look", refused))).problem == "account: is unknown; name another"
    assert "secret" not in (await ended(tasks, tasks.start("Look", broken))).problem


async def test_closing_cancels_everything() -> None:
    tasks, step = LongTasks[str, str](), Step()
    task = tasks.start("Look", step)
    await asyncio.sleep(0)
    tasks.close()
    assert (await ended(tasks, task)).state == "canceled"
