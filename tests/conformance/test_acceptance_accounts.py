"""Mail is accepted only for an account in use; refused mail is not remembered."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroom.core.errors import AccountUnusable
from postroom.core.queue.queues import EMAIL, GATEWAY, Queues, Route
from postroom.store.accounts.accounts import pause_account, remove_account
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.acceptance import Accepted
from postroom.store.mail.mail import account_of, keep_account
from postroom.store.people.audit import Signature
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.inbox_setup import ENDPOINT, InboxSetup, event, mail

KEY = {"idempotency_key": "k"}


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


def for_nobody(number: int = 1, **parts: Any) -> dict[str, Any]:
    return mail(number, source={"endpoint_identity": "gmail:user:new@example.com"}, **parts)


async def no_account(setup: InboxSetup, envelope: dict[str, Any]) -> AccountUnusable:
    with pytest.raises(AccountUnusable) as raised:
        await setup.intake.ingest(envelope)
    return raised.value


async def test_mail_for_an_account_that_does_not_exist_is_refused_and_leaves_nothing_behind(setup: InboxSetup) -> None:
    before = await dump(setup.database)
    error = await no_account(setup, for_nobody(control=KEY))
    assert error.field == "source.endpoint_identity"
    assert "there is no account 'gmail:user:new@example.com'" in error.problem
    assert "postroom account add" in error.remedy
    assert await dump(setup.database) == before


async def test_in_a_batch_only_the_mail_without_account_is_refused(setup: InboxSetup) -> None:
    good, bad, other = await setup.batch(mail(1), for_nobody(2), event(3))
    assert isinstance(good, Accepted)
    assert isinstance(bad, AccountUnusable)
    assert isinstance(other, Accepted)
    assert len(await setup.look()) == 2


async def test_what_was_refused_is_accepted_once_the_account_is_there(setup: InboxSetup) -> None:
    await no_account(setup, for_nobody(control=KEY))
    identity = for_nobody()["source"]["endpoint_identity"]
    await setup.database.run(keep_account(new_id(), "gmail", identity, "new@example.com", setup.clock()))
    assert not (await setup.ingest(for_nobody(control=KEY)))[0].duplicate


@pytest.mark.parametrize(("move", "accepted"), [("pause", True), ("remove", False)])
async def test_mail_of_a_paused_account_is_accepted_and_of_a_removed_one_is_not(
    setup: InboxSetup, move: str, accepted: bool
) -> None:
    account = await setup.database.run(account_of(ENDPOINT))
    verb = pause_account if move == "pause" else remove_account
    await setup.database.run(verb(account.id, Signature(new_id(), "test", "admin"), setup.clock()))
    (answer,) = await setup.batch(mail())
    assert isinstance(answer, Accepted) == accepted
    if not accepted:
        assert "was removed" in (await no_account(setup, mail())).problem
        assert await setup.look() == []


async def test_mail_that_a_route_gives_to_agents_needs_no_account(database: Database, clock: ManualClock) -> None:
    setup = InboxSetup(database, clock, Queues([EMAIL, GATEWAY], [Route("gateway", "email")]))
    assert not (await setup.ingest(for_nobody()))[0].duplicate


async def test_nothing_is_accepted_for_an_account_once_it_is_removed(
    setup: InboxSetup, second_database: Database
) -> None:
    """Whoever removes an account waits for those who are just accepting; whoever comes after is refused."""
    account = await setup.database.run(account_of(ENDPOINT))
    removing = remove_account(account.id, Signature(new_id(), "test", "admin"), setup.clock())
    handing_in = [asyncio.create_task(setup.batch(mail(number))) for number in range(20)]
    removed = asyncio.create_task(second_database.run(removing))
    await removed
    in_time = {row.id for row in await setup.look()}
    late = await setup.batch(mail(99))
    answers = [answer for (answer,) in await asyncio.gather(*handing_in)]
    assert isinstance(late[0], AccountUnusable)
    assert {each.request_id for each in answers if isinstance(each, Accepted)} == in_time
    assert {row.id for row in await setup.look()} == in_time
