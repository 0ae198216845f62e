"""Requests to connectors as they are kept: leased to one at a time, answered by whoever holds them, and expiring."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from conformance.desk import Desk, listen
from conformance.fault_cases_contacts import ENDPOINT, LEASE, asked
from postroom.core.errors import BadInput, LeaseLost, NotFound
from postroom.core.lifecycle import REQUEST
from postroom.store import connector_requests
from postroom.store.connector_requests import (
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
from postroom.store.engine.ids import new_id
from support.patience import PATIENCE_S

OTHER = "gmail:user:ben@example.com"


async def ask(desk: Desk, **changes: Any) -> UUID:
    return await desk.database.run(ask_connector(asked(desk, **changes), desk.clock()))


async def lease(desk: Desk, endpoint: str = ENDPOINT, most: int = 10) -> list[LeasedRequest]:
    return await desk.database.run(lease_requests(endpoint, most, new_id(), LEASE, desk.clock()))


async def reply(desk: Desk, held: LeasedRequest, reply: Reply, endpoint: str = ENDPOINT) -> None:
    await desk.database.run(end_request(held.id, endpoint, held.lease_token, reply, desk.clock()))


async def test_a_request_is_leased_to_its_own_connector_and_answered(desk: Desk) -> None:
    id = await ask(desk, kind="search", arguments={"q": "from:mara"})
    assert await lease(desk, OTHER) == []
    [held] = await lease(desk)
    assert (held.id, held.kind, held.arguments) == (id, "search", {"q": "from:mara"})
    assert held.lease_until == desk.clock() + LEASE
    assert await lease(desk) == []
    await reply(desk, held, Reply({"found": 2}))
    view = await desk.database.run(load_request(id))
    assert (view.state, view.result, view.error, view.ended_at) == ("answered", {"found": 2}, None, desk.clock())


async def test_a_failure_is_kept_in_the_connectors_words(desk: Desk) -> None:
    id = await ask(desk)
    [held] = await lease(desk)
    await reply(desk, held, Reply(error="the mailbox is paused"))
    view = await desk.database.run(load_request(id))
    assert (view.state, view.result, view.error) == ("failed", None, "the mailbox is paused")


async def test_requests_are_leased_in_the_order_in_which_they_were_asked(desk: Desk) -> None:
    ids: list[UUID] = []
    for number in range(4):
        ids.append(await ask(desk, arguments={"number": number}))
        desk.clock.forward(0.001)
    assert [each.id for each in await lease(desk, most=3)] == ids[:3]
    assert [each.id for each in await lease(desk, most=3)] == ids[3:]


async def test_the_same_request_is_asked_once_until_someone_has_begun_with_it(desk: Desk) -> None:
    first = await ask(desk)
    assert await ask(desk) == first
    assert await ask(desk, endpoint_identity=OTHER) != first
    assert await ask(desk, arguments={"deep": True}) != first
    await lease(desk)
    assert await ask(desk) != first


async def test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_no_longer_answer(desk: Desk) -> None:
    await ask(desk)
    [first] = await lease(desk)
    desk.clock.forward(LEASE.total_seconds())
    [second] = await lease(desk)
    assert (second.id, second.lease_token != first.lease_token) == (first.id, True)
    with pytest.raises(LeaseLost):
        await reply(desk, first, Reply({"late": True}))
    await reply(desk, second, Reply({"late": False}))
    with pytest.raises(LeaseLost):
        await reply(desk, second, Reply({"late": False}))


async def test_nobody_answers_for_another_endpoint(desk: Desk) -> None:
    await ask(desk)
    [held] = await lease(desk)
    with pytest.raises(LeaseLost):
        await reply(desk, held, Reply({}), OTHER)


async def test_what_is_given_back_waits_again(desk: Desk) -> None:
    await ask(desk)
    [held] = await lease(desk)
    heard = await listen(desk.database, connector_requests.ASKED)
    assert await desk.database.run(give_back_requests(ENDPOINT, held.lease_token)) == 1
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == signal_of(ENDPOINT)
    assert await desk.database.run(give_back_requests(ENDPOINT, held.lease_token)) == 0
    assert [each.id for each in await lease(desk)] == [held.id]


@pytest.mark.parametrize("begun", [False, True])
async def test_a_request_whose_time_is_over_ends_as_expired(desk: Desk, begun: bool) -> None:
    id = await ask(desk)
    desk.clock.forward(290)
    held = await lease(desk) if begun else []
    desk.clock.forward(10)
    assert await lease(desk) == []
    assert (await desk.database.run(load_request(id))).state == "expired"
    for each in held:
        with pytest.raises(LeaseLost):
            await reply(desk, each, Reply({}))


async def test_a_look_is_worth_it_only_when_there_is_something(desk: Desk) -> None:
    assert not await desk.database.run(any_request_due(ENDPOINT, desk.clock()))
    await ask(desk)
    assert await desk.database.run(any_request_due(ENDPOINT, desk.clock()))
    assert not await desk.database.run(any_request_due(OTHER, desk.clock()))
    await lease(desk)
    assert not await desk.database.run(any_request_due(ENDPOINT, desk.clock()))
    assert await desk.database.run(any_request_due(ENDPOINT, desk.clock.forward(60)))


async def test_those_who_wait_are_woken(desk: Desk) -> None:
    heard = await listen(desk.database, connector_requests.ASKED, connector_requests.ENDED)
    id = await ask(desk)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == signal_of(ENDPOINT)
    [held] = await lease(desk)
    await reply(desk, held, Reply({}))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == str(id)


async def test_there_is_an_end_to_requests_that_wait_and_to_their_size(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_requests, "MOST_LIVE", 2)
    for number in range(2):
        await ask(desk, arguments={"number": number})
    with pytest.raises(BadInput, match="wait for their answers"):
        await ask(desk, arguments={"number": 2})
    with pytest.raises(BadInput, match="at most 65,536"):
        await ask(desk, endpoint_identity=OTHER, arguments={"text": "x" * 70_000})
    held, _ = await lease(desk)
    with pytest.raises(BadInput, match="at most 1,048,576"):
        await reply(desk, held, Reply({"text": "x" * 2_000_000}))
    await reply(desk, held, Reply({}))


async def test_those_that_ended_long_ago_are_forgotten(desk: Desk) -> None:
    id = await ask(desk)
    [held] = await lease(desk)
    await reply(desk, held, Reply({}))
    desk.clock.forward(timedelta(days=7).total_seconds())
    await ask(desk)
    assert (await desk.database.run(load_request(id))).ended
    await ask(desk, kind="search", arguments={"at": desk.clock.forward(1).isoformat()})
    with pytest.raises(NotFound):
        await desk.database.run(load_request(id))


async def test_of_many_who_look_at_once_one_gets_each_request(desk: Desk) -> None:
    ids = [await ask(desk, arguments={"number": number}) for number in range(20)]
    taken = await asyncio.gather(*(lease(desk, most=3) for _ in range(20)))
    assert sorted(each.id for held in taken for each in held) == sorted(ids)


def test_the_moves_are_those_that_the_verbs_make() -> None:
    assert REQUEST.terminal == {"answered", "failed", "expired"}
    assert REQUEST.may("leased", "queued")
    assert not REQUEST.may("queued", "answered")
