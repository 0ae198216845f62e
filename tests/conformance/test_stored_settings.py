"""Settings that are changed while Postroom runs: stored, heard by other processes, audited, kept."""

import asyncio

import pytest

from postroom.core.errors import BadInput
from postroom.operations.caller import Caller
from postroom.operations.installation.live_settings import LiveSettings
from postroom.operations.installation.settings_view import change_setting, reset_setting, settings_in_effect
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.installation.stored_settings import store_setting, stored_settings
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.fault_cases_registry import signed

HOURS = "safety.approval_hours"


def caller(database: Database) -> Caller:
    return Caller(database, signed(), ManualClock())


def usual() -> LiveSettings:
    return LiveSettings(Settings.model_validate({}))


async def test_another_process_hears_of_a_change_and_makes_again_what_depends_on_it(
    database: Database, second_database: Database
) -> None:
    heard: asyncio.Queue[int] = asyncio.Queue()
    other, by = usual(), caller(database)

    async def apply(changed: Settings) -> None:
        heard.put_nowait(changed.safety.approval_hours)

    async with asyncio.timeout(PATIENCE_S):
        await other.refresh(second_database)
        await other.keep_up(apply)
        following = asyncio.create_task(other.follow(second_database))
        assert await heard.get() == 24
        live = usual()
        await change_setting(by, live, HOURS, "48")
        assert live.current.safety.approval_hours == 48, "at once, where it was changed"
        assert await heard.get() == 48
        assert other.start.safety.approval_hours == 24
        await reset_setting(by.again(), live, HOURS)
        assert await heard.get() == 24
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert heard.empty(), "nothing is made again without a change"


async def test_a_change_is_there_after_a_restart_and_audited_with_both_values(database: Database) -> None:
    by, live = caller(database), usual()
    await change_setting(by, live, HOURS, "48")
    await change_setting(by.again(), usual(), HOURS, " 72 ")
    await change_setting(by.again(), live, "time_zone", "Europe/Berlin")
    restarted = usual()
    assert (await restarted.refresh(database)).safety.approval_hours == 72
    shown = {each.key: each for each in settings_in_effect(restarted)}
    assert (shown[HOURS].value, shown[HOURS].origin, shown[HOURS].is_changeable) == (72, "database", True)
    assert (shown[HOURS].changed_by, shown[HOURS].changed_at) == (by.signature.actor, by.clock())
    await reset_setting(by.again(), restarted, HOURS)
    assert (await reset_setting(by.again(), restarted, HOURS)).done.startswith("Nothing to reset")
    entries = [(each.action, each.object_id, each.before, each.after) for each in await database.run(list_audit(9))]
    assert entries == [
        ("settings.reset", HOURS, {"value": 72}, {"value": 24}),
        ("settings.change", "time_zone", {"value": "UTC"}, {"value": "Europe/Berlin"}),
        ("settings.change", HOURS, {"value": 48}, {"value": 72}),
        ("settings.change", HOURS, {"value": 24}, {"value": 48}),
    ]


async def test_a_refused_value_and_one_that_the_file_sets_change_nothing(database: Database) -> None:
    by = caller(database)
    with pytest.raises(BadInput, match="use a whole number from 1 to 720"):
        await change_setting(by, usual(), HOURS, "0")
    fixed = LiveSettings(Settings.model_validate({"safety": {"approval_hours": 12}}))
    with pytest.raises(BadInput, match="which counts more; change it there"):
        await change_setting(by, fixed, HOURS, "48")
    assert await database.run(stored_settings()) == []
    assert await database.run(list_audit(9)) == []


async def test_what_a_newer_version_stored_is_ignored_kept_and_can_be_reset(database: Database) -> None:
    by = caller(database)
    await database.run(store_setting("safety.of_tomorrow", {"a": 1}, None, by.signature, by.clock()))
    live = usual()
    assert await live.refresh(database) == live.start
    assert list(live.stored) == ["safety.of_tomorrow"]
    assert (await reset_setting(by.again(), live, "safety.of_tomorrow")).done == "Reset: safety.of_tomorrow."
    assert await database.run(stored_settings()) == []
