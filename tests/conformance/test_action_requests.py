"""Concurrent requests of agents: equal ones are one proposal, and the number of open ones is limited."""

import asyncio
from datetime import datetime

import pytest

from postroom.core.actions.safety import Policy
from postroom.core.errors import BadInput
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Principal, Role
from postroom.store.actions.actions import list_actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.triage.act import agents
from postroom.triage.act.action_requests import ActionRequests, RequestedAction
from postroom.triage.act.agents import Agents
from support.mail import keep_mail
from support.store.job_setup import JobSetup

AT_ONCE = 6
AGENT = Principal(Role.AGENT, token_id=new_id())


def agents_on(database: Database, now: datetime) -> Agents:
    return Agents(ActionRequests(database, CATALOGUE, Policy(), lambda: now))


def signed() -> Signature:
    return Signature(new_id(), AGENT.actor, AGENT.role)


@pytest.fixture
def processes(setup: JobSetup, second_database: Database) -> list[Agents]:
    """Two, that share nothing but the database."""
    return [agents_on(each, setup.clock()) for each in (setup.database, second_database)]


async def test_the_same_proposal_many_times_at_once_is_one(setup: JobSetup, processes: list[Agents]) -> None:
    id = await keep_mail(setup.database, setup.clock)
    asked = await asyncio.gather(
        *(processes[each % 2].propose(id, "star", {}, f"for the {each}. time", signed()) for each in range(AT_ONCE))
    )
    (action,) = await setup.database.run(list_actions(100))
    assert {each.action_id for each in asked} == {action.id}
    assert {(each.state, each.ruling.verdict) for each in asked} == {("approved_pending", "approve")}


async def test_of_many_proposals_at_once_no_more_are_open_than_may_be(
    setup: JobSetup, processes: list[Agents], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "MOST_OPEN", 2)
    ids = [await keep_mail(setup.database, setup.clock, number) for number in range(AT_ONCE)]
    asked = await asyncio.gather(
        *(processes[number % 2].propose(id, "star", {}, "x", signed()) for number, id in enumerate(ids)),
        return_exceptions=True,
    )
    taken = {each.action_id for each in asked if isinstance(each, RequestedAction)}
    assert taken == {each.id for each in await setup.database.run(list_actions(100))}
    assert len(taken) == 2
    assert sum(isinstance(each, BadInput) for each in asked) == AT_ONCE - 2
