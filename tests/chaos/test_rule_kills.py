"""SIGKILL before every statement of `rules apply`, and after the last: all of a file's rules are in use, or none."""

from random import Random

from postroom.operations.rules.rule_plans import plan_rules
from postroom.store.engine.opening import open_database
from support.crash.evidence import Place
from support.crash.rules_process import drafts
from support.processes import ProcessGroup
from support.scale import scale

PROCESS = "support.crash.rules_process"
BEFORE = ("kept=a", "changed=b", "removed=c")
AFTER = ("kept=a", "changed=other", "added=d", "more=e")
STRUCK = scale(3, 1_000)


async def test_a_file_of_rules_is_applied_whole_or_not_at_all_whenever_the_process_is_killed(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    database = await open_database(place.folder, place.url)
    try:

        async def apply(rules: tuple[str, ...], *options: str) -> int | None:
            """How many statements there were; None if it was killed."""
            child = await children.start(PROCESS, *place.arguments(), *options, *rules)
            status = await child.ended()
            assert status in (0, -9), child.complaints()
            return int((await child.hear("applied")).details) if status == 0 else None

        async def differs(rules: tuple[str, ...]) -> bool:
            return bool((await plan_rules(database, drafts(rules))).changes)

        count = await apply(BEFORE)
        assert count is not None
        count = await apply(AFTER)
        assert count is not None
        # The last but one is before the commit, the last after it.
        points = [*sorted(rng.sample(range(count - 2), min(STRUCK, count - 2))), count - 2, count - 1]
        for point in points:
            assert await apply(BEFORE) is not None
            assert await apply(AFTER, "--kill", str(point)) is None
            assert await differs(AFTER) == (point < count - 1), point
            assert await differs(BEFORE) == (point == count - 1), point
        assert await apply(AFTER) is not None
        assert not await differs(AFTER)
        print(f"{count - 1} statements, killed at {points}")
    finally:
        await database.close()
