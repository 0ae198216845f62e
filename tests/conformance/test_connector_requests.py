"""Stored requests to connectors: leased to one at a time, answered by the lease holder, and expiring."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import BadInput, LeaseLost, NotFound
from postroom.core.lifecycle import REQUEST
from postroom.store.engine.ids import new_id
from postroom.store.intake import connector_requests
from postroom.store.intake.connector_requests import (
    LeasedRequest,
    Reply,
    any_request_due,
    ask_connector,
    end_request,
    give_back_requests,
    lease_requests,
    load_request,
    signal_of,
)
from support.patience import PATIENCE_S
from support.store.fault_cases_contacts import ENDPOINT, LEASE, asked
from support.store.job_setup import JobSetup, listen

OTHER = "gmail:user:ben@example.com"


async def ask(setup: JobSetup, **changes: Any) -> UUID:
    return await setup.database.run(ask_connector(asked(setup, **changes), setup.clock()))


async def lease(setup: JobSetup, endpoint: str = ENDPOINT, most: int = 10) -> list[LeasedRequest]:
    return await setup.database.run(lease_requests(endpoint, most, new_id(), LEASE, setup.clock()))


async def reply(setup: JobSetup, held: LeasedRequest, reply: Reply, endpoint: str = ENDPOINT) -> None:
    await setup.database.run(end_request(held.id, endpoint, held.lease_token, reply, setup.clock()))


async def test_a_request_is_leased_to_its_own_connector_and_answered(setup: JobSetup) -> None:
    id = await ask(setup, kind="search", arguments={"q": "from:mara"})
    assert await lease(setup, OTHER) == []
    [held] = await lease(setup)
    assert (held.id, held.kind, held.arguments) == (id, "search", {"q": "from:mara"})
    assert held.lease_until == setup.clock() + LEASE
    assert await lease(setup) == []
    await reply(setup, held, Reply({"found": 2}))
    view = await setup.database.run(load_request(id))
    assert (view.state, view.result, view.error, view.ended_at) == ("answered", {"found": 2}, None, setup.clock())


async def test_a_failure_is_kept_in_the_connectors_words(setup: JobSetup) -> None:
    id = await ask(setup)
    [held] = await lease(setup)
    await reply(setup, held, Reply(error="the mailbox is paused"))
    view = await setup.database.run(load_request(id))
    assert (view.state, view.result, view.error) == ("failed", None, "the mailbox is paused")


async def test_requests_are_leased_in_the_order_in_which_they_were_asked(setup: JobSetup) -> None:
    ids: list[UUID] = []
    for number in range(4):
        ids.append(await ask(setup, arguments={"number": number}))
        setup.clock.forward(0.001)
    assert [each.id for each in await lease(setup, most=3)] == ids[:3]
    assert [each.id for each in await lease(setup, most=3)] == ids[3:]


async def test_the_same_request_is_asked_once_until_someone_has_begun_with_it(setup: JobSetup) -> None:
    first = await ask(setup)
    assert await ask(setup) == first
    assert await ask(setup, endpoint_identity=OTHER) != first
    assert await ask(setup, arguments={"deep": True}) != first
    await lease(setup)
    assert await ask(setup) != first


async def test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_no_longer_answer(setup: JobSetup) -> None:
    await ask(setup)
    [first] = await lease(setup)
    setup.clock.forward(LEASE.total_seconds())
    [second] = await lease(setup)
    assert (second.id, second.lease_token != first.lease_token) == (first.id, True)
    with pytest.raises(LeaseLost):
        await reply(setup, first, Reply({"late": True}))
    await reply(setup, second, Reply({"late": False}))
    with pytest.raises(LeaseLost):
        await reply(setup, second, Reply({"late": False}))


async def test_nobody_answers_for_another_endpoint(setup: JobSetup) -> None:
    await ask(setup)
    [held] = await lease(setup)
    with pytest.raises(LeaseLost):
        await reply(setup, held, Reply({}), OTHER)


async def test_what_is_given_back_waits_again(setup: JobSetup) -> None:
    await ask(setup)
    [held] = await lease(setup)
    heard = await listen(setup.database, connector_requests.ASKED)
    assert await setup.database.run(give_back_requests(ENDPOINT, held.lease_token)) == 1
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == signal_of(ENDPOINT)
    assert await setup.database.run(give_back_requests(ENDPOINT, held.lease_token)) == 0
    assert [each.id for each in await lease(setup)] == [held.id]


@pytest.mark.parametrize("begun", [False, True])
async def test_a_request_whose_time_is_over_ends_as_expired(setup: JobSetup, begun: bool) -> None:
    id = await ask(setup)
    setup.clock.forward(290)
    held = await lease(setup) if begun else []
    setup.clock.forward(10)
    assert await lease(setup) == []
    assert (await setup.database.run(load_request(id))).state == "expired"
    for each in held:
        with pytest.raises(LeaseLost):
            await reply(setup, each, Reply({}))


async def test_a_look_is_worth_it_only_when_there_is_something(setup: JobSetup) -> None:
    assert not await setup.database.run(any_request_due(ENDPOINT, setup.clock()))
    await ask(setup)
    assert await setup.database.run(any_request_due(ENDPOINT, setup.clock()))
    assert not await setup.database.run(any_request_due(OTHER, setup.clock()))
    await lease(setup)
    assert not await setup.database.run(any_request_due(ENDPOINT, setup.clock()))
    assert await setup.database.run(any_request_due(ENDPOINT, setup.clock.forward(60)))


async def test_those_who_wait_are_woken(setup: JobSetup) -> None:
    heard = await listen(setup.database, connector_requests.ASKED, connector_requests.ENDED)
    id = await ask(setup)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == signal_of(ENDPOINT)
    [held] = await lease(setup)
    await reply(setup, held, Reply({}))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == str(id)


async def test_there_is_an_end_to_requests_that_wait_and_to_their_size(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_requests, "MOST_LIVE", 2)
    for number in range(2):
        await ask(setup, arguments={"number": number})
    with pytest.raises(BadInput, match="wait for their answers"):
        await ask(setup, arguments={"number": 2})
    with pytest.raises(BadInput, match="at most 65,536"):
        await ask(setup, endpoint_identity=OTHER, arguments={"text": "x" * 70_000})
    held, _ = await lease(setup)
    with pytest.raises(BadInput, match="at most 1,048,576"):
        await reply(setup, held, Reply({"text": "x" * 2_000_000}))
    await reply(setup, held, Reply({}))


async def test_those_that_ended_long_ago_are_forgotten(setup: JobSetup) -> None:
    id = await ask(setup)
    [held] = await lease(setup)
    await reply(setup, held, Reply({}))
    setup.clock.forward(timedelta(days=7).total_seconds())
    await ask(setup)
    assert (await setup.database.run(load_request(id))).ended
    await ask(setup, kind="search", arguments={"at": setup.clock.forward(1).isoformat()})
    with pytest.raises(NotFound):
        await setup.database.run(load_request(id))


async def test_of_many_who_look_at_once_one_gets_each_request(setup: JobSetup) -> None:
    ids = [await ask(setup, arguments={"number": number}) for number in range(20)]
    taken = await asyncio.gather(*(lease(setup, most=3) for _ in range(20)))
    assert sorted(each.id for held in taken for each in held) == sorted(ids)


def test_the_moves_are_those_that_the_verbs_make() -> None:
    assert REQUEST.terminal == {"answered", "failed", "expired"}
    assert REQUEST.may("leased", "queued")
    assert not REQUEST.may("queued", "answered")
