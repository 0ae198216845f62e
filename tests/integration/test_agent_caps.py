"""A trusted agent is trusted within bounds: a number of actions and undos an hour, no new labels."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from postroom.core.actions.safety import Policy
from postroom.store.engine.database import Database
from postroom.store.labels import SeenLabel, sync_labels
from postroom.store.mail import load_message
from postroom.switchboard.services import Services
from support.agent_client import AGENT, Principal, Role, ask, client_of, refused, stored
from support.clocks import ManualClock
from support.mail import done
from support.switchboard import services_on

CAP = 5


@pytest.fixture
def services(database: Database, clock: ManualClock) -> Services:
    return services_on(database, clock, policy=Policy(trust_agents=True, agent_hourly_cap=CAP))


async def _propose(services: Services, count: int, principal: Principal = AGENT, **wish: object) -> Counter[str]:
    """So many proposals at once, each about a message of its own; how often each state came of it."""
    ids = [await stored(services, uuid4()) for _ in range(count)]
    given = {"action": "trash", "why": "it is old", **wish}
    async with client_of(services, principal) as agent:
        asked = (ask(agent, "mail.propose_action", message_id=str(id), **given) for id in ids)
        return Counter(each["state"] for each in await asyncio.gather(*asked))


async def test_beyond_the_cap_what_a_trusted_agent_proposes_waits_for_a_yes(
    services: Services, clock: ManualClock
) -> None:
    assert await _propose(services, 2 * CAP) == {"queued": CAP, "awaiting_approval": CAP}
    other = Principal(Role.AGENT, token_id=uuid4())
    assert await _propose(services, 2, other) == {"queued": 2}, "each agent has a share of its own"
    clock.forward(3601)
    assert await _propose(services, 1) == {"queued": 1}


async def test_the_reason_is_told(services: Services) -> None:
    await _propose(services, CAP)
    id = str(await stored(services, "last"))
    async with client_of(services) as agent:
        answer = await ask(agent, "mail.propose_action", message_id=id, action="archive", why="it is old")
    assert answer["reasons"] == [f"this agent has done {CAP} things within the hour, which is the cap"]


async def test_a_label_that_does_not_exist_needs_a_yes_and_one_that_does_needs_none(
    services: Services, clock: ManualClock
) -> None:
    id = await stored(services)
    account = (await services.database.run(load_message(id))).account_id
    seen = [SeenLabel("INBOX", "INBOX", "system"), SeenLabel("Label_1", "Receipts", "user")]
    await services.database.run(sync_labels(account, seen, clock()))
    async with client_of(services) as agent:
        given = {"message_id": str(id), "action": "apply_label", "why": "it is one"}
        known = await ask(agent, "mail.propose_action", **given, parameters={"label": "receipts"})
        assert known["state"] == "queued"
        new = await ask(agent, "mail.propose_action", **given, parameters={"label": "Bills"})
        assert (new["state"], new["reasons"]) == (
            "awaiting_approval",
            ["there is no such label yet, and agents may not create labels by themselves"],
        )
        alike = await ask(agent, "mail.propose_action", **given, parameters={"label": "R\u0435ceipts"})
        assert alike["state"] == "awaiting_approval"
        assert "looks like your label 'Receipts'" in alike["reasons"][0]


async def test_undos_of_a_trusted_agent_are_capped_too(services: Services, clock: ManualClock) -> None:
    ids = [
        str(await done(services.database, clock, await stored(services, number), "rule", "test"))
        for number in range(CAP + 1)
    ]
    async with client_of(services) as agent:
        for id in ids[:CAP]:
            assert (await ask(agent, "actions.undo", action_id=id))["state"] == "queued"
        problem = await refused(agent, "actions.undo", action_id=ids[CAP])
        assert (problem["code"], "which is the cap" in problem["problem"]) == ("refused", True)
        clock.forward(3601)
        assert (await ask(agent, "actions.undo", action_id=ids[CAP]))["state"] == "queued"


@pytest.mark.parametrize(
    "name",
    [
        "\uff34\uff32\uff21\uff33\uff28",  # full-width
        "\u0422RASH",  # a Cyrillic T
        "TRA\u200bSH",  # a space of no width
        "T R A S H",
        "1NB0X",
        "\U0001d408\U0001d40d\U0001d401\U0001d40e\U0001d417",  # mathematical letters
        "Sp\u00e1m",
        "S\u0440\u0430m",
        "All\u00a0M\u0430il",
    ],
)
async def test_what_looks_like_a_label_of_gmail_itself_is_refused(services: Services, name: str) -> None:
    id = str(await stored(services))
    async with client_of(services) as agent:
        answer = await refused(
            agent, "mail.propose_action", message_id=id, action="apply_label", why="x", parameters={"label": name}
        )
    assert answer["field"] == "parameters.label"
