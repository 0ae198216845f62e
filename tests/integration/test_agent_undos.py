"""What agents may undo: their own unapproved actions; with trust more, but never what the user requested."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.actions.action import Actor
from postroom.interfaces.http.services import Services
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from support.agent_client import ADMIN, AGENT, ask, audited, client_of, refused, stored, trusting
from support.clocks import ManualClock
from support.mail import approved_and_done, done
from support.sqlite import new_sqlite
from support.switchboard import services_on


@pytest.fixture
async def services(migrated_sqlite: Path, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Services]:
    """For what does not depend on the database."""
    database = await new_sqlite(tmp_path, migrated_sqlite)
    yield services_on(database, clock)
    await database.close()


async def test_an_agent_undoes_its_own_and_nothing_of_others_unless_it_is_trusted(services: Services):
    whose: tuple[tuple[Actor, str], ...] = (("agent", AGENT.actor), ("agent", f"token:{new_id()}"), ("rule", "test"))
    mine, others, rules = [
        str(await done(services.database, services.clock, await stored(services, number), actor, asked_by))
        for number, (actor, asked_by) in enumerate(whose)
    ]
    async with client_of(services) as agent:
        assert (await ask(agent, "actions.undo", action_id=mine))["state"] == "queued"
        for action in (others, rules):
            problem = await refused(agent, "actions.undo", action_id=action)
            assert (problem["code"], problem["field"]) == ("refused", "action")
            assert "did not propose" in problem["problem"]
    async with client_of(trusting(services)) as agent:
        for action in (others, rules):
            assert (await ask(agent, "actions.undo", action_id=action))["state"] == "queued"


async def test_what_a_person_approved_no_agent_undoes_unless_it_is_trusted(services: Services, clock: ManualClock):
    database, id = services.database, str(await stored(services))
    async with client_of(services) as agent:
        proposed = await ask(agent, "mail.propose_action", message_id=id, action="archive", why="x")
        action = UUID(proposed["action_id"])
        await approved_and_done(database, clock, action)
        assert "approved" in (await refused(agent, "actions.undo", action_id=str(action)))["problem"]
        (entry,) = await audited(services, "action.undo")
        assert (entry.object_id, entry.after) == (str(action), {"refused": True})
    async with client_of(trusting(services)) as agent:
        assert (await ask(agent, "actions.undo", action_id=str(action)))["state"] == "queued"


async def test_what_the_user_did_no_agent_undoes(services: Services):
    action = str(await done(services.database, services.clock, await stored(services), "user", AGENT.actor))
    async with client_of(trusting(services)) as agent:
        problem = await refused(agent, "actions.undo", action_id=action)
        assert (problem["code"], problem["field"]) == ("refused", "action")
    async with client_of(services, ADMIN) as admin:
        assert (await ask(admin, "actions.undo", action_id=action))["state"] == "queued"
        assert (await ask(admin, "actions.undo", action_id=action))["state"] == "queued"
    assert len(await services.database.run(jobs.list_jobs(type="undo.action"))) == 1
