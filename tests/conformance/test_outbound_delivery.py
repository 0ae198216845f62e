"""How a delivery ends other than by success: too late, unwanted, without an account, or by a fault of our own."""

import pytest

from conformance.desk import Desk
from conformance.fault_cases_registry import signed
from conformance.test_outbound_properties import PACE, Mortal, PostOffice, Run
from postroom.gmail.errors import ServerError
from postroom.outbound.carrier import DraftKept
from postroom.store import accounts, actions, outbound
from postroom.store.database import Script, sql, transaction


class Busy(PostOffice):
    """Nothing is sent; drafts can be made when it `is_open`."""

    def __init__(self, run: Run, is_open: bool) -> None:
        super().__init__(run.rng)
        self.trouble = 0
        self.is_open = is_open

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        if not self.is_open:
            raise ServerError("drafts.create", 503)
        return await super().create_draft(mail, thread_id)

    async def send_draft(self, draft_id: str) -> str | None:
        raise ServerError("drafts.send", 503)


class Broken(PostOffice):
    """It trips over its own feet."""

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        raise ZeroDivisionError("secret text of a mail")


async def started(desk: Desk, is_open: bool = True) -> Run:
    """A mail that was tried once."""
    run = Run(desk, seed=1)
    run.post = Busy(run, is_open)
    run.database = Mortal(desk.database, run.rng, run.post)
    await run.admit(1)
    await run.round()
    return run


async def shown(desk: Desk) -> tuple[outbound.DeliveryView, actions.ActionView]:
    (delivery,) = await desk.database.run(outbound.list_deliveries(9))
    (action,) = await desk.database.run(actions.list_actions(9))
    return delivery, action


@pytest.mark.parametrize("is_open", [True, False])
async def test_what_cannot_be_sent_in_five_days_expires_and_leaves_no_draft(sqlite_desk: Desk, is_open: bool) -> None:
    run = await started(sqlite_desk, is_open=is_open)
    assert (await shown(sqlite_desk))[0].state == "deferred"
    sqlite_desk.clock.forward(PACE.give_up.total_seconds())
    await run.round()
    delivery, action = await shown(sqlite_desk)
    assert (delivery.state, action.state) == ("expired", "failed")
    assert "5 days" in (action.error or "")
    assert run.post.drafts == {}


@pytest.mark.parametrize(("is_open", "state"), [(False, "canceled"), (True, "unknown")])
async def test_mail_of_a_removed_account_is_canceled_unless_it_may_have_been_sent(
    sqlite_desk: Desk, is_open: bool, state: str
) -> None:
    run = await started(sqlite_desk, is_open=is_open)
    (delivery, _) = await shown(sqlite_desk)
    await sqlite_desk.database.run(accounts.remove_account(delivery.account_id, signed(), sqlite_desk.clock()))
    while await run.round():
        pass
    assert (await shown(sqlite_desk))[0].state == state


async def test_an_action_that_was_ended_meanwhile_is_not_sent(sqlite_desk: Desk) -> None:
    run = await started(sqlite_desk)
    delivery, _ = await shown(sqlite_desk)

    @transaction
    def end_action() -> Script[None]:
        yield sql("cancel_action", delivery.action_id, "by hand", sqlite_desk.clock())

    await sqlite_desk.database.run(end_action())
    while await run.round():
        pass
    delivery, action = await shown(sqlite_desk)
    assert (delivery.state, action.state, action.error) == ("canceled", "canceled", "by hand")
    assert (run.post.left.total(), run.post.drafts) == (0, {})


async def test_a_fault_of_our_own_puts_mail_off_and_tells_nothing_of_it(sqlite_desk: Desk) -> None:
    run = Run(sqlite_desk, seed=1)
    run.post = Broken(run.rng)
    run.post.trouble = 0
    run.database = Mortal(sqlite_desk.database, run.rng, run.post)
    await run.admit(1)
    await run.round()
    delivery, action = await shown(sqlite_desk)
    assert delivery.state == "deferred"
    assert "ZeroDivisionError" in (action.error or "")
    assert "secret" not in f"{delivery.error}{action.error}"
