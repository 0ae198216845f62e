"""The same thing is called the same on every page, in the commands and in the API."""

import pytest

from postroom.core.actions.safety import Policy
from postroom.operations.actions.actions import list_actions
from postroom.operations.actions.undo import undo_action
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_lines import MailQuestion, list_by_date, list_lines
from postroom.operations.mail.mail_page import show_mail
from postroom.operations.overview.overview import Overview
from postroom.store.actions import undos
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from support.mail import story_of
from support.page_setup import carry_out_undo, filled_mailbox
from support.store.fault_cases_registry import signed
from support.store.mail_setup import MailSetup


async def words_for(database: Database, box: MailSetup) -> set[str]:
    """The state of the action on the parcel, wherever it is shown."""
    id = box.ids["done"]
    (line,) = [each for each in await Overview(database).lines(10) if each.id == id]
    (listed,) = [each for each in (await list_lines(database, MailQuestion(kind="mail"))).lines if each.id == id]
    shown = await show_mail(database, Policy(), str(id))
    (command,) = [each.outcome for each in (await list_by_date(database, MailQuestion(), 10)).lines if each.id == id]
    (action,) = shown.actions
    return {line.state, listed.state, action.state, command.partition(": ")[2] or "done"}


async def test_an_action_has_one_state_on_the_overview_in_the_list_in_its_story_and_in_the_commands(
    database: Database,
) -> None:
    box = await filled_mailbox(database)
    assert await words_for(database, box) == {"done"}
    (action,) = [each for each in await list_actions(database) if each.message_id == box.ids["done"]]
    await undo_action(Caller(database, signed()), action.id)
    await carry_out_undo(box, action.id)
    assert await words_for(database, box) == {"undone"}
    story = await story_of(database, str(box.ids["done"]))
    assert any("That was undone" in line.text for line in story)


async def test_an_action_that_is_being_undone_is_nowhere_called_done(database: Database) -> None:
    box = await filled_mailbox(database)
    (action,) = [each for each in await list_actions(database) if each.message_id == box.ids["done"]]
    await undo_action(Caller(database, signed()), action.id)
    jobs = await box.setup.claim()
    (job,) = [each for each in jobs if each.payload.get("original_action_id") == str(action.id)]
    await database.run(undos.begin_undo(job, action.id, action.account_id, new_id(), box.setup.clock()))
    assert await words_for(database, box) == {"being undone"}


@pytest.mark.parametrize("key", ["done", "asked", "kept"])
async def test_the_list_and_the_story_give_the_same_reason_for_a_tier(database: Database, key: str) -> None:
    box = await filled_mailbox(database)
    id = box.ids[key]
    (listed,) = [each for each in (await list_lines(database, MailQuestion(kind="mail"))).lines if each.id == id]
    story = await story_of(database, str(id))
    assert f"Its tier is {listed.tier.replace('_', ' ')}: {listed.why_tier}." in [line.text for line in story]
