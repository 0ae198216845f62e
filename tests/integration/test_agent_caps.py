"""A trusted agent is trusted within bounds: a number of actions and undos an hour, no new labels."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from postroom.core.actions.hiding import HidingLimits
from postroom.core.actions.safety import Policy
from postroom.interfaces.http.services import Services
from postroom.store.engine.database import Database
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail import load_message
from support.agent_client import AGENT, Principal, Role, ask, audited, client_of, refused, stored
from support.clocks import ManualClock
from support.mail import done
from support.switchboard import services_on

CAP = 5
FREE = HidingLimits(1_000, 1_000, 1_000)


@pytest.fixture
def services(database: Database, clock: ManualClock) -> Services:
    return services_on(database, clock, policy=Policy(trust_agents=True, agent_hourly_cap=CAP, hiding=FREE))


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
    assert await _propose(services, 2 * CAP) == {"queued": CAP, "approved_pending": CAP}
    other = Principal(Role.AGENT, token_id=uuid4())
    assert await _propose(services, 2, other) == {"queued": 2}, "each agent has a share of its own"
    clock.forward(3601)
    assert await _propose(services, 1) == {"queued": 1}


async def test_the_reason_is_reported(services: Services) -> None:
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
            "approved_pending",
            ["there is no such label yet, and agents may not create labels by themselves"],
        )
        alike = await ask(agent, "mail.propose_action", **given, parameters={"label": "R\u0435ceipts"})
        assert alike["state"] == "approved_pending"
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


async def test_an_agent_hides_no_mail_that_only_people_hide_and_the_reason_is_recorded(services: Services) -> None:
    for trusted in (True, False):
        each = services if trusted else services_on(services.database, services.clock)
        id = await stored(each, f"alert{trusted}", subject="Security alert: new sign-in")
        async with client_of(each) as agent:
            given = {"message_id": str(id), "why": "it is old"}
            problem = await refused(agent, "mail.propose_action", **given, action="archive")
            assert (problem["code"], problem["field"]) == ("refused", "action")
            assert "it is about the security of an account" in problem["problem"]
            assert (await ask(agent, "mail.propose_action", **given, action="star"))["state"] in (
                "queued",
                "approved_pending",
            )
        entry = next(each for each in await audited(services, "action.ask") if each.object_id == str(id))
        assert entry.after == {
            "refused": "archive",
            "reasons": ["it is about the security of an account, and only you and your rules hide such mail"],
        }


async def test_trusted_agents_hide_no_more_than_the_caps_on_hiding_allow(
    database: Database, clock: ManualClock
) -> None:
    services = services_on(database, clock, policy=Policy(trust_agents=True))
    ids = [await stored(services, number, sender="one@shop.example") for number in range(7)]
    async with client_of(services) as agent:
        for id in ids[:5]:
            given = {"message_id": str(id), "action": "archive", "why": "it is old"}
            assert (await ask(agent, "mail.propose_action", **given))["state"] == "queued"
        given = {"message_id": str(ids[5]), "action": "archive", "why": "it is old"}
        problem = await refused(agent, "mail.propose_action", **given)
        assert "the limit of 5 hidden messages of one sender a day is reached" in problem["problem"]
