"""Mail that no action has asked for: sent like any other, and its end is told to whoever waits for it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.permits import Permit
from postroom.core.errors import Canceled, NotFound
from postroom.core.lifecycle import DELIVERY
from postroom.outbound.queue.delivery import Delivery
from postroom.store.actions import actions, mailbox_writers
from postroom.store.engine.database import Transaction
from postroom.store.outbound import outbound, outbound_answers
from support.gates import LASTING
from support.mailboxes import always
from support.patience import PATIENCE_S
from support.store.fault_cases_outbound import DRAFT, LEASE, lease, stored, submitted
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.sending import PACE, PostOffice, view

Ending = Callable[[outbound.LeasedMail, JobSetup], Transaction[Any]]

ENDINGS: dict[str, Ending] = {
    "sent": lambda leased, setup: outbound.deliver(leased.hold, "18c1", setup.clock()),
    "bounced": lambda leased, setup: outbound.bounce(leased.hold, "no such user", setup.clock()),
    "expired": lambda leased, setup: outbound.withdraw_mail(leased.hold, "expired", "too late", setup.clock()),
    "canceled": lambda leased, setup: outbound.withdraw_mail(leased.hold, "canceled", "unwanted", setup.clock()),
    "unknown": lambda leased, setup: outbound.doubt(leased.hold, "who knows", setup.clock()),
    "deferred": lambda leased, setup: outbound.defer(
        leased.hold, None, setup.clock() + LEASE, "try later", setup.clock()
    ),
}


async def recipient_states(setup: JobSetup, id: UUID) -> set[str]:
    return {each.state for each in await setup.database.run(outbound.list_recipients(id))}


@pytest.mark.parametrize("state", ENDINGS)
async def test_whoever_asked_without_an_action_hears_what_became_of_the_mail(setup: JobSetup, state: str) -> None:
    new = await submitted(setup)
    (leased,) = await lease(setup)
    assert (leased.action_id, leased.asked_at) == (None, leased.admitted_at)
    heard = asyncio.Event()
    subscription = setup.database.subscribe(outbound.CHANNEL, lambda _message: heard.set())
    await setup.database.run(ENDINGS[state](leased, setup))
    await asyncio.wait_for(heard.wait(), PATIENCE_S)
    subscription.close()
    found = await setup.database.run(outbound.load_mail(new.id))
    addresses = tuple(each.address for each in new.recipients)
    assert (found.state, found.action_id, found.recipients) == (state, None, addresses)
    assert (found.error is None) == (state == "sent")
    assert await recipient_states(setup, new.id) == {state}
    if state in DELIVERY.terminal:
        with pytest.raises(NotFound):
            await setup.database.run(outbound.load_content(new.id))
    assert await setup.database.run(actions.list_actions(9)) == []


@pytest.mark.parametrize(("outcome", "state"), [("sent", "sent"), ("not_sent", "queued")])
async def test_a_person_settles_it_as_any_other(setup: JobSetup, outcome: Any, state: str) -> None:
    new = await submitted(setup)
    (leased,) = await lease(setup)
    await setup.database.run(outbound.doubt(leased.hold, "who knows", setup.clock()))
    await setup.database.run(outbound_answers.resolve_mail(new.id, outcome, signed(), setup.clock()))
    assert {(await view(setup)).state} == await recipient_states(setup, new.id) == {state}


async def test_what_waits_is_canceled_at_once(setup: JobSetup) -> None:
    new = await submitted(setup)
    assert await setup.database.run(outbound_answers.cancel_mail(new.id, signed(), setup.clock())) == "canceled"
    assert {(await view(setup)).state} == await recipient_states(setup, new.id) == {"canceled"}


async def test_what_is_being_sent_is_stopped_before_it_leaves(setup: JobSetup) -> None:
    """By the sender, which asks before it sends, and by the gate, which asks when the request is about to leave."""
    new = await submitted(setup)
    (leased,) = await lease(setup)
    assert leased.account_id is not None
    permit = Permit(leased.account_id, LASTING, None, leased.hold)
    checking = mailbox_writers.check_permits([permit], {}, frozenset())
    assert not (await setup.database.run(checking)).refused
    assert await setup.database.run(outbound_answers.cancel_mail(new.id, signed(), setup.clock())) == "stopping"
    (refused,) = (await setup.database.run(checking)).refused.values()
    assert isinstance(refused, Canceled)
    until = setup.clock() + LEASE
    assert await setup.database.run(outbound.hold_mail(leased.hold, DRAFT, setup.clock(), until)) == "ended"


async def test_it_leaves_once_and_takes_its_draft_back_when_it_is_canceled(setup: JobSetup) -> None:
    about, post = await stored(setup), PostOffice(Random(1))
    post.trouble = 0
    sent, canceled = await submitted(setup, about), await submitted(setup, about)
    for leased in await lease(setup):
        if leased.id == canceled.id:
            await setup.database.run(outbound_answers.cancel_mail(leased.id, signed(), setup.clock()))
        await Delivery(setup.database, leased, LASTING, always(post), PACE, setup.clock, asyncio.sleep).attempt()
    states = {each.id: each.state for each in await setup.database.run(outbound.list_mail(9))}
    assert states == {sent.id: "sent", canceled.id: "canceled"}
    assert (dict(post.left), post.drafts) == ({sent.id: 1}, {})


async def test_recipients_remember_their_attempts_and_the_last_reply(setup: JobSetup) -> None:
    new, later = await submitted(setup), timedelta(minutes=1)
    for reply in ("421 busy", "451 greylisted"):
        (leased,) = await lease(setup)
        until = setup.clock() + later
        await setup.database.run(outbound.defer(leased.hold, None, until, reply, setup.clock()))
        setup.clock.forward(60)
    assert await setup.database.run(outbound.list_recipients(new.id)) == [
        outbound.RecipientView(to.address, "deferred", 2, until, "451 greylisted") for to in new.recipients
    ]
