"""The bytes under way: never more than fit, and always room for the next tenant."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from postroom.outbound.queue.byte_budget import ByteBudget

MOST = 100


class Held:
    """What is under way now, as the contents themselves count it."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self.used = Counter[str]()
        self.largest = 0

    async def __call__(self, tenant: str, size: int, until: asyncio.Event) -> None:
        async with self._budget.holding(tenant, size):
            self.used[tenant] += size
            self.largest = max(self.largest, self.used.total())
            try:
                await until.wait()
            finally:
                self.used[tenant] -= size


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_tenant_leaves_room_for_the_next_one() -> None:
    held, end = Held(ByteBudget(MOST)), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):
            tasks.create_task(held("flood", 20, end))
        tasks.create_task(held("small", 20, end))
        await settle()
        assert held.used == {"flood": 40, "small": 20}
        end.set()
    assert held.used.total() == 0


async def test_content_larger_than_everything_goes_by_itself() -> None:
    held, first, second = Held(ByteBudget(MOST)), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(held("a", 60, first))
        tasks.create_task(held("b", 500, second))
        tasks.create_task(held("c", 1, second))
        await settle()
        assert +held.used == {"a": 60}
        first.set()
        await settle()
        assert +held.used == {"b": 500}
        second.set()


async def test_who_gives_up_waiting_or_is_stopped_in_between_leaves_no_hole() -> None:
    held, end = Held(ByteBudget(MOST)), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(held("a", 90, end))
        await settle()
        waiting = tasks.create_task(held("b", 90, end))
        last = tasks.create_task(held("c", 90, end))
        await settle()
        waiting.cancel()
        running.cancel()
        await settle()
        assert +held.used == {"c": 90}
        last.cancel()
    assert held.used.total() == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 60), st.booleans()), max_size=25))
def test_everything_gets_its_turn_and_no_more_is_under_way_than_fits(contents: list[tuple[str, int, bool]]) -> None:
    async def run() -> None:
        held, end = Held(ByteBudget(MOST)), asyncio.Event()
        tasks = [asyncio.create_task(held(tenant, size, end)) for tenant, size, _ in contents]
        await settle()
        assert held.used.total() <= MOST
        for task, (_, _, canceled) in zip(tasks, contents, strict=True):
            if canceled:
                task.cancel()
        await settle()
        assert held.used.total() <= MOST
        end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert held.used.total() == 0
        assert held.largest <= MOST

    asyncio.run(run())
